// A row of cells, each with words above a figure and, of a map, a sentence below it, drawn with Plotly (see plot.py). A figure that
// changed moves from the old one to the new in a single Plotly.react, lines between tokens without it; words and figures that
// did not change are left alone. What is finished says so by the event "drawn".
const DASHES = { dash: "7 4", dot: "2 3", dashdot: "7 3 2 3" }; // px; Plotly's names
const GAP = 65535; // in place of NaN, where numbers have two bytes
const CONFIG = { displayModeBar: false, scrollZoom: false, doubleClick: false, showTips: false };

async function plotly() {
  while (!window.Plotly) await new Promise((next) => setTimeout(next, 10)); // index_page.py has the page load it
}

// New charts are drawn one after the other, from the top of the page down, and the browser shows each before it begins the
// next. They arrive in any order: bars may come before the heatmaps above them.
const waiting = [];
let before = Promise.resolve();
function turn(plot) {
  before = before.then(() => new Promise((next) => setTimeout(next))).then(() => {
    if (!waiting.length) return; // all were drawn for paper
    const top = waiting.reduce((a, b) => (isAbove(b.plot, a.plot) ? b : a));
    waiting.splice(waiting.indexOf(top), 1);
    top.begin();
  });
  return new Promise((begin) => waiting.push({ plot, begin }));
}

// Paper does not wait for them.
addEventListener("beforeprint", () => waiting.splice(0).forEach(({ begin }) => begin()));

function isAbove(plot, other) {
  return Boolean(plot.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING);
}

function cellAt(row, index) {
  while (row.children.length <= index) {
    const [cell, words, plot, below] = Array.from({ length: 4 }, () => document.createElement("div"));
    cell.className = "cell";
    below.className = "below";
    plot.className = "plot";
    plot.setAttribute("role", "figure");
    cell.append(words, plot, below);
    row.append(cell);
    row.watched.observe(plot); // its width also changes when a cell comes or goes beside it
  }
  return row.children[index];
}

function fill(row, cells) {
  cells.forEach(({ words, figure, below = "" }, index) => {
    const [over, plot, under] = cellAt(row, index).children;
    write(over, words);
    write(under, below);
    draw(plot, figure);
  });
  while (row.children.length > cells.length) discard(row, row.lastChild);
}

function write(place, html) {
  if (place.written !== html) place.innerHTML = place.written = html; // escaped where it was made
}

// The cells at one step: all steps are here, so moving among them asks nobody. A text that has ended shows words alone.
// maps : the cells of their maps, which hold the weights of all steps and what the pointer reads there.
function at(cells, maps, step, forms) {
  return cells.map(({ words, figure, ended, steps, drawn, rows }, i) => {
    const shown = steps[step];
    if (!shown || !figure) return { words: shown?.words ?? ended, figure: null };
    const { data, layout } = JSON.parse(figure), [bars] = data, { weights: all, pointer } = (maps[i].rows ??= rowsOf(maps[i]));
    const weights = all[step], most = Math.max(...weights.map((weight) => weight ?? -1));
    const best = most < 0 ? -1 : weights.indexOf(most);
    Object.assign(bars, { y: weights, hovertext: pointer?.[step], text: weights.map((weight, i) => (i === best ? weight.toFixed(2) : "")) });
    Object.assign(layout.meta, { name: `step-${step + 1}-${layout.meta.name}`, description: sentenceOf(rows, step, forms) });
    layout.meta.label = `step ${step + 1} ${layout.meta.label}`;
    layout.meta.saved.title.text = layout.meta.saved.title.text.replace(stepName(rows, drawn, forms), () => stepName(rows, step, forms));
    if (best >= 0) layout.annotations = [];
    if (shown.shapes) layout.shapes = shown.shapes;
    return { words: shown.words, figure: JSON.stringify({ data, layout }) };
  });
}

// What a screen reader says of a row, and the name of its step in a saved picture: forms of wording.py and heading.py, filled in.
function sentenceOf({ row, looks, queries, keys }, step, forms) {
  const [seen, hidden] = looks[step], digits = (hundredths) => (hundredths / 100).toFixed(2);
  const named = seen?.map(([key, weight]) => filled(forms.key, { key: keys[key], weight: digits(weight) })).join(", ");
  const values = { row: `${row} ${step + 1}`, query: queries[step], keys: named || forms.none };
  return filled(seen ? forms.looks : forms.blank, { ...values, hidden: hidden ? filled(forms.hidden, { weight: digits(hidden) }) : "" });
}

function stepName({ queries }, step, forms) {
  return filled(forms.step, { step: step + 1, count: queries.length, query: escaped(queries[step]) });
}

function filled(form, values) {
  return form.replace(/{(\w+)}/g, (_, name) => values[name]);
}

// For Plotly's pseudo-HTML, as labels.py has it.
function escaped(text) {
  return text.replace(/[&<>$]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", $: "&#36;" })[sign]);
}

// Of a map: the weights of each row, null where it has none, and what the pointer reads.
function rowsOf({ figure }) {
  const { data: [{ z }], layout: { meta } } = JSON.parse(figure), [count, width] = z.shape.split(",").map(Number);
  const numbers = Array.from(new Float32Array(decoded(z.bdata)), (weight) => (Number.isNaN(weight) ? null : weight));
  const weights = Array.from({ length: count }, (_, row) => numbers.slice(row * width, (row + 1) * width));
  return { weights, pointer: meta.cells && sentences(meta.cells) };
}

function decoded(base64) {
  return Uint8Array.from(atob(base64), (byte) => byte.charCodeAt(0)).buffer;
}

function discard(row, cell) {
  const plot = cell.children[1];
  row.watched.unobserve(plot);
  window.Plotly?.purge(plot);
  cell.remove();
}

async function draw(plot, text) {
  if (plot.figure === text) return;
  plot.figure = text;
  plot.hidden = !text;
  plot.parentElement.classList.toggle("without-figure", !text);
  if (!text) return;
  const { data, layout: { meta, ...layout } } = JSON.parse(text);
  plot.meta = meta; // ours: Plotly would draw all again when a name changes
  plot.style.height = `${layout.height}px`;
  plot.style.maxWidth = meta.widest ? `${meta.widest}px` : "";
  plot.setAttribute("aria-label", meta.description);
  plot.classList.toggle("picks", Boolean(meta.rows || meta.heads)); // a click goes there: see bridge.js
  if (meta.rows) plot.tabIndex = -1; // a click gives it the focus, for the arrow keys: see rows.js
  await plotly();
  if (!plot._fullLayout) await turn(plot);
  if (plot.figure !== text) return; // a newer one came meanwhile
  await (meta.tokens ? lines(plot, data, layout) : chart(plot, data, layout));
  plot.batch = meta.batch; // the moment of a training: see learning.js
  plot.dispatchEvent(new Event("drawn", { bubbles: true }));
}

async function chart(plot, [first, ...others], layout) {
  if (plot.meta.cells) first.hovertext = sentences(plot.meta.cells);
  await window.Plotly.react(plot, [first.colorbar ? { ...first, showscale: false } : first, ...others], layout, CONFIG);
  if (first.colorbar) legend(plot, first);
  else plot.querySelector(":scope > .scale")?.remove(); // of the figure before
}

// Tokens and the lines between them. While the tokens stay, only the lines and what the pointer reads (bridge.js) are new.
async function lines(plot, data, { shapes = [], ...layout }) {
  const dashed = shapes.map((shape) => ({ ...shape, dashes: DASHES[shape.line.dash] ?? "none" }));
  Object.assign(plot, { lines: dashed, spoken: data.map(({ hovertext }) => hovertext) });
  const tokens = data.map(({ hovertext, ...side }) => side), frame = JSON.stringify([tokens, layout]);
  if (plot.frame !== frame) {
    plot.frame = null;
    await window.Plotly.react(plot, tokens, layout, { ...CONFIG, staticPlot: true });
    plot.frame = frame;
  }
  thread(plot);
}

// The lines as plain SVG below the chart, in the units of its axes: as Plotly's own they cost a drawing of the whole chart.
function thread(plot) {
  plot.querySelector(".threads")?.remove();
  if (!plot._fullLayout) return; // its cell was discarded while Plotly drew
  const { xaxis: x, yaxis: y, width, height } = plot._fullLayout;
  const [left, top] = [x._offset + x.l2p(0), y._offset + y.l2p(0)], [wide, high] = [x.l2p(1) - x.l2p(0), y.l2p(1) - y.l2p(0)];
  const paths = plot.lines.map(({ path, line, opacity, dashes }) =>
    `<path d="${path}" stroke="${line.color}" stroke-width="${line.width}" stroke-dasharray="${dashes}" opacity="${opacity}"/>`);
  plot.querySelector(".main-svg").insertAdjacentHTML(
    "beforebegin", `<svg class="threads" width="${width}" height="${height}"><g transform="matrix(${wide} 0 0 ${high} ${left} ${top})">${paths.join("")}</g></svg>`,
  );
}

// What the pointer reads in each cell, written out here: hover.py has it in short, for it would be most of what is sent.
function sentences({ queries, keys, phrases, which }) {
  const places = new Uint16Array(decoded(which.bdata));
  return queries.map((query, i) => keys.map((key, j) => {
    const [between, after] = phrases[places[i * keys.length + j]];
    return after === null ? query + between : query + between + key + after;
  }));
}

// The colour scale as plain HTML: Plotly's own is a chart of its own and costs a third of a heatmap's time.
function legend(plot, { colorscale, colorbar, zmin, zmax }) {
  plot.querySelector(":scope > .scale")?.remove();
  if (!plot._fullLayout) return; // its cell was discarded while Plotly drew
  const { xaxis: x, yaxis: y } = plot._fullLayout;
  const scale = document.createElement("div"), band = document.createElement("div");
  scale.className = "scale";
  scale.setAttribute("aria-hidden", "true");
  band.style.background = `linear-gradient(90deg, ${colorscale.map(([at, colour]) => `${colour} ${100 * at}%`)})`;
  scale.append(band);
  colorbar.tickvals.forEach((value, i) => {
    const tick = document.createElement("span");
    tick.textContent = colorbar.ticktext[i];
    tick.style.left = `${(100 * (value - zmin)) / (zmax - zmin)}%`;
    scale.append(tick);
  });
  Object.assign(scale.style, { left: `${x._offset}px`, width: `${x._length}px`, top: `${y._offset + y._length + 8}px` });
  plot.append(scale);
}

async function resize(plot) {
  if (!plot.figure || !plot.clientWidth || !plot._fullLayout || plot._fullLayout.width === plot.clientWidth) return;
  await window.Plotly.Plots.resize(plot);
  if (plot.meta.tokens) return thread(plot);
  const [first] = plot.figure ? JSON.parse(plot.figure).data : []; // it may have been taken away meanwhile
  if (first?.colorbar) legend(plot, first);
}

// What plot.py packed: JSON in UTF-8, deflated.
async function unpacked(bytes) {
  const { cells, ...others } = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
  return { ...others, cells: cells.map((cell) => ({ ...cell, figure: cell.figure && JSON.stringify(widened(cell.figure)) })) };
}

// Numbers that were sent as counts of two bytes, as Plotly reads them: of four bytes.
function widened(figure) {
  for (const part of figure.data) {
    for (const [name, { per, bdata, shape } = {}] of Object.entries(part).filter(([, value]) => value?.per)) {
      const numbers = Float32Array.from(new Uint16Array(decoded(bdata)), (count) => (count === GAP ? NaN : count / per));
      part[name] = { dtype: "f4", bdata: encoded(numbers), ...(shape && { shape }) };
    }
  }
  return figure;
}

function encoded(numbers) {
  const bytes = new Uint8Array(numbers.buffer), parts = [];
  for (let from = 0; from < bytes.length; from += 8192) parts.push(String.fromCharCode(...bytes.subarray(from, from + 8192)));
  return btoa(parts.join(""));
}

// Rows that are shown, by the name of what was sent: bars read the maps above them, and may come before these.
const sent = new Map();

function nameOf(bytes) { // as in plot.py
  return `${bytes.length}-${Array.from(bytes.slice(-4), (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

function forget(row) {
  if (sent.get(row.named)?.row === row) sent.delete(row.named);
}

async function show(row, packed) {
  row.packed = packed;
  const { cells, row: step, maps, forms } = await unpacked(packed), old = () => row.packed !== packed || !row.watched; // newer ones came, or the row has gone
  if (old()) return;
  forget(row);
  sent.set(row.named = nameOf(packed), { row, cells });
  while (maps && !sent.has(maps)) {
    await new Promise((next) => setTimeout(next, 10));
    if (old()) return;
  }
  const above = sent.get(maps)?.cells;
  row.stepTo = maps ? (next) => fill(row, at(cells, above, next, forms)) : null;
  if (row.stepTo) row.stepTo(window.__attnviz?.row ?? step);
  else fill(row, cells);
}

window.__attnvizCharts = ({ data, parentElement }) => {
  const row = parentElement.querySelector(".cells"), first = !row.watched;
  row.watched ??= new ResizeObserver((changes) => changes.forEach(({ target }) => resize(target)));
  show(row, data);
  if (!first) return;
  return () => {
    [...row.children].forEach((cell) => discard(row, cell));
    row.watched.disconnect();
    row.watched = null;
    forget(row);
  };
};
