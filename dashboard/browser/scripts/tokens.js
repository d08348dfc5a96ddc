// In a picture of lines: brings out the lines of the token at the pointer, and says what they are.
const NEAR = 24; // px from a mark at which its token is meant

// The token at the side of a picture of lines that the pointer is at: [0 for queries or 1 for keys, its place], or null.
function tokenAt(chart, { clientX, clientY }) {
  const box = chart.getBoundingClientRect(), { xaxis: x, yaxis, yaxis2 } = chart._fullLayout;
  const left = clientX - box.left - x._offset - x.l2p(0), right = x.l2p(1) - x.l2p(0) - left;
  const side = left < NEAR ? 0 : right < NEAR ? 1 : -1, y = [yaxis, yaxis2][side];
  const place = y ? Math.round(y.p2l(clientY - box.top - y._offset)) : -1;
  return 0 <= place && place < meta(chart).tokens[side] ? [side, place] : null;
}

// Its lines, over all others, which fade, and what is said of it; without asking the server, and without Plotly's drawing anything again.
function light(chart, token) {
  if (String(chart.lit ?? "") === String(token ?? "")) return;
  chart.lit = token;
  chart.classList.toggle("lit", Boolean(token));
  chart.querySelectorAll(".lit-lines, .tip").forEach((old) => old.remove());
  if (!token) return;
  const [side, place] = token, { xaxis: x, yaxis: y, width, height } = chart._fullLayout, [queries, keys] = meta(chart).tokens;
  const wanted = side ? ((place + 0.5) * queries) / keys - 0.5 : place, [from, to] = [0, 1].map((end) => x._offset + x.l2p(end));
  const groups = chart.lines ?? [], colours = [...new Set(groups.map(({ line }) => line.color))];
  const paths = groups.map((group) => {
    const aside = y._offset + 3 * (colours.indexOf(group.line.color) - (colours.length - 1) / 2); // heads that agree: side by side
    const ends = group.path.slice(1).split("M").map((line) => line.split("L").map((end) => +end.split(",")[1])); // M0,query L1,key
    const path = ends.filter((end) => Math.abs(end[side] - wanted) < 0.01)
      .map(([query, key]) => `M${from},${aside + y.l2p(query)}L${to},${aside + y.l2p(key)}`).join("");
    return path && `<path d="${path}" stroke="${group.line.color}" stroke-width="${group.line.width + 0.8}" stroke-dasharray="${group.dashes}"/>`;
  });
  chart.querySelector(".main-svg").insertAdjacentHTML("afterend", `<svg class="lit-lines" width="${width}" height="${height}" fill="none">${paths.join("")}</svg>`);
  tip(chart, token, y._offset + y.l2p(wanted), side ? { right: `${width - to + 10}px` } : { left: `${from + 10}px` });
}

// What is said of a token, below or above it: the words of the figure, escaped where they were made.
function tip(chart, [side, place], y, where) {
  const note = document.createElement("div"), { bgcolor, bordercolor } = chart._fullLayout.hoverlabel;
  note.className = "tip";
  note.innerHTML = chart.spoken[side][place];
  const beside = y < chart.clientHeight / 2 ? { top: `${y + 12}px` } : { bottom: `${chart.clientHeight - y + 12}px` }; // its lines are in sight
  Object.assign(note.style, where, beside, { background: bgcolor, borderColor: bordercolor });
  chart.append(note);
}

function wireTokens(chart) {
  const here = (event) => meta(chart).tokens && tokenAt(chart, event);
  chart.addEventListener("mousemove", (event) => {
    const token = here(event);
    light(chart, token);
    if (meta(chart).tokens) chart.style.cursor = token?.[0] === 0 && meta(chart).rows ? "pointer" : "";
  });
  chart.addEventListener("mouseleave", () => meta(chart).tokens && light(chart, null));
  chart.addEventListener("click", (event) => {
    const [side, place] = here(event) ?? [];
    if (side === 0 && meta(chart).rows) { chart.focus({ preventScroll: true }); state.pick?.(place); }
  });
}

// What was brought out among lines that are now others, is brought out among these.
function relight(chart) {
  const [side, place] = chart.lit ?? [];
  light(chart, null);
  if (place < meta(chart).tokens?.[side]) light(chart, [side, place]);
}
