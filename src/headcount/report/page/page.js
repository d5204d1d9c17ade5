// The start: what stands in the page comes alive.
const redraws = [];

function setUpMap() {
  const which = byId("map-subject"), measure = byId("map-measure"), box = byId("map");
  choices(which, data.subjects.map((subject) => subject.label));
  byId("map-subject-label").hidden = data.subjects.length < 2;
  const subject = () => data.subjects[+which.value];
  const open = (place, cell) => openCard(subject(), place, cell);
  const show = () => {
    const chosen = mapMeasures(subject())[+measure.value], roles = byId("role-map");
    roles.hidden = !hasBoth(subject());
    if (!roles.hidden) { roles.redraw = () => drawMap(roles.querySelector(".canvas"), subject(), { measure: roleMeasure, open }); drawBelow(roles, subject()); }
    box.dataset.subject = which.value;
    if (!subject().heads.length) { box.querySelector(".canvas").textContent = "These records say nothing of single heads."; return; }
    const options = chosen ? { measure: chosen, sorted: byId("map-sort").checked, open } : { mask: "1".repeat(subject().heads.length), open };
    box.redraw = () => drawMap(box.querySelector(".canvas"), subject(), options);
    box.redraw();
    byId("map-caption").textContent = !chosen ? "All heads." : chosen.form === "roles" ? "What each head does; a letter per role."
      : chosen.form === "diverging" ? `${capital(chosen.label)}; the stronger the colour, the ${chosen.harm ? "larger the change" : "further from 0"}.` : `${capital(chosen.label)}; darker is higher.`;
  };
  const fill = () => { choices(measure, mapMeasures(subject()).map((one) => one.label)); measure.value = String(importance(subject())); };
  const refill = () => { fill(); show(); relation?.(); allHeads(); };
  const allHeads = () => {
    if (!byId("all-heads").open) return;
    const own = subject();
    const columns = [{ name: "head", head: true }, ...(own.roles ? [{ name: "roles" }] : []), ...own.measures.map((one) => ({ name: one.label, number: true, signed: one.form === "diverging" }))];
    const rows = own.heads.map((head, place) => [head, ...(own.roles ? [(own.roles[place] || []).map((one) => `${one.role} ${one.label}`).join("; ")] : []), ...own.measures.map((one) => one.values[place])]);
    tableOf(byId("all-heads-table"), `Heads of ${own.label}`, columns, rows, (head) => openCard(own, own.heads.indexOf(head)));
  };
  which.addEventListener("change", refill);
  measure.addEventListener("change", show);
  byId("map-sort").addEventListener("change", show);
  byId("all-heads").addEventListener("toggle", allHeads);
  fill();
  show();
  const relation = setUpRelation();
  redraws.push(show);
}
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function setUpTheme() {
  const button = byId("theme"), system = matchMedia("(prefers-color-scheme: dark)");
  const set = (dark) => {
    root.dataset.theme = dark ? "dark" : "light";
    button.setAttribute("aria-pressed", String(dark));
    button.textContent = dark ? "Light" : "Dark";
    button.setAttribute("aria-label", dark ? "Light theme" : "Dark theme");
  };
  set(system.matches);
  const change = (dark) => { set(dark); redraws.forEach((redraw) => redraw()); redrawCharts(); };
  button.addEventListener("click", () => change(root.dataset.theme !== "dark"));
  system.addEventListener("change", (event) => change(event.matches));
  addEventListener("beforeprint", () => {
    const closed = document.querySelectorAll("details.how:not([open])");
    closed.forEach((one) => { one.open = true; });
    addEventListener("afterprint", () => closed.forEach((one) => { one.open = false; }), { once: true });
    if (root.dataset.theme === "dark") { change(false); addEventListener("afterprint", () => change(true), { once: true }); }
  });
}

setUpTheme();
setUpMap();
redraws.push(setUpSlider(), setUpCompare());
document.querySelectorAll("table[data-sortable]").forEach(enliven);
document.querySelectorAll("figure").forEach(addTools);
explainPage();
followAddress();
addEventListener("hashchange", followAddress);
addEventListener("keydown", (event) => { if (event.key === "Escape") { tip(""); if (!byId("card").hidden) closeCard(); } });
let width = innerWidth, waiting = 0;
addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  clearTimeout(waiting);
  waiting = setTimeout(() => redraws.forEach((redraw) => redraw()), 150);
});
