// The map of heads: one square per head, a row per layer, a block per kind.
const headNames = new Map();  // of heads, taken apart once
const parsed = (name) => {
  if (!headNames.has(name)) { const [kind, layer, index] = name.split(/\.(?=\d+\.\d+$)|\.(?=\d+$)/); headNames.set(name, { kind, layer: +layer, index: +index }); }
  return headNames.get(name);
};

function blocks(subject) {  // kind -> layers in order -> places of heads
  const kinds = new Map();
  subject.heads.forEach((name, place) => {
    const { kind, layer } = parsed(name);
    if (!kinds.has(kind)) kinds.set(kind, new Map());
    if (!kinds.get(kind).has(layer)) kinds.get(kind).set(layer, []);
    kinds.get(kind).get(layer).push(place);
  });
  return kinds;
}

const letters = (() => {  // one letter per role, told apart without colour
  const taken = {};
  for (const role of Object.keys(data.roleColours)) {
    const free = [...role.toUpperCase()].find((sign) => /[A-Z]/.test(sign) && !Object.values(taken).includes(sign));
    taken[role] = free || role[0].toUpperCase();
  }
  return taken;
})();
const rolesOf = (subject, place) => [...new Set((subject.roles?.[place] || []).map((one) => one.role))];
const lookedAt = (subject, place) => Boolean(subject.roles?.[place]);  // a treebank has no targets: no decoder heads
const roleMeasure = { label: "role", form: "roles" };
const measuresOf = (subject) => [...(subject.roles ? [roleMeasure] : []), ...subject.measures];
const hasBoth = (subject) => Boolean(subject.roles && subject.measures.length);  // roles and numbers: two maps side by side
const mapMeasures = (subject) => (hasBoth(subject) ? subject.measures : measuresOf(subject));
const importance = (subject) => Math.max(0, mapMeasures(subject).findIndex((measure) => /^change of .* without it$/.test(measure.label)));

function described(subject, measure, place) {
  const name = subject.heads[place], held = subject.roles?.[place] || [];
  const said = held.map((one) => `${one.role} ${one.label}`).join(", ");
  const value = measure && measure.values ? `${measure.label}: ${short(measure.values[place], measure.form === "diverging")}` : "";
  return [name, value, subject.roles ? `role: ${said || (lookedAt(subject, place) ? "none found" : "not looked at")}` : ""].filter(Boolean).join("\n");
}

// Draw a map that is not the first on the page: a large one when the browser has time for it.
const LARGE = 600;  // heads
function drawBelow(box, subject) {
  if (box.dataset.drawn || subject.heads.length < LARGE) box.redraw(); else whenIdle(() => box.redraw());
  box.dataset.drawn = "yes";
}

// options: measure or mask, range, sorted, open(place).
function drawMap(box, subject, options) {
  const kinds = blocks(subject), { measure, mask } = options;
  const width = Math.max(280, box.clientWidth || 900), label = 30, gap = 22, top = 26;
  const across = (layers) => Math.max(...[...layers.values()].map((places) => 1 + Math.max(...places.map((place) => parsed(subject.heads[place]).index))));
  const columns = [...kinds.values()].map(across);
  const total = columns.reduce((sum, one) => sum + one, 0);
  const beside = Math.min(46, (width - columns.length * label - (columns.length - 1) * gap) / total);
  const row = columns.length === 1 || (width >= 560 && beside >= 9);
  const side = row ? beside : Math.min(40, (width - label) / Math.max(...columns));
  const colour = measure && measure.values ? scale(measure, options.range) : null;
  const decimals = colour ? decimalsFor(options.range || extent(measure.values)) : 0;
  const picture = draw("svg", { role: "group", "aria-label": `Map of ${subject.heads.length} heads of ${subject.label}`, "font-family": "system-ui, sans-serif", "font-variant-numeric": "tabular-nums" });
  let x = 0, y = 0, bottom = 0;
  [...kinds].forEach(([kind, layers], number) => {
    const block = draw("g", { role: "grid", "aria-label": `${kind} attention`, transform: `translate(${x},${y})` });
    block.append(draw("text", { x: label, y: 12, "font-size": 12.5, "font-weight": 600, fill: "currentColor" }, kind));
    [...layers].forEach(([layer, places], line) => {
      const level = top + line * side;
      const group = draw("g", { role: "row", "aria-label": `layer ${layer}` });
      if (side >= 11 || layer % 4 === 0) group.append(draw("text", { x: label - 7, y: level + side / 2, "text-anchor": "end", "dominant-baseline": "central", "font-size": Math.min(11, Math.max(6, side)), fill: "currentColor", opacity: .65 }, String(layer)));
      const order = options.sorted && colour ? [...places].sort((one, other) => worth(measure, other) - worth(measure, one)) : places;
      order.forEach((place, at) => {
        const column = options.sorted && colour ? at : parsed(subject.heads[place]).index;
        group.append(cellOf(subject, place, label + column * side, level, side, options, colour, decimals));
      });
      block.append(group);
    });
    picture.append(block);
    const height = top + layers.size * side + 12;
    bottom = Math.max(bottom, y + height);
    if (row) x += label + columns[number] * side + gap; else y += height;
  });
  const used = row ? x - gap : width;
  bottom = legend(picture, subject, options, colour, bottom + 6, Math.max(used, 260));
  picture.setAttribute("viewBox", `0 0 ${Math.ceil(Math.max(used, 260))} ${Math.ceil(bottom)}`);
  picture.style.maxWidth = `${Math.ceil(Math.max(used, 260))}px`;
  box.replaceChildren(picture);
  rove(picture, options.open);
  return picture;
}

const worth = (measure, place) => measure.values[place] === null ? -Infinity : measure.values[place] * (measure.harm || 1);

const BARE = 15;  // pixels under which a square has no room for a letter and is one node: there are thousands then
const at = (cell, x, y) => Object.assign(cell, { at: [x, y] });  // its place in the block, for the keyboard

function shadeOf(subject, place, { measure, mask }, colour) {
  if (mask) return mask[place] === "1" ? data.kindColours[parsed(subject.heads[place]).kind] || "#0072B2" : themed("none");
  return measure.form === "roles" ? data.roleColours[rolesOf(subject, place)[0]] || withoutRole(subject, place) : colour(measure.values[place]);
}
const filled = (shade) => (shade === "transparent" ? { fill: shade, stroke: themed("none") } : { fill: shade });  // an empty square has an outline
const withoutRole = (subject, place) => (lookedAt(subject, place) ? themed("none") : "transparent");

function cellOf(subject, place, x, y, side, options, colour, decimals) {
  const { measure, mask } = options, inner = Math.max(1, side - (side > 14 ? 2 : 1));
  const named = { role: "gridcell", tabindex: -1, "data-place": place,
    "aria-label": described(subject, measure, place).replaceAll("\n", ", ") + (mask ? (mask[place] === "1" ? ", stays" : ", masked") : "") };
  if (side < BARE) return at(draw("rect", { ...named, class: "frame", x, y, width: inner, height: inner, ...filled(shadeOf(subject, place, options, colour)) }), x, y);
  const cell = at(draw("g", { ...named, transform: `translate(${x},${y})` }), x, y);
  const rounding = Math.min(4, inner / 6);
  const paint = (from, height, shade) => cell.append(draw("rect", { class: height === inner ? "frame" : null, y: from || null, width: inner, height, rx: rounding, ...filled(shade) }));
  let written = "", ink = "";
  if (mask) {
    paint(0, inner, shadeOf(subject, place, options, colour));
    if (mask[place] !== "1") cell.append(draw("path", { d: `M${inner * .3} ${inner * .3}L${inner * .7} ${inner * .7}M${inner * .7} ${inner * .3}L${inner * .3} ${inner * .7}`, stroke: "currentColor", "stroke-opacity": .45, "stroke-width": Math.max(.6, inner / 18) }));
  } else if (measure.form === "roles") {
    const held = rolesOf(subject, place);
    if (!held.length) paint(0, inner, withoutRole(subject, place));
    held.slice(0, 3).forEach((role, at, some) => {
      const height = inner / some.length, shade = data.roleColours[role];
      paint(at * height, height, shade);
      if (side >= 15) cell.append(draw("text", { x: inner / 2, y: (at + .5) * height, "text-anchor": "middle", "dominant-baseline": "central", "font-size": Math.min(12, height * .8), "font-weight": 600, fill: onto(shade) }, letters[role]));
    });
  } else {
    const value = measure.values[place], shade = colour(value);
    paint(0, inner, shade);
    written = value === null ? "" : tiny(value, decimals);
    ink = onto(shade);
  }
  if (written && side >= 27) cell.append(draw("text", { x: inner / 2, y: inner / 2, "text-anchor": "middle", "dominant-baseline": "central", "font-size": Math.min(11, side / 3.4, 1.7 * inner / written.length), fill: ink }, written));
  if (!cell.querySelector(".frame")) cell.append(draw("rect", { class: "frame", width: inner, height: inner, rx: rounding, fill: "none" }));
  return cell;
}

// Two decimals, up to four if all values are small: as in the figure of the same changes.
function decimalsFor([least, most]) {
  const size = Math.max(Math.abs(least), Math.abs(most));
  return size >= 0.1 || !size ? 2 : size >= 0.01 ? 3 : 4;
}

function tiny(value, decimals) {
  const size = Math.abs(value);
  const text = size >= 10 ? value.toFixed(0) : size >= 1 ? value.toFixed(1) : value.toFixed(decimals).replace("0.", ".");
  return (Number(text) === 0 ? "0" : text).replace("-", "\u2212");
}

function legend(picture, subject, { measure, mask, range }, colour, y, width) {
  if (mask) return y;
  let x = 30;
  const entry = (shade, text, letter) => {
    const room = 30 + text.length * 6.3;
    if (x > 30 && x + room > width) { x = 30; y += 20; }
    picture.append(draw("rect", { x, y, width: 13, height: 13, rx: 2, ...filled(shade) }));
    if (letter) picture.append(draw("text", { x: x + 6.5, y: y + 7, "text-anchor": "middle", "dominant-baseline": "central", "font-size": 9, "font-weight": 600, fill: onto(shade) }, letter));
    picture.append(draw("text", { x: x + 18, y: y + 7, "dominant-baseline": "central", "font-size": 11, fill: "currentColor" }, text));
    x += room;
  };
  if (measure.form === "roles") {
    for (const role of Object.keys(data.roleColours)) {
      const count = subject.heads.filter((_, place) => rolesOf(subject, place).includes(role)).length;
      if (count) entry(data.roleColours[role], `${role} ${count}`, letters[role]);
    }
    entry(themed("none"), "no role found");
    if (subject.heads.some((_, place) => !lookedAt(subject, place))) entry("transparent", "not looked at");
  } else {
    const [least, most] = range || extent(measure.values);
    const stops = measure.form === "diverging" ? [-1, 0, 1].map((side) => side * Math.max(Math.abs(least), Math.abs(most))) : [least, (least + most) / 2, most];
    const meant = (stop) => (!measure.harm || !stop ? "" : stop * measure.harm > 0 ? ", needed" : ", in the way");
    stops.forEach((stop) => entry(colour(stop), short(stop, measure.form === "diverging") + meant(stop)));
  }
  return y + 22;
}

// One tab stop for the whole map; arrows move inside it.
function rove(picture, open) {
  const cells = [...picture.querySelectorAll("[role=gridcell]")];
  if (!cells.length) return;
  picture.cells = new Map(cells.map((cell) => [+cell.dataset.place, cell]));
  cells[0].setAttribute("tabindex", 0);
  const placeOf = (cell) => { const block = cell.closest("[role=grid]").transform.baseVal.consolidate().matrix; return [cell.at[0] + block.e, cell.at[1] + block.f]; };
  let places = null;
  const go = (from, key) => {
    places ??= new Map(cells.map((cell) => [cell, placeOf(cell)]));
    const [x, y] = places.get(from), level = key === "ArrowLeft" || key === "ArrowRight", sign = key === "ArrowRight" || key === "ArrowDown" ? 1 : -1;
    let best = null, least = Infinity;
    for (const [cell, [cx, cy]] of places) {
      const ahead = sign * (level ? cx - x : cy - y), aside = Math.abs(level ? cy - y : cx - x);
      const far = ahead + 4 * aside;
      if (ahead > .5 && aside < 60 && far < least) { best = cell; least = far; }
    }
    return best;
  };
  const focus = (cell) => { picture.querySelector("[tabindex='0']")?.setAttribute("tabindex", -1); cell.setAttribute("tabindex", 0); cell.focus({ preventScroll: false }); };
  picture.addEventListener("keydown", (event) => {
    const cell = event.target.closest("[role=gridcell]");
    if (!cell) return;
    if (event.key.startsWith("Arrow")) { const next = go(cell, event.key); if (next) focus(next); event.preventDefault(); }
    if ((event.key === "Enter" || event.key === " ") && open) { open(+cell.dataset.place, cell); event.preventDefault(); }
  });
  picture.addEventListener("click", (event) => { const cell = event.target.closest("[role=gridcell]"); if (cell && open) open(+cell.dataset.place, cell); });
  picture.addEventListener("pointermove", (event) => { const cell = event.target.closest("[role=gridcell]"); tip(cell ? cell.getAttribute("aria-label").replaceAll(", ", "\n") : "", event); });
  picture.addEventListener("pointerleave", () => tip(""));
}
