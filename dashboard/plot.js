// Draws one figure with the Plotly that Streamlit has loaded (see plot.py), in place: a changed figure moves from the old
// one to the new in a single Plotly.react, and an equal one is left alone.
const CONFIG = { displayModeBar: false, scrollZoom: false, doubleClick: false, showTips: false };

async function plotly() {
  while (!window.Plotly) await new Promise((next) => setTimeout(next, 10));
  return window.Plotly;
}

async function draw(host, text) {
  if (host.figure === text) return;
  host.figure = text;
  const { data, layout } = JSON.parse(text);
  host.style.height = `${layout.height}px`;
  host.setAttribute("aria-label", layout.meta.description);
  const Plotly = await plotly();
  if (host.figure === text) await Plotly.react(host, data, layout, CONFIG); // unless a newer one came meanwhile
}

export default function ({ data, parentElement }) {
  const host = parentElement.querySelector(".plot");
  draw(host, data.figure);
  if (host.watched) return;
  host.watched = new ResizeObserver(() => host._fullLayout && window.Plotly.Plots.resize(host));
  host.watched.observe(parentElement);
  return () => {
    host.watched.disconnect();
    host.watched = null;
    window.Plotly?.purge(host);
    host.figure = null;
  };
}
