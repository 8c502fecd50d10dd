// Tables that can be sorted and filtered. Without this script they are shown as they are.
"use strict";

const MANY_ROWS = 13;

function shownText(row, column) {
  const cell = row.cells[column];
  return (cell.firstElementChild ?? cell).textContent.trim();
}

function asNumber(text) {
  if (text.startsWith("less than")) return 0;
  return /^[+-]?[\d,]*\.?\d+(e[+-]?\d+)?%?$/i.test(text) ? parseFloat(text.replaceAll(",", "")) : NaN;
}

// Lines that open below a table, one for each of its rows.
function linesBelow(table, rows) {
  const lines = [];
  let next = table.parentElement.nextElementSibling;
  while (next?.tagName === "DETAILS" && lines.length < rows.length) {
    lines.push(next);
    next = next.nextElementSibling;
  }
  return lines.length === rows.length ? lines : [];
}

function sortBy(table, rows, column, order) {
  const texts = new Map(rows.map((row) => [row, shownText(row, column)]));
  const values = [...texts.values()].filter((text) => text !== "");
  const numeric = values.every((text) => !Number.isNaN(asNumber(text)));
  const compare = (a, b) => {
    const [left, right] = [texts.get(a), texts.get(b)];
    if (left === "" || right === "") return (left === "") - (right === ""); // missing values come last
    return order * (numeric ? asNumber(left) - asNumber(right) : left.localeCompare(right));
  };
  return [...rows].sort(compare);
}

function makeSortable(table) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const lines = new Map(linesBelow(table, rows).map((line, k) => [rows[k], line]));
  const last = [...lines.values()].at(-1);
  const end = last ? last.nextSibling : null;
  const heads = [...table.tHead.rows[0].cells];

  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const falling = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", falling ? "descending" : "ascending");
      for (const row of sortBy(table, rows, column, falling ? -1 : 1)) {
        body.append(row);
        if (lines.has(row)) lines.get(row).parentElement.insertBefore(lines.get(row), end);
      }
    });
  });

  if (rows.length < MANY_ROWS) return;
  const box = document.createElement("input");
  box.type = "search";
  box.placeholder = "filter these rows";
  box.setAttribute("aria-label", "Filter these rows by words that they hold");
  const count = document.createElement("output");
  const tools = document.createElement("p");
  tools.className = "tools";
  tools.append(box, count);
  table.parentElement.before(tools);
  box.addEventListener("input", () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = [...row.cells].map((cell) => cell.textContent).join(" ");
      const all = `${text} ${lines.get(row)?.textContent ?? ""}`.toLowerCase();
      const keep = words.every((word) => all.includes(word));
      row.hidden = !keep;
      if (lines.has(row)) lines.get(row).hidden = !keep;
      shown += keep;
    }
    count.textContent = words.length ? `${shown} of ${rows.length} rows` : "";
  });
}

document.querySelectorAll("table.sortable").forEach(makeSortable);
