// What pages gain where scripts run. Everything here is a convenience: each page is whole without it.
"use strict";

/** Shortcuts: `/` goes to the search field, `g` and a letter to a part of the organization, `?` tells them all. */
const places = { d: "Dashboard", w: "Workspaces", r: "Runs", q: "Queue", a: "Agents", s: "Settings" };
let afterG = false;

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (afterG) {
    afterG = false;
    const name = places[event.key];
    const links = document.querySelectorAll("header.top nav a");
    const link = [...links].find((link) => link.textContent === name);
    if (link) link.click();
    return;
  }
  if (event.key === "g") {
    afterG = true;
    setTimeout(() => { afterG = false; }, 1500);
  } else if (event.key === "/") {
    const search = document.querySelector("input[type=search]");
    if (search) { event.preventDefault(); search.focus(); }
  } else if (event.key === "j" || event.key === "k") {
    const rows = [...document.querySelectorAll("tbody th a, tbody td:first-child a")];
    const next = rows.indexOf(document.activeElement) + (event.key === "j" ? 1 : -1);
    if (rows[next]) rows[next].focus();
  }
});

/** A button with `data-copy` copies the text of the element that it names. */
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button || !navigator.clipboard) return;
  const source = document.getElementById(button.dataset.copy);
  navigator.clipboard.writeText(source.textContent.trim()).then(() => {
    const before = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = before; }, 2000);
  });
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

/** A menu closes when something else is chosen. */
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});
