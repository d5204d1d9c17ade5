// Terms are explained where they are pointed at, focused or tapped; the explanations stand at the end of the page.
const explanations = new Map();  // a form of a term, in small letters -> the element that explains it
for (const term of document.querySelectorAll("#terms dt")) for (const form of term.dataset.forms.split("|")) explanations.set(form.toLowerCase(), term.nextElementSibling);
const termPattern = (() => {
  const forms = [...explanations.keys()].sort((one, other) => other.length - one.length).map((form) => form.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`(?<![\\w.-])(?:${forms.join("|")})(?![.-]?\\w)`, "gi");  // not inside encoder.1.3
})();

// Mark the first mention of each term inside a box.
function explain(box, selector) {
  const seen = new Set();
  for (const block of box.querySelectorAll(selector)) {
    const walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT, (node) => (node.parentElement.closest("a, button, code, svg, .term") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT));
    const texts = [];
    while (walker.nextNode()) texts.push(walker.currentNode);
    for (const node of texts) markTerms(node, seen);
  }
}

function markTerms(node, seen) {
  const text = node.data, parts = [];
  let end = 0;
  for (const match of text.matchAll(termPattern)) {
    const explanation = explanations.get(match[0].toLowerCase());
    if (seen.has(explanation)) continue;
    seen.add(explanation);
    parts.push(text.slice(end, match.index), make("span", { role: "button", tabindex: 0, class: "term", "aria-describedby": explanation.id }, match[0]));
    end = match.index + match[0].length;
  }
  if (parts.length) node.replaceWith(...parts, text.slice(end));
}

function explainPage() {
  document.querySelectorAll("main > section").forEach((section) => explain(section, ".tile p, .answer, .hint, .how p"));
  const show = (event) => {
    const term = event.target.closest?.(".term");
    if (!term) return;
    const { left, bottom } = term.getBoundingClientRect();
    tip(byId(term.getAttribute("aria-describedby")).textContent, { clientX: left - 14, clientY: bottom - 10 });
  };
  for (const name of ["pointerover", "focusin", "click"]) document.addEventListener(name, show);
  for (const name of ["pointerout", "focusout"]) document.addEventListener(name, (event) => { if (event.target.closest?.(".term")) tip(""); });
}
