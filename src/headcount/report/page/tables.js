// Tables that sort by a click on a column's name, and that can be copied as CSV.
const quoted = (cell) => (/[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
const csv = (rows) => rows.map((row) => row.map((cell) => quoted(String(cell ?? ""))).join(",")).join("\n") + "\n";
const exact = (cell) => cell.dataset.value ?? cell.textContent;

function compared(one, other) {
  const first = Number(one), second = Number(other);
  const firstIs = one !== "" && !Number.isNaN(first), secondIs = other !== "" && !Number.isNaN(second);
  if (firstIs && secondIs) return first - second;
  if (firstIs !== secondIs) return firstIs ? -1 : 1;  // what has no number comes last
  return String(one).localeCompare(String(other), undefined, { numeric: true });
}

function sortHeader(cell, act) {
  const button = make("button", { type: "button" }, cell.textContent);
  button.addEventListener("click", () => {
    const down = cell.getAttribute("aria-sort") === (cell.classList.contains("number") ? "descending" : "ascending");
    const way = cell.classList.contains("number") !== down ? "descending" : "ascending";
    for (const other of cell.parentElement.children) other.removeAttribute("aria-sort");
    cell.setAttribute("aria-sort", way);
    act(way === "descending" ? -1 : 1);
  });
  cell.replaceChildren(button);
}

// A table that stands in the page already.
function enliven(table) {
  const body = table.tBodies[0];
  const missing = (text) => text === "\u2013" || text === "";
  [...table.tHead.rows[0].cells].forEach((cell, at) => sortHeader(cell, (sign) => {
    const keyed = [...body.rows].map((row) => [exact(row.cells[at]), row]);
    keyed.sort(([one], [other]) => missing(one) - missing(other) || sign * compared(one, other));
    body.append(...keyed.map(([, row]) => row));
  }));
  const whole = () => csv([[...table.tHead.rows[0].cells], ...[...body.rows].map((row) => [...row.cells])].map((row) => row.map(exact)));
  addCopy(table.closest(".table"), whole);
}

function addCopy(box, text) {
  const button = make("button", { type: "button" }, "Copy as CSV");
  button.addEventListener("click", () => copyText(text(), button, "The table was copied as CSV."));
  box.append(make("div", { class: "tools" }, button));
}

// A table made here; large ones show their first rows until asked. columns: {name, number, text(value)}.
function tableOf(box, title, columns, rows, onHead) {
  let order = rows, all = rows.length <= 60;
  const body = make("tbody");
  const cells = columns.map((column) => make("th", { scope: "col", class: column.number ? "number" : null }, column.name));
  const more = make("button", { type: "button", onclick: () => { all = true; show(); } }, `Show all ${rows.length} rows`);
  function show() {
    body.replaceChildren(...(all ? order : order.slice(0, 40)).map((row) => make("tr", {}, row.map((value, at) =>
      make("td", { class: columns[at].number ? "number" : null },
        columns[at].head ? make("a", { href: "#heads", onclick: (event) => { event.preventDefault(); onHead(value); } }, value)
          : columns[at].number ? short(value, columns[at].signed) : String(value ?? ""))))));
    more.hidden = all;
  }
  cells.forEach((cell, at) => sortHeader(cell, (sign) => {
    const blank = (value) => value === null || value === "";
    order = [...rows].sort((one, other) => blank(one[at]) - blank(other[at]) || sign * compared(one[at] ?? "", other[at] ?? ""));
    show();
  }));
  show();
  box.replaceChildren(make("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": title },
    make("table", {}, [make("caption", {}, title), make("thead", {}, make("tr", {}, cells)), body])), more);
  addCopy(box, () => csv([columns.map((column) => column.name), ...order]));
}
