// Small things of the page: elements, numbers, tables, files.

export const $ = (id) => document.getElementById(id);

export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

export function number(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "";
  return value.toLocaleString("en", { maximumSignificantDigits: digits });
}

export function signed(value) {
  if (value === 0) return "0";
  return (value < 0 ? "\u2212" : "+") + number(Math.abs(value), 3);
}

export function named(column) {
  return column.unit ? `${column.name}, ${column.unit}` : column.name;
}

// rows of cells; a cell is a text or an element; the first column names the row
export function table(head, rows) {
  const cells = (row) =>
    row.map((cell, i) =>
      i === 0 ? make("th", { scope: "row" }, cell) : make("td", { className: i === 1 ? "main" : "" }, cell)
    );
  return make(
    "table",
    {},
    make("thead", {}, make("tr", {}, ...head.map((name) => make("th", { scope: "col" }, name)))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...cells(row))))
  );
}

export function bar(share, text) {
  const mark = make("span", { className: "bar" });
  mark.style.width = `${(2.5 * Math.max(0, Math.min(1, share))).toFixed(2)}rem`;
  const track = make("span", { className: "track" }, mark);
  track.setAttribute("aria-hidden", "true");
  return make("span", {}, track, text);
}

function quoted(value) {
  const text = value === null || value === undefined ? "" : String(value);
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csv(rows) {
  const columns = Object.keys(rows[0] ?? {});
  return [columns, ...rows.map((row) => columns.map((name) => row[name]))]
    .map((row) => row.map(quoted).join(","))
    .join("\n") + "\n";
}

export function save(name, text, type) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
