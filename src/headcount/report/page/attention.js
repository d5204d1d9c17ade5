// Where one head looks in one sentence: tokens that look on the left, tokens looked at on the right, and the
// dependency tree as arcs beside the words.
const ROW = 19, ARCS = 58, LEFT = 178, RIGHT = 306;  // ARCS: where they end; relations stand between them and the words

function drawAttention(example, head, only) {
  const { kind } = parsed(head);
  const [from, to] = (example.sides[kind] || ["source", "source"]).map((side) => example.tokens[side]);
  const rows = example.attention[head].map((row) => row.split(" ").map(Number));
  const height = ROW * Math.max(from.length, to.length) + 14;
  const middle = (at) => 12 + at * ROW;
  const picture = draw("svg", { viewBox: `0 0 430 ${height}`, role: "img", "aria-label": spoken(rows, from, to) });
  const lines = draw("g", { fill: "none", stroke: themed("high"), "stroke-linecap": "round" });
  rows.forEach((row, query) => row.forEach((weight, key) => {
    if (weight < 0.03 || (only !== null && only !== query)) return;
    lines.append(draw("path", { d: `M${LEFT + 4} ${middle(query)}C${LEFT + 60} ${middle(query)} ${RIGHT - 60} ${middle(key)} ${RIGHT - 4} ${middle(key)}`, "stroke-width": 0.6 + 2.6 * weight, "stroke-opacity": 0.15 + 0.85 * weight }));
  }));
  picture.append(lines);
  const tree = treeBeside(example, from, kind, middle, rows, to);
  if (tree) picture.append(tree);
  from.forEach((token, at) => picture.append(draw("text", { class: "token", "data-query": at, x: LEFT, y: middle(at), "text-anchor": "end", "dominant-baseline": "central", "font-weight": only === at ? 700 : 400 }, clipped(token))));
  to.forEach((token, at) => picture.append(draw("text", { x: RIGHT, y: middle(at), "dominant-baseline": "central",
    opacity: only === null ? 1 : 0.35 + 0.65 * (rows[only]?.[at] || 0) }, clipped(token) + (only === null ? "" : `  ${percent(rows[only]?.[at] || 0)}`))));
  return picture;
}

const clipped = (token) => (token.length > 14 ? token.slice(0, 13) + "\u2026" : token);
const percent = (share) => (share >= 0.005 ? `${Math.round(100 * share)}%` : "");

// Arcs of the tree left of the words; green where the head looks most at the other end of the dependency.
function treeBeside(example, tokens, kind, middle, rows, keys) {
  const tree = example.tree;
  if (!tree || tokens !== keys || example.sides[kind][0] !== tree.side) return null;
  const group = draw("g", { fill: "none", "font-size": 9 });
  const top = rows.map((row) => row.indexOf(Math.max(...row)));
  tree.parents.forEach((head, word) => {
    if (head < 0 || !tree.words[word].length || !tree.words[head].length) return;
    const [one, other] = [middle(tree.words[word][0]), middle(tree.words[head][0])];
    const follows = (a, b) => tree.words[a].some((place) => tree.words[b].includes(top[place]));
    const hit = follows(word, head) || follows(head, word);
    const depth = Math.min(74, 10 + 10 * Math.abs(word - head));
    const colour = hit ? data.roleColours.syntactic || "#009E73" : "currentColor";
    group.append(draw("path", { d: `M${ARCS} ${one}C${ARCS - depth} ${one} ${ARCS - depth} ${other} ${ARCS} ${other}`, stroke: colour, "stroke-opacity": hit ? 1 : .35, "stroke-width": hit ? 1.8 : 1 }));
    group.append(draw("text", { x: ARCS + 4, y: one, "dominant-baseline": "central", style: "font-size:9px", "fill-opacity": hit ? 1 : .6 }, tree.relations[word]));
  });
  return group;
}

function spoken(rows, from, to) {
  const said = rows.map((row, at) => `${from[at]} looks at ${to[row.indexOf(Math.max(...row))]} ${percent(Math.max(...row))}`);
  return `Attention: ${said.join("; ")}.`;
}

// The sentences in which the head was seen, one at a time; a click on a token shows where it alone looks.
function attentionOf(subject, head) {
  const seen = subject.examples.filter((example) => example.attention[head]);
  if (!seen.length) return null;
  const box = make("div"), choose = make("select", { "aria-label": "Example sentence" });
  choices(choose, seen.map((example) => { const text = Object.values(example.tokens)[0].join(" "); return text.length > 46 ? text.slice(0, 45) + "\u2026" : text; }));
  let only = null;
  const show = () => {
    const picture = drawAttention(seen[+choose.value], head, only);
    picture.addEventListener("click", (event) => { const token = event.target.closest("[data-query]"); if (token) { only = only === +token.dataset.query ? null : +token.dataset.query; show(); } });
    picture.addEventListener("pointermove", (event) => { const token = event.target.closest("[data-query]"); tip(token ? "Choose to see where it alone looks" : "", event); });
    picture.addEventListener("pointerleave", () => tip(""));
    box.replaceChildren(picture);
  };
  choose.addEventListener("change", () => { only = null; show(); });
  show();
  const from = seen[0].tree && seen[0].sides[parsed(head).kind]?.[0] === seen[0].tree.side;
  const note = `Left looks at right; the thicker, the more${from ? ". Arcs are dependencies, green where the head looks at the other word most" : ""}.`;
  return make("div", {}, [choose, box, make("p", { class: "note" }, note)]);
}
