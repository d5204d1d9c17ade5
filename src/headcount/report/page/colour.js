// What the page knows.
const data = JSON.parse(document.getElementById("data").textContent);

// Colours of values, in the theme of the page. A value is also written, so colour is never all there is.
const root = document.documentElement;
const themes = {};  // theme -> colours by name: asking the browser for each of thousands of squares takes seconds
const themed = (name) => (themes[root.dataset.theme] ??= {})[name] ??= getComputedStyle(root).getPropertyValue(`--${name}`).trim();
const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
const hex = (parts) => "#" + parts.map((part) => Math.round(part).toString(16).padStart(2, "0")).join("");
const blend = (from, to, share) => hex(rgb(from).map((part, at) => part + (rgb(to)[at] - part) * share));
const onto = (colour) => {  // ink that can be read on a colour
  const [red, green, blue] = rgb(colour);
  return 0.299 * red + 0.587 * green + 0.114 * blue < 140 ? "#ffffff" : "#1b1b1b";
};

// What values of a measure look like: range is [lowest, highest] over all that is compared.
function scale(measure, range) {
  const low = themed("low"), high = themed("high");
  const [above, below] = measure.harm ? [themed("worse"), themed("better")] : [high, themed("below")];  // of what is not a loss neither side is worse
  const none = themed("none");
  const [least, most] = range || extent(measure.values);
  if (measure.form === "diverging") {
    const reach = Math.max(Math.abs(least), Math.abs(most)) || 1;
    return (value) => {
      if (value === null) return none;
      const share = Math.min(1, Math.sqrt(Math.abs(value) / reach));  // small changes stay visible beside large ones
      return blend(low, value * (measure.harm || 1) > 0 ? above : below, share);
    };
  }
  return (value) => (value === null ? none : blend(low, high, most > least ? (value - least) / (most - least) : 0.5));
}

function extent(values) {
  let least = Infinity, most = -Infinity;
  for (const value of values) if (value !== null) { least = Math.min(least, value); most = Math.max(most, value); }
  return least <= most ? [least, most] : [0, 0];
}

const NO_CHANGE = 1e-12;  // a difference below this is of rounding
// A percentage without decimals, rounded as in the tables of the page: half to even.
function wholePercent(share) {
  const value = 100 * share, down = Math.floor(value);
  return `${value - down === 0.5 ? down + (down % 2) : Math.round(value)}%`;
}

// Three significant digits, a true minus, no trailing noise.
function short(value, signed = false) {
  if (value === null || value === undefined) return "\u2013";
  if (signed && Math.abs(value) < NO_CHANGE) value = 0;
  const size = Math.abs(value);
  let text = size !== 0 && (size < 0.001 || size >= 1e6) ? value.toExponential(1) : value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
  if (signed && value > 0) text = "+" + text;
  return text.replaceAll("-", "\u2212");
}
