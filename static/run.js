// Follows one run on its page: lines of the log as they come, and the rest of the page whenever it is old.
"use strict";

(() => {
  let events = null;
  let last = null;

  /** The end of a log is followed until someone scrolls up. */
  const isAtEnd = (log) => log.scrollHeight - log.scrollTop - log.clientHeight < 40;

  function follow() {
    const run = document.getElementById("run");
    if (!run || !run.dataset.events || document.hidden) return;
    const address = new URL(run.dataset.events, location.href);
    address.searchParams.set("from", last || run.dataset.from);
    address.searchParams.set("seen", run.dataset.seen);
    events = new EventSource(address);
    events.addEventListener("log", (event) => {
      last = event.lastEventId;
      const log = document.getElementById(`log-${last.split(":")[0]}`);
      if (!log) return;
      const end = isAtEnd(log);
      log.insertAdjacentHTML("beforeend", event.data);
      log.closest("[hidden]")?.removeAttribute("hidden");
      if (end) log.scrollTop = log.scrollHeight;
    });
    events.addEventListener("progress", (event) => {
      const progress = document.getElementById("progress");
      if (progress) { progress.innerHTML = event.data; tick(); }
    });
    events.addEventListener("status", renew);
  }

  function stop() {
    if (events) events.close();
    events = null;
  }

  /** The ids of what someone has opened or folded. */
  const toggled = new Set();
  document.addEventListener("click", (event) => {
    const opened = event.target.closest("summary")?.parentElement;
    if (opened?.id) toggled.add(opened.id);
  });

  /** The title and the icon of the tab tell the status, also while it is in the background. */
  function tellInTab(page) {
    document.title = page.title;
    const icon = page.querySelector("link[rel=icon]");
    if (icon) document.querySelector("link[rel=icon]").href = icon.getAttribute("href");
  }

  /** A tab in the background has no stream, for browsers allow few at once. It asks now and then. */
  let asking = null;
  function askNowAndThen() {
    clearInterval(asking);
    asking = setInterval(async () => {
      const answer = await fetch(location.href, { headers: { "Accept": "text/html" } }).catch(() => null);
      if (!answer?.ok || !document.hidden) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      tellInTab(page);
      if (!page.getElementById("run")?.dataset.events) clearInterval(asking);
    }, 15000);
  }

  /** Takes over what the server shows now. What someone is typing stays: it is outside. */
  async function renew() {
    stop();
    const answer = await fetch(location.href, { headers: { "Accept": "text/html" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const run = page.getElementById("run");
    if (!answer.ok || !run) { location.reload(); return; }
    tellInTab(page);
    // What someone has opened or folded stays so.
    for (const id of toggled) {
      const [old, fresh] = [document.getElementById(id), page.getElementById(id)];
      if (old && fresh) fresh.open = old.open;
    }
    // So does what someone is typing or is asked.
    const [typed, asked] = [document.getElementById("typed-name"), document.querySelector("#run [popover]:popover-open")?.id];
    const isTyping = typed !== null && typed === document.activeElement;
    for (const part of ["run", "history"]) {
      const [old, fresh] = [document.getElementById(part), page.getElementById(part)];
      if (old && fresh) { old.replaceWith(fresh); window.htmx?.process(fresh); }
    }
    const field = document.getElementById("typed-name");
    if (typed && field) { field.value = typed.value; if (isTyping) field.focus(); }
    if (asked) document.getElementById(asked)?.showPopover();
    last = null;
    begin();
  }

  function begin() {
    for (const log of document.querySelectorAll(".log")) {
      if (!log.querySelector(":target")) log.scrollTop = log.scrollHeight;
    }
    tick();
    follow();
  }

  /** A link to a line that is not on the page leads to the part of the log in which it is. */
  function findLine() {
    const anchor = location.hash.slice(1);
    if (!/^[pa]-L\d+$/.test(anchor) || document.getElementById(anchor)) return;
    const address = new URL(location.href);
    if (address.searchParams.get("line") === anchor) return;
    address.searchParams.set("view", "console");
    address.searchParams.set("line", anchor);
    location.replace(address);
  }

  /** Durations that run on: each has the seconds that had passed when the server wrote it. */
  const beginnings = new WeakMap();
  const stopwatch = (seconds) => {
    const two = (number) => String(number).padStart(2, "0");
    const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
    if (seconds < 1) return "< 1 s";
    return hours ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
  };
  function tick() {
    for (const shown of document.querySelectorAll("[data-elapsed]")) {
      if (!beginnings.has(shown)) beginnings.set(shown, Date.now() - 1000 * Number(shown.dataset.elapsed));
      shown.textContent = stopwatch(Math.floor((Date.now() - beginnings.get(shown)) / 1000));
    }
  }
  setInterval(tick, 1000);

  document.addEventListener("visibilitychange", () => {
    if (document.hidden && document.getElementById("run")?.dataset.events) {
      stop();
      askNowAndThen();
    } else if (!document.hidden) {
      clearInterval(asking);
      events || follow();
    }
  });
  addEventListener("hashchange", findLine);
  findLine();
  begin();
})();
