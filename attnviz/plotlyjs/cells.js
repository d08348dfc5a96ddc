// Plotly puts all cells of a map into an SVG as one image of pixels. Here each cell becomes a rectangle, sharp in any size.
// svg : the text of the picture. chart : the element in which Plotly drew the same map.
const MOST_CELLS = 50_000; // above it the file would be larger than most programs open

function vectors(svg, chart) {
  const maps = chart._fullData.filter(({ type }) => type === "heatmap"), [map] = maps;
  const picture = new DOMParser().parseFromString(svg, "image/svg+xml"), images = picture.querySelectorAll(".heatmaplayer image");
  if (maps.length !== 1 || images.length !== 1 || map.z.length * map.z[0].length > MOST_CELLS) return svg;
  if (!map.colorscale.every(([, colour]) => /^#[0-9a-f]{6}$/i.test(colour))) return svg; // of clear cells
  const [image] = images, [x, y, width, height] = ["x", "y", "width", "height"].map((name) => +image.getAttribute(name));
  const { range } = chart._fullLayout[map.yaxis.replace("y", "yaxis")], rows = range[0] > range[1] ? [...map.z] : [...map.z].reverse();
  const wide = width / rows[0].length, high = height / rows.length, group = picture.createElementNS(image.namespaceURI, "g");
  if (!map.xgap) group.setAttribute("shape-rendering", "crispEdges"); // no hairlines between cells that touch
  rows.forEach((row, i) => row.forEach((value, j) => {
    if (value === null || Number.isNaN(value)) return;
    const cell = picture.createElementNS(image.namespaceURI, "rect");
    const place = { x: x + j * wide + map.xgap / 2, y: y + i * high + map.ygap / 2, width: wide - map.xgap, height: high - map.ygap };
    for (const [name, number] of Object.entries(place)) cell.setAttribute(name, Math.round(number * 100) / 100);
    cell.setAttribute("fill", shade(map.colorscale, (value - map.zmin) / (map.zmax - map.zmin)));
    group.append(cell);
  }));
  image.replaceWith(group);
  return new XMLSerializer().serializeToString(picture);
}

// The colour of a share of the scale, between two of its stops as Plotly does it.
function shade(scale, share) {
  const at = Math.min(Math.max(share, 0), 1), after = Math.max(scale.findIndex(([stop]) => stop >= at), 1);
  const [[low, from], [high, to]] = [scale[after - 1], scale[after]], part = (at - low) / (high - low);
  const [first, second] = [from, to].map((hex) => [1, 3, 5].map((place) => parseInt(hex.slice(place, place + 2), 16)));
  return `rgb(${first.map((value, i) => Math.round(value + part * (second[i] - value))).join(", ")})`;
}
