// The widget of a notebook (widget.py): the maps of traces side by side, and below each the bars of the step, which are drawn when
// all maps are seen. It draws what Python has packed for a choice of layer, head and level; a choice that is not there asks the kernel for it.
const PATIENCE = 8000; // ms until it says that no kernel answers
const STYLE = `.attnviz-view { font: 14px/1.45 system-ui, sans-serif; container-type: inline-size; }
.attnviz-view .bar { display: flex; flex-wrap: wrap; gap: 4px 20px; align-items: center; margin-bottom: 8px; }
.attnviz-view label { display: flex; gap: 6px; align-items: center; }
.attnviz-view input[type=range] { width: 14em; max-width: 100%; }
.attnviz-view .maps { display: grid; gap: 8px 32px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 340px), 1fr)); }
.attnviz-view .maps > section { min-width: 0; }
.attnviz-view h4, .attnviz-view p { margin: 0; overflow-wrap: anywhere; }`;

// Plotly, once for all views and figures of a page.
function plotly() {
  return (window.attnvizPlotly ??= (async () => {
    if (window.Plotly) return;
    const script = document.createElement("script"), { define } = window;
    script.textContent = await unpack(PLOTLY);
    window.define = undefined; // where a page has require.js, Plotly would tell it alone
    document.head.append(script);
    window.define = define;
    Plotly.setPlotConfig({ logging: 0 }); // it warns of the colour of each cell of an image that the pointer passes
  })());
}

function isDark(theme) {
  const { body, documentElement } = document, { jpThemeLight } = body.dataset;
  if (theme !== "auto") return theme === "dark";
  if (jpThemeLight !== undefined) return jpThemeLight === "false"; // JupyterLab, and pages that nbconvert makes
  const named = `${body.className} ${documentElement.className}`.match(/\b(vscode-)?(dark|light)\b/); // VS Code, marimo
  return named ? named[2] === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

const element = (kind, parts = {}) => Object.assign(document.createElement(kind), parts);

// A control with its label; choose(value) is called when a person changes it.
function control(bar, name, input, value, choose) {
  const label = element("label", { textContent: name });
  label.append(input);
  bar.append(label);
  input.addEventListener("input", () => choose(value(input)));
  return input;
}

function select(bar, name, model, trait, count) {
  if (count < 2) return () => {};
  const box = element("select"), mean = trait === "head" ? [["", "mean of all"]] : [];
  for (const [value, text] of [...mean, ...Array.from({ length: count }, (_, i) => [String(i), String(i + 1)])]) {
    box.append(element("option", { value, textContent: text }));
  }
  control(bar, name, box, ({ value }) => (value === "" ? null : Number(value)), (value) => change(model, trait, value));
  return () => { box.value = model.get(trait) ?? ""; };
}

function tick(bar, name, model, trait) {
  const box = control(bar, name, element("input", { type: "checkbox" }), ({ checked }) => checked, (value) => change(model, trait, value));
  return () => { box.checked = model.get(trait); };
}

function change(model, trait, value) {
  model.set(trait, value);
  model.save_changes();
}

function controls(el, model) {
  const bar = element("div", { className: "bar" }), { heads, layers } = model.get("_counts");
  const range = control(bar, "Step", element("input", { type: "range", min: 1 }), ({ value }) => value - 1, (step) => change(model, "step", step));
  const output = element("output");
  range.after(output);
  const shown = [
    select(bar, "Layer", model, "layer", layers), select(bar, "Head", model, "head", heads),
    tick(bar, "Words", model, "words"), tick(bar, "Special tokens", model, "special"),
  ];
  el.append(bar);
  return (steps) => {
    const step = Math.min(model.get("step"), steps - 1);
    Object.assign(range, { max: steps, value: step + 1 });
    output.textContent = `${step + 1} of ${steps}`;
    shown.forEach((show) => show());
  };
}

// The weights of a map come as bytes, in ten-thousandths; HIDDEN where the model does not look. -> (row) => its weights, null for those
const HIDDEN = 65535;
function weightsOf(all, columns) {
  const row = (at) => Array.from(all.subarray(at * columns, (at + 1) * columns), (weight) => (weight === HIDDEN ? null : weight / 10000));
  return Object.assign(row, { all, columns, rows: all.length / columns });
}

// The bars of a step: those of the first one with the weights of this one.
function barsAt(picture, step) {
  const { bars, map, steps, weights } = picture, at = Math.min(step, steps.length - 1), row = weights(at), most = Math.max(...row.map((weight) => weight ?? -1));
  const [first, ...others] = bars.data, { annotations, ...layout } = bars.layout;
  const text = row.map((weight) => (weight === most ? weight.toFixed(2) : ""));
  return { data: [{ ...first, y: row, hovertext: map.data[0].hovertext?.[at], text }, ...others], layout: most < 0 ? bars.layout : layout };
}

// The map with the row of the step outlined. Plotly takes twice as long for a heatmap of so many cells that they have no sentences as for
// an image of them, so a large map is an image; the heatmap, of no cells, has its colours.
function mapAt({ map, steps, weights }, step, dark) {
  const y = Math.min(step, steps.length - 1), line = { color: "#e0245e", width: 2 }; // Theme.outline
  const row = { type: "rect", xref: "paper", x0: 0, x1: 1, y0: y - 0.5, y1: y + 0.5, line };
  const figure = themed({ data: map.data, layout: { ...map.layout, shapes: [...(map.layout.shapes ?? []), row] } }, dark), [heatmap] = figure.data;
  if (heatmap.hovertext) return { ...figure, data: [{ ...heatmap, z: rowsOf(weights) }] };
  const image = { type: "image", source: pictureOf(weights, heatmap.colorscale), hovertext: textsOf(weights), hoverinfo: "text" };
  return { ...figure, data: [{ ...heatmap, z: [[0]], x0: -2, y0: -2, hoverinfo: "skip" }, image] };
}

const rowsOf = (weights) => Array.from({ length: weights.rows }, (_, at) => weights(at));

// A cell is a pixel, in one of 256 colours of the scale.
function pictureOf({ all, columns, rows }, scale) {
  const [picture, colours] = [[columns, rows], [256, 1]].map(([width, height]) => Object.assign(element("canvas"), { width, height }).getContext("2d", { willReadFrequently: true }));
  colours.fillStyle = colours.createLinearGradient(0, 0, 256, 0);
  for (const [at, colour] of scale) colours.fillStyle.addColorStop(at, colour);
  colours.fillRect(0, 0, 256, 1);
  const shades = new Uint32Array(colours.getImageData(0, 0, 256, 1).data.buffer), pixels = picture.createImageData(columns, rows);
  const drawn = new Uint32Array(pixels.data.buffer);
  for (let i = 0; i < all.length; i += 1) if (all[i] !== HIDDEN) drawn[i] = shades[(all[i] * 255.5 / 10000) | 0];
  picture.putImageData(pixels, 0, 0);
  return picture.canvas.toDataURL();
}

// What the pointer reads: a row is written when it is asked for.
function textsOf(weights) {
  const told = (weight, i, j) => `query ${i}, key ${j}, counted from 0: ${weight === null ? "hidden" : weight.toFixed(2)}`;
  return Array.from({ length: weights.rows }).map((_, i) => i).reduce((rows, i) =>
    Object.defineProperty(rows, i, { enumerable: true, get: () => weights(i).map((weight, j) => told(weight, i, j)) }), []);
}

async function draw(place, { data, layout }, name, saved) {
  place.style.height = `${layout.height}px`;
  place.setAttribute("role", "figure");
  place.setAttribute("aria-label", layout.meta.description);
  await Plotly.react(place, data, { ...layout, autosize: true }, saveButtons(name, () => saved));
}

// When the browser has painted what is there; it paints nothing in a tab that nobody sees.
const painted = () => new Promise((next) => (document.hidden ? next() : requestAnimationFrame(() => setTimeout(next))));

// A plot is as wide as its column, also when a side bar opens beside the notebook, or a cell that was drawn out of sight comes back.
const columns = new ResizeObserver((changes) => changes.forEach(({ target: plot }) => {
  if (plot.clientWidth && Math.abs(plot._fullLayout?.width - plot.clientWidth) >= 1) Plotly.Plots.resize(plot);
}));

// -> two functions, which draw the map and the bars of a picture.
function section(maps, model) {
  const part = element("section"), [name, said, map, step, bars] = ["h4", "p", "div", "p", "div"].map((kind) => element(kind));
  said.dir = "auto";
  part.append(name, said, map, step, bars);
  maps.append(part);
  for (const plot of [map, bars]) columns.observe(plot);
  const stepOf = ({ steps }, row) => Math.min(row, steps.length - 1);
  async function drawMap(picture, row, dark) {
    name.textContent = picture.name;
    said.textContent = picture.text;
    step.textContent = picture.steps[stepOf(picture, row)];
    await draw(map, mapAt(picture, row, dark), "attention", picture.saved);
    if (map.wired) return;
    map.wired = true;
    map.on("plotly_click", ({ points }) => change(model, "step", points[0].y));
  }
  return [drawMap, (picture, row, dark) => draw(bars, themed(barsAt(picture, row), dark), `step-${stepOf(picture, row) + 1}`, {})];
}

async function render({ model, el }) {
  el.classList.add("attnviz-view");
  // Else JupyterLab takes plain keys from the controls: arrows move among its cells, X cuts one. Ctrl+S and Shift+Enter stay its own.
  el.addEventListener("keydown", (event) => {
    if (!event.ctrlKey && !event.metaKey && !(event.shiftKey && event.key === "Enter")) event.stopPropagation();
  });
  el.append(element("style", { textContent: STYLE }));
  const showControls = controls(el, model), note = element("p"), maps = element("div", { className: "maps" });
  note.setAttribute("role", "status");
  el.append(note, maps);
  const sections = [];
  let waiting = null, last = Promise.resolve(), opened = null, pictures = [];
  async function show() {
    const key = JSON.stringify(["layer", "head", "words", "special"].map((trait) => model.get(trait))), packed = model.get("_pictures")[key];
    clearTimeout(waiting);
    note.textContent = "";
    if (!packed) {
      waiting = setTimeout(() => { note.textContent = "This choice needs the running kernel of the notebook."; }, PATIENCE);
      return;
    }
    if (opened !== packed) {
      const [figures, weights] = packed.split(" "), [text, all] = await Promise.all([unpack(figures), contentOf(weights).arrayBuffer()]);
      [pictures, opened] = [JSON.parse(text), packed];
      let from = 0;
      for (const picture of pictures) {
        const cells = picture.steps.length * picture.columns;
        picture.weights = weightsOf(new Uint16Array(all, 2 * from, cells), picture.columns);
        from += cells;
      }
    }
    const dark = isDark(model.get("theme"));
    showControls(Math.max(...pictures.map(({ steps }) => steps.length)));
    await plotly();
    const step = model.get("step"), drawn = `${key} ${step} ${dark ? "dark" : "light"}`;
    while (sections.length < pictures.length) sections.push(section(maps, model)); // all, so that each has its width
    const drawAll = async (part) => {
      for (const [place, picture] of pictures.entries()) await sections[place][part](picture, step, dark);
    };
    await drawAll(0);
    await painted().then(() => { el.dataset.maps = drawn; });
    await drawAll(1);
    el.dataset.drawn = drawn;
  }
  const failed = ({ message }) => { note.textContent = `The maps cannot be drawn: ${message}`; };
  const again = () => { last = last.then(show).catch(failed); };
  const watched = ["step", "layer", "head", "words", "special", "theme", "_pictures"];
  for (const trait of watched) model.on(`change:${trait}`, again);
  const themes = new MutationObserver(again), scheme = matchMedia("(prefers-color-scheme: dark)");
  for (const root of [document.body, document.documentElement]) themes.observe(root, { attributeFilter: ["class", "data-jp-theme-light"] });
  scheme.addEventListener("change", again);
  again();
  return () => {
    themes.disconnect();
    scheme.removeEventListener("change", again);
    for (const trait of watched) model.off(`change:${trait}`, again);
  };
}

export default { render };
