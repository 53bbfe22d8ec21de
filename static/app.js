// What pages gain where scripts run. Everything here is a convenience: each page is whole without it.
"use strict";

// Style sheets hide what works with scripts alone until this class is there.
document.documentElement.classList.add("scripts");

/** Shortcuts: `/` goes to the search field, `g` and a letter to a part of the organization, `?` tells them all. */
const places = { d: "Dashboard", w: "Workspaces", g: "Graph", r: "Runs", q: "Queue", p: "Projects", v: "Variable sets", a: "Agents", s: "Settings" };
let afterG = false;

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key === "Escape") {
    // Popovers close by themselves.
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
    return;
  }
  if (typing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector(":popover-open, dialog[open]")) return;
  if (afterG) {
    afterG = false;
    const name = places[event.key];
    const links = document.querySelectorAll("header.top nav a");
    const link = [...links].find((link) => link.textContent.trim() === name);
    if (link) link.click();
    return;
  }
  if (event.key === "g") {
    afterG = true;
    setTimeout(() => { afterG = false; }, 1500);
  } else if (event.key === "?") {
    document.getElementById("shortcuts")?.showPopover();
  } else if (event.key === "/") {
    event.preventDefault();
    const search = document.querySelector("main input[type=search]");
    if (search) { search.focus(); search.select(); } else { document.dispatchEvent(new CustomEvent("taco:search")); }
  } else if (event.key === "j" || event.key === "k") {
    const rows = [...document.querySelectorAll("tbody th a, tbody td:first-child a")];
    const next = rows.indexOf(document.activeElement) + (event.key === "j" ? 1 : -1);
    if (rows[next]) rows[next].focus();
  }
});

/** A link to a form that is in a dialog opens it. */
function openNamed() {
  const named = document.getElementById(location.hash.slice(1));
  if (named?.matches("[popover].sheet")) named.showPopover();
}
addEventListener("hashchange", openNamed);
openNamed();

/** The clipboard is there on https and on this machine alone; elsewhere a selection is copied. */
async function copied(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "hidden";
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (!done) throw new Error("not copied");
}

/** `data-copy` copies the text of the element that it names, `data-copy-text` its own. */
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy], [data-copy-text]");
  if (!button) return;
  const text = button.dataset.copyText ?? document.getElementById(button.dataset.copy).textContent.trim();
  const label = button.querySelector(".hidden") || button;
  const before = label.textContent;
  const use = button.querySelector("use");
  const icon = use?.getAttribute("href");
  copied(text).then(() => {
    button.focus();
    button.classList.add("done");
    label.textContent = "Copied";
    use?.setAttribute("href", icon.replace(/#.*/, "#check"));
    setTimeout(() => {
      button.classList.remove("done");
      label.textContent = before;
      use?.setAttribute("href", icon);
    }, 2000);
  }).catch(() => {});
});

/** What is chosen from a list with `data-adds-to` becomes one more line of the text that it names. */
document.addEventListener("change", (event) => {
  const chosen = event.target.closest("[data-adds-to]");
  const isOffered = chosen && [...chosen.list.options].some((option) => option.value === chosen.value);
  if (!isOffered) return;
  const text = document.getElementById(chosen.dataset.addsTo);
  text.value = [...text.value.split("\n").filter((line) => line.trim()), chosen.value].join("\n");
  chosen.value = "";
});

/** A row of a list leads to where its first link leads, wherever it is clicked; its text can still be selected. */
document.addEventListener("click", (event) => {
  const link = event.target.closest(".dense tbody tr")?.querySelector(":scope > th a[href]:not([download])");
  if (!link || event.defaultPrevented || event.target.closest("a, button, input, select, textarea, label, summary, form, [popover]")) return;
  if (String(getSelection())) return;
  if (event.ctrlKey || event.metaKey) open(link.href); else link.click();
});

/** A menu closes when something else is chosen. */
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

/** On a narrow screen the current tab is moved into view. */
for (const tab of document.querySelectorAll("nav [aria-current]")) {
  const nav = tab.closest("nav");
  if (nav.scrollWidth > nav.clientWidth) nav.scrollLeft = tab.offsetLeft - nav.offsetLeft - (nav.clientWidth - tab.offsetWidth) / 2;
}

/** Times in the visitor's own zone, with UTC when pointed at. Relative ones (`data-ago`) tick. */
(() => {
  const local = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

  /** In its largest unit, as the server writes it: see `text::span`. */
  function ago(milliseconds) {
    const seconds = Math.max(0, Math.floor(milliseconds / 1000));
    if (seconds < 5) return "just now";
    if (seconds < 90) return `${seconds} s ago`;
    if (seconds < 5400) return `${Math.floor((seconds + 30) / 60)} min ago`;
    if (seconds < 129600) return `${Math.floor((seconds + 1800) / 3600)} h ago`;
    return `${Math.floor((seconds + 43200) / 86400)} d ago`;
  }

  function localize() {
    for (const time of document.querySelectorAll("time[datetime]:not([data-local])")) {
      const moment = new Date(time.dateTime);
      if (isNaN(moment)) continue;
      time.dataset.local = "";
      const relative = time.hasAttribute("data-ago") || / ago$|^just now$/.test(time.textContent);
      if (relative) {
        time.dataset.ago = "";
        time.title = `${local.format(moment)} (${time.title || moment.toISOString()})`;
      } else if (/ UTC$/.test(time.textContent)) {
        const before = time.textContent;
        const utc = before.replace(/^, /, "");
        time.textContent = before.replace(utc, local.format(moment));
        time.title = utc;
      }
    }
  }

  function tick() {
    if (document.hidden) return;
    for (const time of document.querySelectorAll("time[data-ago]")) {
      const text = ago(Date.now() - Date.parse(time.dateTime));
      if (time.textContent !== text) time.textContent = text;
    }
  }

  /** Every id and every block of code can be copied. In lists, the button shows when its row is pointed at. */
  function offerCopies() {
    const sprite = document.querySelector("use")?.getAttribute("href").replace(/#.*/, "");
    if (!sprite) return;
    const button = (text, what) => {
      const made = document.createElement("button");
      made.type = "button";
      made.className = "copy";
      made.title = "Copy";
      made.dataset.copyText = text;
      made.innerHTML = `<svg class="icon" width="16" height="16" aria-hidden="true"><use href="${sprite}#copy"/></svg><span class="hidden"></span>`;
      made.lastChild.textContent = `Copy ${what}`;
      return made;
    };
    for (const id of document.querySelectorAll("code.id:not([data-copied])")) {
      id.dataset.copied = "";
      if (id.closest("summary, button") || id.nextElementSibling?.matches(".copy")) continue;
      const text = id.textContent.trim();
      const made = button(text, text);
      made.classList.add("beside");
      // Whoever goes through a list by keyboard finds the button on the thing's own page.
      if (id.closest("tbody")) made.tabIndex = -1;
      const frame = document.createElement("span");
      frame.className = "copy-id";
      const shown = id.closest("a") || id;
      shown.replaceWith(frame);
      frame.append(shown, made);
    }
    for (const code of document.querySelectorAll("pre > code:not([data-copied])")) {
      code.dataset.copied = "";
      if (code.closest(".copyable, .diagnostic, .log")) continue;
      const frame = document.createElement("div");
      frame.className = "copyable";
      const block = code.parentElement;
      block.replaceWith(frame);
      frame.append(block, button(code.textContent.trim(), "the code"));
    }
  }

  let waiting = false;
  function prepare() {
    waiting = false;
    localize();
    offerCopies();
  }
  new MutationObserver(() => {
    if (waiting) return;
    waiting = true;
    setTimeout(prepare, 50);
  }).observe(document.body, { childList: true, subtree: true });
  prepare();
  setInterval(tick, 5000);
})();
