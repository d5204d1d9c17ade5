// Two models, data sets or epochs side by side, in one measure and on one scale.
function setUpCompare() {
  const able = data.subjects.filter((subject) => measuresOf(subject).length);
  const shared = (one, other) => measuresOf(one).map((measure) => measure.label).filter((label) => measuresOf(other).some((measure) => measure.label === label));
  const pairs = able.flatMap((one, at) => able.slice(at + 1).map((other, step) => [at, at + 1 + step]));
  const first = pairs.find(([one, other]) => shared(able[one], able[other]).length);
  byId("compare").hidden = !first;
  if (!first) return () => {};
  const left = byId("compare-left"), right = byId("compare-right"), choice = byId("compare-measure");
  choices(left, able.map((subject) => subject.label), first[0]);
  choices(right, able.map((subject) => subject.label), first[1]);

  function refill() {
    const labels = shared(able[+left.value], able[+right.value]);
    const before = choice.selectedOptions[0]?.textContent;
    choices(choice, labels, Math.max(0, labels.indexOf(before)));
    show();
  }
  function show() {
    const pair = [able[+left.value], able[+right.value]], label = choice.selectedOptions[0]?.textContent;
    const measures = onOneScale(pair.map((subject) => measuresOf(subject).find((measure) => measure.label === label)));
    const answer = byId("compare-answer");
    if (!measures[0] || !measures[1]) { answer.textContent = "These two have no measure in common."; byId("compare-table").replaceChildren(); return; }
    const range = measures[0].values ? extent([...measures[0].values, ...measures[1].values]) : null;
    [byId("compare-left-map"), byId("compare-right-map")].forEach((box, at) => {
      box.dataset.subject = data.subjects.indexOf(pair[at]);
      box.dataset.name = `${label}-${pair[at].label}`.replaceAll(/[^\w-]+/g, "-");
      box.querySelector("figcaption span").textContent = pair[at].label;
      box.redraw = () => drawMap(box.querySelector(".canvas"), pair[at], { measure: measures[at], range, open: (place, cell) => openCard(pair[at], place, cell) });
      drawBelow(box, pair[at]);
    });
    answer.textContent = measures[0].values ? alike(pair, measures) : sameRoles(pair);
    differences(pair, measures);
  }
  for (const select of [left, right]) select.addEventListener("change", refill);
  choice.addEventListener("change", show);
  refill();
  return show;
}

// Both sides diverge if there are values on both sides of 0 anywhere.
function onOneScale(measures) {
  if (!measures.every((measure) => measure?.values)) return measures;
  const [least, most] = extent(measures.flatMap((measure) => measure.values));
  const diverging = measures.some((measure) => measure.form === "diverging") || (least < 0 && most > 0);
  return measures.map((measure) => ({ ...measure, form: diverging ? "diverging" : measure.form }));
}

// Heads of both models, and where they have a value on both sides.
function measuredInBoth(pair, hasValue) {
  return inBoth(pair).filter(([, here, there]) => hasValue(0, here) && hasValue(1, there));
}

function inBoth([one, other]) {
  const places = new Map(other.heads.map((head, place) => [head, place]));
  return one.heads.map((head, place) => [head, place, places.get(head)]).filter(([, , there]) => there !== undefined);
}

function alike(pair, measures) {
  const both = measuredInBoth(pair, (side, place) => measures[side].values[place] !== null);
  const r = rankCorrelation(both.map(([, here]) => measures[0].values[here]), both.map(([, , there]) => measures[1].values[there]));
  if (!both.length) return "They have no measured heads in common.";
  const tenth = Math.max(1, Math.round(both.length / 10));
  const first = (measure, side) => {  // and all that are equal to the last of them: their order is no rank
    const values = both.map((pair) => worth(measure, pair[side])), least = [...values].sort((a, b) => b - a)[tenth - 1];
    return new Set(both.filter((_, at) => values[at] >= least).map(([head]) => head));
  };
  const [ours, theirs] = [first(measures[0], 1), first(measures[1], 2)];
  const same = [...ours].filter((head) => theirs.has(head)).length;
  const come = ours.size === 1 ? `The head that comes first on the left ${same ? "comes" : "does not come"} first on the right`
    : `Of the ${ours.size} heads that come first on the left, ${same} come first on the right`;
  return `${come}${r === null ? "" : `; over ${both.length} heads in common Spearman's r is ${short(r)}`}.`;
}

function sameRoles(pair) {
  const both = measuredInBoth(pair, (side, place) => lookedAt(pair[side], place)), roles = (subject, place) => rolesOf(subject, place).sort().join();
  const same = both.filter(([, here, there]) => roles(pair[0], here) === roles(pair[1], there)).length;
  return `${same} of ${both.length} heads in common hold the same roles on both sides.`;
}

function differences(pair, measures) {
  const both = inBoth(pair), numbers = Boolean(measures[0].values);
  const value = (at, place) => (numbers ? measures[at].values[place] : lookedAt(pair[at], place) ? rolesOf(pair[at], place).join(", ") : "not looked at");
  const rows = both.map(([head, here, there]) => {
    const [a, b] = [value(0, here), value(1, there)];
    return numbers ? [head, a, b, a === null || b === null ? null : b - a] : [head, a, b];
  });
  const signed = measures[0].form === "diverging";
  const columns = [{ name: "head", head: true }, { name: pair[0].label, number: numbers, signed }, { name: pair[1].label, number: numbers, signed }];
  if (numbers) columns.push({ name: "right \u2212 left", number: true, signed: true });
  tableOf(byId("compare-table"), "Head by head", columns, rows, (head) => openCard(pair[0], pair[0].heads.indexOf(head)));
}
