
/** Live parts: `[data-live]` is renewed every so many seconds, if the server has a new version of it. */
(() => {
  const part = () => document.querySelector("[data-live]");
  let timer = null;

  /** Someone types or chooses something within the part, or has opened something there: they are not interrupted. */
  const isInUse = (live) => {
    const active = document.activeElement;
    const typing = live.contains(active) && active.matches("input, textarea, select");
    return typing || live.querySelector("dialog[open], details[open], :popover-open") !== null;
  };

  /** Puts what is new in its place. The link that has the focus keeps it. */
  function replace(live, fresh) {
    const active = live.contains(document.activeElement) ? document.activeElement : null;
    const address = active?.getAttribute("href");
    const scrolled = [...live.querySelectorAll(".table")].map((table) => table.scrollLeft);
    live.replaceWith(fresh);
    fresh.querySelectorAll(".table").forEach((table, at) => { table.scrollLeft = scrolled[at] || 0; });
    if (address) fresh.querySelector(`a[href="${CSS.escape(address)}"]`)?.focus();
    window.htmx?.process(fresh);
    document.dispatchEvent(new CustomEvent("taco:renewed", { detail: fresh }));
  }

  async function renew() {
    const live = part();
    if (!live || document.hidden || isInUse(live)) return;
    const headers = { "Accept": "text/html", "HX-Request": "true", "If-None-Match": live.dataset.version };
    const answer = await fetch(location.href, { headers, redirect: "manual", cache: "no-store" });
    if (answer.type === "opaqueredirect") { location.reload(); return; }
    if (answer.status !== 200) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById(live.id);
    // Something else may have replaced or opened it in the meantime.
    if (fresh && live === part() && !isInUse(live)) replace(live, document.adoptNode(fresh));
  }

  function schedule() {
    clearTimeout(timer);
    const live = part();
    if (!live || document.hidden) return;
    // A server that cannot be reached is asked again as usual.
    timer = setTimeout(() => renew().catch(() => {}).finally(schedule), Number(live.dataset.live) * 1000);
  }

  /** Elapsed time since `data-since` ticks; durations are written as `0:42` and `1:03:20`. */
  function tick() {
    const two = (number) => String(number).padStart(2, "0");
    for (const clock of document.querySelectorAll("[data-since]")) {
      const seconds = Math.max(0, Math.floor((Date.now() - Date.parse(clock.dataset.since)) / 1000));
      const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
      clock.textContent = hours ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
    }
  }

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) renew().catch(() => {});
    schedule();
  });
  setInterval(() => { if (!document.hidden) tick(); }, 1000);
  schedule();
})();
