// The card of a head: all that is known of it.
let opener = null;

// A rank; of heads that tie the first and last one that they could have.
function rankOf(measure, place) {
  const mine = worth(measure, place), all = measure.values.flatMap((value, other) => (value === null ? [] : [worth(measure, other)]));
  const first = all.filter((other) => other > mine).length + 1, last = all.filter((other) => other >= mine).length;
  return `${first === last ? first : `${first} to ${last}`} of ${all.length}`;
}

const bounds = (low, high, signed) => (low === null || low === undefined ? "" : `${short(low, signed)} to ${short(high, signed)}`);
const within = (low, high, signed) => (low === null ? "no 95% interval" : `95% ${bounds(low, high, signed)}`);  // too few examples

function smallTable(names, rows) {
  return make("table", {}, [make("thead", {}, make("tr", {}, names.map(([name, number]) => make("th", { scope: "col", class: number ? "number" : null }, name)))),
    make("tbody", {}, rows.map((row) => make("tr", {}, row.map((cell, at) => make("td", { class: names[at][1] ? "number" : null }, cell)))))]);
}

function scoresPart(subject, place) {
  const rows = subject.measures.filter((measure) => measure.values[place] !== null).map((measure) => [
    measure.label, short(measure.values[place], measure.form === "diverging"),
    bounds(measure.low?.[place], measure.high?.[place], measure.form === "diverging"), rankOf(measure, place)]);
  if (!rows.length) return [];
  return [make("h3", {}, "Numbers"), smallTable([["measure"], ["value", true], ["95% interval", true], ["rank", true]], rows)];
}

function effectPart(subject, place) {
  const effect = subject.effects?.heads[place];
  if (!effect) return [];
  const { metric, alpha, better, distance } = subject.effects, harm = better ? -effect.difference : effect.difference;
  if (distance) return [make("h3", {}, "Masked alone"), make("p", {}, `${metric} is ${short(effect.difference)} without it (${within(effect.low, effect.high)}). A distance is never negative: only sizes can be compared.`)];
  const sure = effect.corrected < alpha;
  const verdict = !sure ? `${metric} does not change significantly without it` : harm > 0 ? `${metric} is significantly worse without it` : `${metric} is significantly better without it`;
  return [make("h3", {}, "Masked alone"), make("p", {}, `${verdict}: ${short(effect.difference, true)} (${within(effect.low, effect.high, true)}), p = ${short(effect.p)}, after Holm's correction ${short(effect.corrected)}.`)];
}

// The causal test of a role: what is lost if the head does nothing else.
function playedPart(subject, place) {
  const played = subject.played?.heads[place];
  if (!played) return [];
  const change = (one) => `${short(one.difference, true)} (${within(one.low, one.high, true)})`, kept = played.share_kept;
  const share = kept ? `Of what the head is worth its role gives ${percentOf(kept.value)} (95% ${percentOf(kept.low)} to ${percentOf(kept.high)}).` : "After Holm's correction for all heads tested like this it may be worth nothing: the share that its role gives cannot be told.";
  return [make("h3", {}, "Its role alone"), make("p", {}, `Change of ${subject.played.metric} if it does nothing but ${played.role} ${played.label}: ${change(played.alone)}; without the head: ${change(played.off)}. ${share}`)];
}

function rolesPart(subject, place) {
  if (!subject.roles) return [];
  if (!lookedAt(subject, place)) return [make("h3", {}, "Roles"), make("p", {}, "This head was not looked at.")];
  const held = subject.roles[place];
  const badges = held.map((one) => make("span", { class: "badge" }, [make("i", { style: `background:${data.roleColours[one.role] || "#999999"}` }), `${one.role} ${one.label}`]));
  const evidence = subject.evidence?.[place] || [];
  const rows = evidence.map((one) => [`${one.role} ${one.label}`, percentOf(one.value), one.low === null ? "" : `${percentOf(one.low)} to ${percentOf(one.high)}`, percentOf(one.baseline), one.verdict]);
  return [make("h3", {}, "Roles"), make("p", {}, badges.length ? badges : "No role was found."),
    ...(rows.length ? [smallTable([["evidence"], ["value", true], ["95% interval", true], ["baseline", true], ["held"]], rows)] : [])];
}
const percentOf = (share) => (share === null || share === undefined ? "\u2013" : wholePercent(share));

function pruningPart(subject, place) {
  const rows = [];
  for (const curve of subject.curves) {
    if (!curve.known || curve.control) continue;
    const counted = curve.points[curve.points.length - 1].mask[place] === "0" || curve.whole;
    if (counted) rows.push([curve.label, goneWith(curve, place)]);
  }
  for (const method of subject.gone) rows.push([method.label, method.heads.includes(subject.heads[place]) ? "removed" : "stays"]);
  return rows.length ? [make("h3", {}, "When it goes"), smallTable([["pruned"], ["this head"]], rows)] : [];
}

// When a head goes; if each size was chosen anew, a smaller model may have it again.
function goneWith(curve, place) {
  const first = curve.points.findIndex((one) => one.mask[place] === "0");
  if (first < 0) return "stays to the end";
  const point = curve.points[first], from = curve.points.slice(first);
  const shares = (bit) => from.filter((one) => one.mask[place] === bit).map((one) => wholePercent(one.share)).join(", ");
  if (shares("1")) return `gone with ${shares("0")}, but not with ${shares("1")}`;
  return `gone with ${wholePercent(point.share)} (${point.removed} ${point.removed === 1 ? "head" : "heads"})`;
}

function openCard(subject, place, from) {
  const card = byId("card"), head = subject.heads[place], { kind, layer, index } = parsed(head);
  opener = from || opener;
  const step = (by) => openCard(subject, (place + by + subject.heads.length) % subject.heads.length);
  const top = make("div", { class: "top" }, [
    make("div", {}, [make("h2", { id: "card-title", tabindex: -1 }, head), make("div", { class: "note" }, `${kind} attention, layer ${layer}, head ${index}${data.subjects.length > 1 ? `, ${subject.label}` : ""}`)]),
    make("span", { class: "tools" }, [
      make("button", { type: "button", "aria-label": "Head before", onclick: () => step(-1) }, "\u2190"),
      make("button", { type: "button", "aria-label": "Head after", onclick: () => step(1) }, "\u2192"),
      make("button", { type: "button", id: "card-link", onclick: (event) => copyText(location.href.split("#")[0] + headLink(subject, place), event.currentTarget, "The link was copied.") }, "Copy link"),
      make("button", { type: "button", id: "card-close", "aria-label": "Close the card", onclick: closeCard }, "\u2715")])]);
  const attention = attentionOf(subject, head);
  const looks = attention || make("p", { class: "note" }, "No example sentences were recorded; headcount study examples records some.");
  card.replaceChildren(top, ...effectPart(subject, place), ...rolesPart(subject, place), ...playedPart(subject, place), make("h3", {}, "Where it looks"), looks,
    ...scoresPart(subject, place), ...pruningPart(subject, place));
  explain(card, "h3, p");
  showAddress(headLink(subject, place));
  card.hidden = false;
  card.scrollTop = 0;
  mark(subject, place);
  byId("card-title").focus({ preventScroll: true });
  tip("");
}

const marked = [];  // squares of the head whose card is open
function mark(subject, place) {
  for (const cell of marked.splice(0)) cell.removeAttribute("aria-selected");
  if (place === null) return;
  for (const map of document.querySelectorAll(`[data-subject="${data.subjects.indexOf(subject)}"] .canvas > svg`)) {
    const cell = map.cells?.get(place);
    if (cell) { cell.setAttribute("aria-selected", "true"); marked.push(cell); }
  }
}

function closeCard() {
  byId("card").hidden = true;
  showAddress("");
  mark(null, null);
  opener?.focus?.({ preventScroll: true });
}
