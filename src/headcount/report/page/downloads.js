// Every figure as SVG and PNG, every table as CSV.
function save(name, blob) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// The picture as a file of its own: dark ink on white, whatever the theme of the page.
function standalone(svg) {
  const box = svg.viewBox.baseVal;
  const copy = svg.cloneNode(true);
  copy.setAttribute("xmlns", SVG);
  copy.setAttribute("width", box.width);
  copy.setAttribute("height", box.height);
  copy.style.cssText = "color:#222222;background:#ffffff;font-family:Helvetica,Arial,sans-serif";
  copy.prepend(draw("rect", { x: box.x, y: box.y, width: box.width, height: box.height, fill: "#ffffff" }));
  return { text: new XMLSerializer().serializeToString(copy), width: box.width, height: box.height };
}

function rasterised({ text, width, height }) {
  return new Promise((done, failed) => {
    const image = new Image(), enlarged = Math.max(2, Math.min(4, 2400 / width));
    image.onload = () => {
      const canvas = make("canvas", { width: Math.round(width * enlarged), height: Math.round(height * enlarged) });
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob(done, "image/png");
    };
    image.onerror = () => failed(new Error("the picture could not be drawn"));
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
  });
}

async function download(figure, format) {
  const name = `${figure.dataset.name}.${format}`;
  if (figure.classList.contains("chart")) {
    const plotly = await charts();
    const url = await plotly.toImage(figure.querySelector(".plot"), { format, width: 900, height: 520, scale: format === "png" ? 2 : 1 });
    save(name, await unpacked(url));
    return;
  }
  // drawn for light paper: colours of values must not come from the dark theme
  const picture = await inLight(figure, () => standalone(figure.querySelector("svg")));
  save(name, format === "svg" ? new Blob([picture.text], { type: "image/svg+xml" }) : await rasterised(picture));
}

function unpacked(url) {
  const [head, body] = [url.slice(0, url.indexOf(",")), url.slice(url.indexOf(",") + 1)];
  const type = head.slice(5).split(";")[0];
  if (!head.endsWith("base64")) return new Blob([decodeURIComponent(body)], { type });
  return new Blob([Uint8Array.from(atob(body), (sign) => sign.charCodeAt(0))], { type });
}

function inLight(figure, act) {
  if (root.dataset.theme !== "dark" || !figure.redraw) return act();
  root.dataset.theme = "light";
  try { figure.redraw(); return act(); } finally { root.dataset.theme = "dark"; figure.redraw(); }
}

function addTools(figure) {
  const tools = figure.querySelector("[data-tools]");
  tools.replaceChildren(...["svg", "png"].map((format) =>
    make("button", { type: "button", "aria-label": `Download as ${format.toUpperCase()}: ${figure.dataset.name}`,
      onclick: () => download(figure, format).catch((error) => say(`The download failed: ${error.message}`)) }, format.toUpperCase())));
}

async function copyText(text, button, done) {
  try { await navigator.clipboard.writeText(text); } catch {
    const area = make("textarea", { class: "unseen" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  const before = button.textContent;
  button.textContent = "Copied";
  say(done);
  setTimeout(() => { button.textContent = before; }, 1500);
}
