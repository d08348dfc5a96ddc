// A training on the page: asks the server for the moments that are new, and draws them on canvases over the charts. While it trains,
// and while it plays, nothing else changes: Streamlit and Plotly together take ten times as long for a picture. Where a moment
// stands still the page is asked once to draw it with Plotly (view.py), to be read by the pointer and saved; the canvases then go.
const EVERY = 100, AWAY = 2000, STILL = 250, PLAYED = 120, TABLES = 2000, ANSWERED = 5000; // ms
const LEARNS = ["starting", "running"], HIDDEN = 255; // in place of a weight, of which 254 is 1
const DASHED = { solid: [], dash: [7, 4], dot: [2, 3], dashdot: [7, 3, 2, 3], longdash: [10, 4], longdashdot: [10, 4, 2, 4] }; // Plotly's names

window.__attnvizMoments = ({ data, parentElement, setTriggerValue }) => {
  const place = parentElement.querySelector(".moments"), first = !place.run;
  if (place.run?.address !== data.address) {
    if (place.run) end(place.run);
    place.run = begin(place, data.address);
  }
  const run = place.run;
  if (run.data?.told !== data.told) { stop(run); run.at = null; } // a button was pressed: what comes of it is shown
  Object.assign(run, { data, state: data.state, setTriggerValue, colors: scale(data.colors.sequential) });
  ask(run);
  draw(run);
  if (first) return () => { end(place.run); place.run = null; };
};

function begin(place, address) {
  const label = document.createElement("label"), slider = document.createElement("input"), output = document.createElement("output");
  const button = Object.assign(document.createElement("button"), { type: "button", className: "again" });
  Object.assign(slider, { type: "range", min: 0, step: 1 });
  slider.title = "What was seen, from the untrained models to now. At its end it follows the training.";
  label.append("Moment", slider);
  place.replaceChildren(label, output, button);
  const run = { address, place, slider, output, button, moments: [], at: null, state: null, told: {} };
  slider.addEventListener("input", () => { stop(run); goTo(run, +slider.value); slider.setAttribute("aria-valuetext", output.value); });
  button.addEventListener("click", () => { if (run.playing) stop(run); else play(run); draw(run); });
  addEventListener("drawn", run.drawn = () => { // one after the other, and drawn once
    run.later ||= requestAnimationFrame(() => { run.later = 0; if (!run.over) draw(run); });
  });
  return run;
}

function end(run) {
  run.over = true;
  run.request?.abort();
  [run.timer, run.playing, run.settling?.timer].forEach(clearTimeout);
  removeEventListener("drawn", run.drawn);
}

// What is new, until the training has ended. The server waits with its answer until there is something.
async function ask(run) {
  run.request?.abort();
  clearTimeout(run.timer);
  const request = run.request = new AbortController(), after = run.moments.at(-1)?.batch ?? -1;
  let wait = EVERY;
  try {
    const answer = await fetch(`./${run.address}?after=${after}&state=${run.state}`, { signal: request.signal });
    if (answer.status === 404) return; // the server began anew
    const content = new Uint8Array(await answer.arrayBuffer());
    if (request.signal.aborted) return;
    take(run, content);
    if (run.state === "ended" && run.all) return;
  } catch {
    wait = AWAY; // the server does not answer: it is asked again
  }
  if (!request.signal.aborted) run.timer = setTimeout(() => ask(run), wait);
}

// Four bytes with the length of a JSON, the JSON, and the maps: training/seen.py.
function take(run, bytes) {
  const length = new DataView(bytes.buffer).getUint32(0, true), head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  let place = 4 + length;
  for (const moment of head.moments) {
    moment.maps = moment.sides.flatMap(([rows, columns]) => Array.from({ length: moment.has }, () => {
      const weights = bytes.slice(place, place += rows * columns);
      return { rows, columns, weights };
    }));
  }
  const kept = new Set(head.batches), changed = head.moments.length || head.state !== run.state;
  run.moments = [...run.moments, ...head.moments].filter(({ batch }) => kept.has(batch));
  Object.assign(run, { state: head.state, points: head.points, all: !head.batches.length || run.moments.at(-1)?.batch >= head.batches.at(-1) });
  if (changed) draw(run);
}

// The moment that is shown: the newest, until the slider is moved back.
function place(run) {
  const index = run.at === null ? -1 : run.moments.findLastIndex(({ batch }) => batch <= run.at);
  return index < 0 ? run.moments.length - 1 : index;
}

function goTo(run, index) {
  run.at = index < run.moments.length - 1 ? run.moments[index].batch : null;
  draw(run);
}

function play(run) {
  if (place(run) === run.moments.length - 1) run.at = run.moments[0].batch;
  run.playing = setTimeout(function next() {
    const index = place(run) + 1;
    run.playing = index < run.moments.length - 1 && setTimeout(next, PLAYED);
    goTo(run, index);
  }, PLAYED);
}

function stop(run) {
  clearTimeout(run.playing);
  run.playing = null;
}

function draw(run) {
  const index = place(run), moment = run.moments[index], count = run.moments.length;
  run.place.hidden = count < 2;
  if (moment) {
    Object.assign(run.slider, { max: count - 1, value: index });
    run.output.value = `after ${moment.batch} batches`;
    say(run.button, run.playing ? "❚❚ Stop playing" : "▶ Play it again");
    numbers(run, moment);
    document.querySelectorAll(".st-key-chart-learning-maps .plot").forEach((plot, i) => over(plot, moment, (pen) => map(pen, plot, moment.maps[i], run)));
    document.querySelectorAll(".st-key-chart-learning-curves .plot").forEach((plot) => over(plot, moment, (pen) => curves(pen, plot, moment, run)));
  }
  settle(run, moment);
}

// Asks the page to draw a moment that stands still, or another state of the training; once for each.
function settle(run, moment) {
  const { state, batch, tables } = run.data, moves = run.playing || (run.at === null && LEARNS.includes(run.state));
  const is = `${run.state} ${moment?.batch}`, differs = moment && moment.batch !== batch;
  const wait = run.state !== state || (moment && batch === null) ? 0 : differs && !moves ? STILL : differs && tables ? TABLES : -1;
  if (run.settling && (run.settling.is === is || run.settling.wait === wait) && wait > 0) return;
  clearTimeout(run.settling?.timer);
  run.settling = null;
  if (wait < 0 || (run.told.is === is && performance.now() - run.told.when < ANSWERED)) return;
  run.settling = { is, wait, timer: setTimeout(() => {
    run.settling = null;
    run.told = { is: `${run.state} ${run.moments[place(run)]?.batch}`, when: performance.now() };
    run.setTriggerValue("at", run.at ?? -1);
  }, wait) };
}

// Only the text is new: whoever watches the elements of the page (bridge.js) is not woken.
function say(element, text) {
  if (!element.firstChild) element.textContent = text;
  else if (element.firstChild.data !== text) element.firstChild.data = text;
}

function numbers({ data, points }, { batch, seconds, rows, problems }) {
  const table = document.querySelector(".st-key-moment_numbers table");
  if (!table || table.tBodies[0].rows.length !== rows.length) return;
  say(table.caption, `After ${batch} batches, ${seconds.toFixed(1)} s of computing`);
  rows.forEach((row, i) => {
    const of = Object.fromEntries(data.measured.map((name, j) => [name, row[j]])), number = (value) => value?.toFixed(2) ?? "–";
    const [title, ...cells] = table.tBodies[0].rows[i].cells;
    say(title, data.titles[i] + (problems[i] ? ` (${problems[i]})` : ""));
    [number(of.alignment_error), number(of.loss), `${(100 * of.exact).toFixed(0)}%`, number(of.entropy), ...points[i].map((at) => `${at ?? "–"}`)]
      .forEach((text, j) => say(cells[j], text));
  });
}

// A canvas over a chart, while the chart is of another moment.
function over(plot, { batch }, paint) {
  const old = plot.querySelector(":scope > .moment"), { width, height } = plot._fullLayout ?? {};
  if (plot.batch === batch || !width) return old?.remove();
  const canvas = old ?? Object.assign(document.createElement("canvas"), { className: "moment" }), pixels = window.devicePixelRatio || 1;
  canvas.setAttribute("aria-hidden", "true");
  const [wide, high] = [width, height].map((side) => Math.round(side * pixels));
  if (canvas.width !== wide || canvas.height !== high) Object.assign(canvas, { width: wide, height: high });
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  const pen = canvas.getContext("2d");
  pen.setTransform(pixels, 0, 0, pixels, 0, 0);
  pen.clearRect(0, 0, width, height);
  paint(pen);
  if (!old) plot.append(canvas);
}

// The cells, as Plotly draws them.
function map(pen, plot, { rows, columns, weights }, { colors, data }) {
  const { xaxis: { _offset: left, _length: width }, yaxis: { _offset: top, _length: height } } = plot._fullLayout;
  const small = Object.assign(document.createElement("canvas"), { width: columns, height: rows }).getContext("2d"), image = small.createImageData(columns, rows);
  weights.forEach((weight, i) => { if (weight !== HIDDEN) image.data.set(colors[weight], 4 * i); });
  small.putImageData(image, 0, 0);
  pen.fillStyle = data.colors.page;
  pen.fillRect(left, top, width, height);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(small.canvas, left, top, width, height);
  if (Math.max(rows, columns) > 64) return;
  for (let i = 0; i <= columns; i++) pen.fillRect(left + (i * width) / columns - 0.5, top, 1, height);
  for (let i = 0; i <= rows; i++) pen.fillRect(left, top + (i * height) / rows - 0.5, width, 1);
}

// 255 colours, each of four bytes.
function scale(sequence) {
  const stops = sequence.map((color) => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16)));
  return Array.from({ length: HIDDEN }, (_, i) => {
    const at = (i / (HIDDEN - 1)) * (stops.length - 1), low = Math.min(Math.floor(at), stops.length - 2);
    return [...stops[low].map((part, j) => Math.round(part + (at - low) * (stops[low + 1][j] - part))), 255];
  });
}

// The lines over the batches, with axes of their own: the charts below them are of fewer batches.
function curves(pen, plot, moment, { data, moments, points }) {
  const last = moments.at(-1).batch || 1, layout = plot._fullLayout, column = (name) => data.measured.indexOf(name);
  const panels = data.panels.filter((name) => moments.some(({ rows }) => rows.some((row) => row[column(name)] !== null)));
  const areas = panels.map((name, i) => {
    const number = i ? i + 1 : "", { _offset: left, _length: width } = layout[`xaxis${number}`] ?? {}, { _offset: top, _length: height } = layout[`yaxis${number}`] ?? {};
    const values = moments.flatMap(({ rows }) => rows.map((row) => row[column(name)] ?? 0)), most = 1.05 * Math.max(...values) || 1;
    return { name, left, top, width, height, most, x: (batch) => left + (width * batch) / last, y: (value) => top + height - (height * value) / most };
  }).filter(({ width }) => width);
  pen.fillStyle = data.colors.page;
  areas.forEach(({ left, top, width, height }) => pen.fillRect(left - 40, top - 8, width + 48, height + 26));
  pen.font = `11px ${layout.font.family}`;
  for (const area of areas) {
    axes(pen, area, last, data.colors);
    data.lines.forEach((look, i) => line(pen, area, moments.map(({ batch, rows }) => [batch, rows[i][column(area.name)]]), look));
    const star = { alignment_error: 0, loss: 1 }[area.name];
    if (star !== undefined) data.lines.forEach((look, i) => mark(pen, area, moments.find(({ batch }) => batch === points[i][star])?.rows[i][column(area.name)], points[i][star], look));
    pen.fillStyle = data.colors.outline;
    pen.fillRect(area.x(moment.batch) - 0.75, area.top, 1.5, area.height);
  }
}

function steps(most) {
  const rough = most / 4, power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].find((by) => by * power >= rough) * power;
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, i) => [i * step, (i * step).toFixed(Math.max(0, -Math.floor(Math.log10(step))))]);
}

function axes(pen, { left, top, width, height, most, x, y }, last, { grid, muted }) {
  for (const [value, text] of steps(most)) {
    pen.fillStyle = grid;
    pen.fillRect(left, y(value) - 0.5, width, 1);
    Object.assign(pen, { fillStyle: muted, textAlign: "right", textBaseline: "middle" });
    pen.fillText(text, left - 4, y(value));
  }
  for (const [batch, text] of steps(last)) {
    if (!Number.isInteger(batch)) continue;
    pen.fillStyle = grid;
    pen.fillRect(x(batch) - 0.5, top, 1, height);
    Object.assign(pen, { fillStyle: muted, textAlign: "center", textBaseline: "top" });
    pen.fillText(String(+text), x(batch), top + height + 4);
  }
}

function line(pen, { x, y }, values, { color, dash }) {
  pen.beginPath();
  let down = false;
  for (const [batch, value] of values) {
    if (value !== null) pen[down ? "lineTo" : "moveTo"](x(batch), y(value));
    down = value !== null;
  }
  pen.setLineDash(DASHED[dash] ?? dash.split(",").map(parseFloat));
  Object.assign(pen, { strokeStyle: color, lineWidth: 2 });
  pen.stroke();
  pen.setLineDash([]);
}

// A star, as Plotly draws it: five points, 13 px across.
function mark(pen, { x, y }, value, batch, { color }) {
  if (value === undefined || value === null) return;
  pen.beginPath();
  for (let i = 0; i < 10; i++) {
    const far = i % 2 ? 3.5 : 9, angle = (i * Math.PI) / 5 - Math.PI / 2;
    pen.lineTo(x(batch) + far * Math.cos(angle), y(value) + far * Math.sin(angle));
  }
  pen.fillStyle = color;
  pen.fill();
}
