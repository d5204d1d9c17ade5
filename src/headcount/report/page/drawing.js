// Elements, with data only ever as text: nothing in a record can become markup.
const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "style") node.style.cssText = value;  // as an attribute the page's policy would forbid it
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of [children ?? []].flat()) if (child !== null) node.append(child);
  return node;
}
const make = (tag, attributes, children) => fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes, children) => fill(document.createElementNS(SVG, tag), attributes, children);
const whenIdle = (act) => (window.requestIdleCallback ? requestIdleCallback(act, { timeout: 400 }) : setTimeout(act, 50));
const byId = (id) => document.getElementById(id);
const say = (text) => { byId("said").textContent = text; };

function choices(select, names, chosen = 0) {
  select.replaceChildren(...names.map((name, at) => make("option", { value: at, selected: at === chosen }, name)));
}

// A note beside the pointer.
function tip(text, event) {
  const box = byId("tip");
  box.hidden = !text;
  if (!text) return;
  box.textContent = text;
  const { width, height } = box.getBoundingClientRect();
  box.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 4))}px`;
  box.style.top = `${event.clientY + height + 22 > innerHeight ? event.clientY - height - 10 : event.clientY + 16}px`;
}
