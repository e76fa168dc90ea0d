"use strict";
// A click on a column's head sorts its table by that column, another one turns the order round. What has no value stays last.
function compare(a, b) {
  const [x, y] = [Number(a), Number(b)];
  return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, "en", { numeric: true }) : x - y;
}
function sort(table, head) {
  const order = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
  const sign = order === "ascending" ? 1 : -1;
  const value = (row) => row.cells[head.cellIndex].dataset.value;
  const rows = [...table.tBodies[0].rows].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === "" || y === "") return (x === "") - (y === "");
    return sign * compare(x, y);
  });
  for (const other of head.parentElement.cells) other.setAttribute("aria-sort", "none");
  head.setAttribute("aria-sort", order);
  table.tBodies[0].append(...rows);
}
for (const table of document.querySelectorAll("table.sortable")) {
  for (const head of table.tHead.rows[0].cells) {
    head.querySelector("button").addEventListener("click", () => sort(table, head));
  }
}

// The buttons of the tally show the claims with one verdict, in the forest plot and in the table behind it.
function filter(kind) {
  for (const button of document.querySelectorAll(".tallybar button")) {
    button.setAttribute("aria-pressed", String(kind !== "" && button.dataset.filter === kind));
  }
  for (const row of document.querySelectorAll(".forest li, table[data-filtered] tbody tr")) {
    row.hidden = kind !== "" && row.dataset.kind !== kind;
  }
}
for (const button of document.querySelectorAll("[data-filter]")) {
  const pressed = () => button.getAttribute("aria-pressed") === "true";
  button.addEventListener("click", () => filter(pressed() ? "" : button.dataset.filter));
}
// Values are shown where a reader points, taps or tabs. A figure's own titles would be shown twice.
const tip = Object.assign(document.createElement("div"), { id: "tip", hidden: true });
tip.setAttribute("role", "tooltip");
document.body.append(tip);
for (const title of document.querySelectorAll(".tip > title")) {
  title.parentElement.dataset.tip = title.textContent;
  title.remove();
}
function show(event) {
  const place = event.target.closest("[data-tip]");
  tip.hidden = !place;
  if (!place) return;
  tip.textContent = place.dataset.tip;
  const box = place.getBoundingClientRect();
  const x = event.clientX || box.left + box.width / 2;
  const y = event.clientY || box.bottom;
  tip.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - tip.offsetWidth - 4))}px`;
  tip.style.top = `${y + 16 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 10 : y + 16}px`;
}
for (const kind of ["pointerover", "pointerdown", "focusin"]) document.addEventListener(kind, show);
addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
