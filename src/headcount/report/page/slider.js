// The slider over the number of heads kept: which, how good, how fast. Every stop was measured.
const LINE_COLOURS = ["#0072B2", "#E69F00", "#009E73", "#D55E00", "#8B5FBF", "#56B4E9"];

function setUpSlider() {
  const able = data.subjects.filter((subject) => subject.curves.length);
  byId("slider").hidden = !able.length;
  if (!able.length) return () => {};
  const which = byId("slider-subject"), curve = byId("slider-curve"), range = byId("slider-range");
  choices(which, able.map((subject) => subject.label));
  byId("slider-subject-label").hidden = able.length < 2;
  const subject = () => able[+which.value], line = () => subject().curves[+curve.value];
  const stop = () => line().points[line().points.length - 1 - +range.value];  // right: all heads

  function refill() {
    choices(curve, subject().curves.map((one) => one.label));
    restart();
  }
  function restart() {
    range.max = line().points.length - 1;
    range.value = range.max;
    show();
  }
  function show() {
    const point = stop(), first = line().points[0], total = subject().heads.length;
    const kept = line().known ? [...point.mask].filter((bit) => bit === "1").length : total - point.removed;
    byId("slider-kept").textContent = `${kept} of ${total}`;
    range.setAttribute("aria-valuetext", `${kept} of ${total} heads kept, ${line().metric} ${short(point.value)}`);
    const change = point.value - first.value;
    byId("slider-facts").replaceChildren(
      ...fact(line().metric, short(point.value), point.low === null ? "" : `95% ${bounds(point.low, point.high)}`),
      ...fact("Change", short(change, true), `from ${short(first.value)} with all heads`),
      ...fact("Heads", `${kept} kept`, keptByKind(subject(), point, line().known)),
      ...speedFact(subject(), kept));
    const box = byId("slider-mask");
    box.hidden = !line().known;
    box.dataset.subject = data.subjects.indexOf(subject());
    box.redraw = () => drawMap(box.querySelector(".canvas"), subject(), { mask: point.mask, open: (place, cell) => openCard(subject(), place, cell) });
    if (line().known) drawBelow(box, subject());
    chartIn(byId("slider-plot"), () => tradeOff(subject(), line(), point));
  }
  which.addEventListener("change", refill);
  curve.addEventListener("change", restart);
  range.addEventListener("input", show);
  refill();
  return show;
}

const fact = (name, value, note) => [make("div", {}, [make("dt", {}, name), make("dd", {}, [value, note ? make("small", {}, note) : null])])];

function keptByKind(subject, point, known) {
  if (!known) return "";
  const left = new Map();
  subject.heads.forEach((head, place) => { const { kind } = parsed(head); left.set(kind, (left.get(kind) || 0) + (point.mask[place] === "1")); });
  return [...left].map(([kind, count]) => `${count} ${kind}`).join(", ");
}

// The timed model whose number of heads is nearest: nothing is interpolated.
function speedFact(subject, kept) {
  if (!subject.speed.length) return [];
  const nearest = subject.speed.reduce((best, row) => (Math.abs(row.heads - kept) < Math.abs(best.heads - kept) ? row : best));
  const rows = subject.speed.filter((row) => row.heads === nearest.heads && row.model === nearest.model && row.what === "reading");
  const row = rows.reduce((best, one) => (one.batch > best.batch ? one : best), rows[0] || nearest);
  return fact("Speed", `${row.faster.toFixed(2)}\u00d7`, `${row.model}, timed with ${row.heads} heads: ${row.what}, batch ${row.batch}, ${row.length} tokens, ${within(row.low, row.high)}`);
}

function tradeOff(subject, line, point) {
  const alike = subject.curves.filter((curve) => curve.metric === line.metric);
  const random = alike.filter((curve) => curve.control);
  const traces = [];
  random.forEach((curve, number) => traces.push({ type: "scatter", mode: "lines", name: "random orders", legendgroup: "random", showlegend: number === 0,
    line: { color: "#9A9A9A", width: 1 }, x: curve.points.map((one) => 100 * one.share), y: curve.points.map((one) => one.value), hovertemplate: "random: %{y:.3g}<extra></extra>" }));
  const others = alike.filter((curve) => !curve.control && (curve.whole || curve === line || !line.whole));
  const groups = [...new Set(others.map((curve) => curve.group))];
  others.forEach((curve, at) => {
    const number = groups.indexOf(curve.group), first = others.findIndex((other) => other.group === curve.group) === at;
    const colour = LINE_COLOURS[number % LINE_COLOURS.length], x = curve.points.map((one) => 100 * one.share);
    if (curve === line && curve.points[0].low !== null) traces.push({ type: "scatter", mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false, legendgroup: curve.group, fill: "toself", fillcolor: colour + "22",
      x: [...x, ...[...x].reverse()], y: [...curve.points.map((one) => one.low), ...curve.points.map((one) => one.high).reverse()] });
    traces.push({ type: "scatter", mode: "lines+markers", name: plain(curve.group), legendgroup: curve.group, showlegend: first, line: { color: colour, width: curve === line ? 3 : 1.6 }, marker: { size: 7, symbol: SYMBOLS[number % SYMBOLS.length] },
      x, y: curve.points.map((one) => one.value), hovertemplate: `${plain(curve.label)}: %{y:.3g} with %{x:.0f}% gone<extra></extra>` });
  });
  const at = 100 * point.share;
  return { traces, layout: { xaxis: { title: { text: "heads gone (%)" } }, yaxis: { title: { text: plain(line.metric) } },
    shapes: [{ type: "line", x0: at, x1: at, yref: "paper", y0: 0, y1: 1, line: { color: themed("ink"), width: 1.2, dash: "dash" } }] } };
}
