/** Search and commands: ⌘K, Ctrl-K or the header's search. The results are the search page's own. */
(() => {
  const palette = document.getElementById("palette");
  if (!palette) return;
  const input = palette.querySelector("input");
  const results = document.getElementById("palette-results");
  const form = palette.querySelector("form");
  let kind = "";
  let asked = 0;
  let timer = null;

  async function ask() {
    const number = ++asked;
    const address = new URL(form.action);
    address.search = new URLSearchParams(kind ? { q: input.value, kind } : { q: input.value });
    const answer = await fetch(address, { headers: { "Accept": "text/html", "HX-Request": "true" }, redirect: "manual" });
    if (answer.type === "opaqueredirect") { location.reload(); return; }
    if (answer.ok && number === asked) results.innerHTML = await answer.text();
  }

  function open(of) {
    kind = of || "";
    input.value = "";
    results.innerHTML = "";
    palette.showPopover();
    input.focus();
    ask().catch(() => {});
  }

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => ask().catch(() => {}), 80);
  });
  form.addEventListener("submit", (event) => {
    const first = results.querySelector("a");
    if (!first || !input.value.trim()) return;
    event.preventDefault();
    // What was typed last may not have been answered yet.
    clearTimeout(timer);
    ask().finally(() => (results.querySelector("a") || form).click?.());
  });
  palette.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    const stops = [input, ...results.querySelectorAll("a")];
    const at = stops.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
    stops[(at + stops.length) % stops.length].focus();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    event.preventDefault();
    if (palette.matches(":popover-open")) palette.hidePopover(); else open();
  });
  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-palette]");
    if (!opener || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open(opener.dataset.palette);
  });
  document.addEventListener("taco:search", () => open());
  for (const key of document.querySelectorAll(".search-button kbd")) {
    if (/Mac|iPhone|iPad/.test(navigator.platform)) key.textContent = "⌘K";
  }
})();
