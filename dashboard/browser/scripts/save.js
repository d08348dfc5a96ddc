// Saves a chart as PNG or SVG, with a heading and its fonts.
const SAVED = 720; // px of a saved picture, at least: its heading is wrapped for that (attnviz/export/heading.py)

function picture(chart) {
  // What is saved says what it is: a heading above, names on the axes, the page's colour behind; Plotly's own colour scale,
  // and no frame around a row. `chart.figure` is the figure as Python made it (see plot.js).
  const { data, layout } = JSON.parse(chart.figure);
  for (const [part, value] of Object.entries(meta(chart).saved ?? {})) {
    layout[part] = typeof value === "object" ? { ...layout[part], ...value } : value;
  }
  layout.font.family = layout.font.family.replace(/"Source Sans( 3)?", /g, ""); // a picture has no web fonts: measure what it draws with
  layout.paper_bgcolor = getComputedStyle(document.querySelector(".stApp")).backgroundColor;
  return { data, layout, config: { staticPlot: true } };
}

async function save(chart, format) {
  const drawn = picture(chart), width = Math.max(chart._fullLayout.width, SAVED), { height } = drawn.layout;
  const address = URL.createObjectURL(await pictureFile(drawn, chart, { format, width, height }, face));
  const link = Object.assign(document.createElement("a"), { href: address, download: `${meta(chart).name ?? "chart"}.${format}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000); // a busy browser reads it late
}

// A saved picture has the fonts of the system alone. One that lacks Japanese has fetched a font for the page (server/index_page.py):
// the picture takes it along.
async function face(svg) {
  const font = performance.getEntriesByType("resource").find(({ name }) => name.endsWith("/japanese.ttf"));
  if (!font || !/[\u3000-\u9fff]/.test(svg)) return "";
  const file = await (await fetch(font.name)).blob(), reader = new FileReader();
  const address = await new Promise((resolve) => { reader.onload = () => resolve(reader.result); reader.readAsDataURL(file); });
  return JAPANESE_FACE.replace("ADDRESS", address);
}
