// Charts by Plotly, which is packed inside the page and unpacked once the page itself is there.
let loading = null;

function charts() {
  loading ??= (async () => {
    const packed = Uint8Array.from(atob(byId("charts").textContent), (sign) => sign.charCodeAt(0));
    const text = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
    // parts of Plotly that are not used here would add a style, which the page's policy forbids: it looks for this id first
    const styled = [...text.matchAll(/getElementById\("([0-9a-f]{64})"\)/g)].map(([, id]) => make("template", { id }));
    document.head.append(...styled);
    const script = make("script");
    script.textContent = text;
    document.head.append(script);
    return window.Plotly;
  })();
  return loading;
}

const shown = new Map();  // plot -> function that gives traces and layout

// Draw a chart as soon as the browser has time, wherever it stands, so that prints and captures of the page have it;
// again at once where it is drawn already. chart: () => ({traces, layout, onclick}).
function chartIn(box, chart) {
  const waiting = shown.has(box) && !box.dataset.ready;
  shown.set(box, chart);
  if (box.dataset.ready) return plot(box);
  box.style.minHeight = `${heightIn(box, chart().traces)}px`;  // nothing below moves once it is drawn
  if (!waiting) whenIdle(() => plot(box).catch((error) => { box.textContent = `The chart could not be drawn: ${error.message}`; }));
}

const heightIn = (box, traces) => (box.clientWidth < 480 ? 300 : 360) + 19 * (legendRows(traces, box.clientWidth) - 1);  // pixels

async function plot(box) {
  const plotly = await charts();
  const { traces, layout, onclick } = shown.get(box)();
  const ink = themed("ink"), line = themed("line");
  const axis = { gridcolor: line, zerolinecolor: line, linecolor: themed("soft"), ticks: "outside", tickcolor: line, ticklen: 4, automargin: true };
  await plotly.react(box, traces, {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", height: heightIn(box, traces), margin: { l: 52, r: 12, t: 12, b: 44 },
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: ink }, hovermode: "closest",
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 }, hoverlabel: { font: { family: getComputedStyle(document.body).fontFamily } },
    ...layout, xaxis: { ...axis, ...layout.xaxis }, yaxis: { ...axis, ...layout.yaxis },
  }, { displayModeBar: false, responsive: true, scrollZoom: false });
  if (!box.dataset.ready && onclick) box.on("plotly_click", (event) => shown.get(box)().onclick(event.points[0]));
  box.dataset.ready = "yes";
  box.style.minHeight = "";
}

// Rows of a legend above a chart of this width, whose entries are as wide as the widest.
function legendRows(traces, width) {
  const names = traces.filter((trace) => trace.showlegend !== false && trace.name).map((trace) => trace.name.length);
  const columns = Math.max(1, Math.floor((width - 64) / (45 + 6.2 * Math.max(0, ...names))));
  return Math.max(1, Math.ceil(names.length / columns));
}

const redrawCharts = () => { for (const box of shown.keys()) if (box.dataset.ready) plot(box); };
// Text for Plotly, which reads some markup: shown as it is.
const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

// Two measures of every head against each other.
function setUpRelation() {
  const subject = () => data.subjects[+byId("map-subject").value];
  const x = byId("relation-x"), y = byId("relation-y"), colour = byId("relation-colour");
  const refill = () => {
    const names = subject().measures.map((measure) => measure.label);
    byId("relation").hidden = names.length < 2;
    if (names.length < 2) return;
    choices(x, names, 0);
    choices(y, names, 1);
    colour.parentElement.hidden = !subject().roles;
    show();
  };
  const show = () => {
    const across = subject().measures[+x.value], up = subject().measures[+y.value];
    const r = rankCorrelation(across.values, up.values);
    byId("relation-caption").textContent = `One dot per head; choose one to open its card. ${r === null ? "" : `Spearman's r = ${short(r)}.`}`;
    chartIn(byId("relation-plot"), () => relationChart(subject(), across, up, subject().roles ? colour.value : "kind"));
  };
  for (const select of [x, y, colour]) select.addEventListener("change", show);
  refill();
  return refill;
}

const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "cross", "x", "star", "pentagon"];
function relationChart(subject, across, up, by) {
  const groups = new Map();
  subject.heads.forEach((head, place) => {
    if (across.values[place] === null || up.values[place] === null) return;
    const group = by === "role" ? rolesOf(subject, place)[0] || (lookedAt(subject, place) ? "no role" : "not looked at") : parsed(head).kind;
    if (!groups.has(group)) groups.set(group, []);
    groups.get(group).push(place);
  });
  const colours = by === "role" ? { ...data.roleColours, "no role": "#9A9A9A", "not looked at": "#D0D0D0" } : data.kindColours;
  const traces = [...groups].map(([group, places], number) => ({
    type: "scatter", mode: "markers", name: plain(group), customdata: places, text: places.map((place) => plain(described(subject, null, place)).replaceAll("\n", "<br>")),
    x: places.map((place) => across.values[place]), y: places.map((place) => up.values[place]), hovertemplate: "%{text}<br>%{x:.3g}, %{y:.3g}<extra></extra>",
    marker: { size: 9, color: colours[group] || "#0072B2", symbol: SYMBOLS[number % SYMBOLS.length], opacity: .85 } }));
  return { traces, layout: { xaxis: { title: { text: plain(across.label) } }, yaxis: { title: { text: plain(up.label) } } }, onclick: (point) => openCard(subject, point.customdata) };
}

function rankCorrelation(one, other) {
  const both = one.map((value, at) => [value, other[at]]).filter(([a, b]) => a !== null && b !== null && b !== undefined);
  if (both.length < 4) return null;
  const ranks = (values) => {
    const first = new Map(), last = new Map();
    [...values].sort((a, b) => a - b).forEach((value, at) => { if (!first.has(value)) first.set(value, at); last.set(value, at); });
    return values.map((value) => (first.get(value) + last.get(value)) / 2);
  };
  const [a, b] = [ranks(both.map((pair) => pair[0])), ranks(both.map((pair) => pair[1]))];
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [ma, mb] = [mean(a), mean(b)];
  let top = 0, left = 0, right = 0;
  a.forEach((value, at) => { top += (value - ma) * (b[at] - mb); left += (value - ma) ** 2; right += (b[at] - mb) ** 2; });
  return left && right ? top / Math.sqrt(left * right) : null;
}
