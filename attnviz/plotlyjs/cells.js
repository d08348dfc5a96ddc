// Plotly puts the cells of a map, and all maps of an overview of heads, into an SVG as images of pixels. Here they become
// shapes, sharp in any size. More than MOST_RECTANGLES (of Python, see __init__.py) stay an image.
// svg : the text of the picture. chart : the element in which Plotly drew the same figure.
async function vectors(svg, chart) {
  const picture = new DOMParser().parseFromString(svg, "image/svg+xml");
  const maps = chart._fullData.filter(({ type }) => type === "heatmap"), images = picture.querySelectorAll(".heatmaplayer image");
  if (maps.length === 1 && images.length === 1) redraw(images[0], cells(maps[0], chart, images[0]));
  for (const image of picture.querySelectorAll(".imagelayer image")) redraw(image, await tiles(image));
  return new XMLSerializer().serializeToString(picture);
}

function redraw(image, markup) {
  if (markup === null) return; // too many
  const parts = new DOMParser().parseFromString(`<g xmlns="${image.namespaceURI}">${markup}</g>`, "image/svg+xml");
  image.replaceWith(image.ownerDocument.importNode(parts.documentElement, true));
}

const place = (image) => ["x", "y", "width", "height"].map((name) => +image.getAttribute(name));
const fit = ([x, y, width, height], columns, rows) => `translate(${x} ${y}) scale(${width / columns} ${height / rows})`;
const rounded = (number) => Math.round(number * 100) / 100;

// A map with gaps: a rectangle for each cell. One without: neighbours of one colour are one rectangle.
function cells(map, chart, image) {
  const { range } = chart._fullLayout[map.yaxis.replace("y", "yaxis")], rows = range[0] > range[1] ? [...map.z] : [...map.z].reverse();
  const shades = rows.map((row) => Array.from(row, (value) => value === null || Number.isNaN(value) ? null : shade(map.colorscale, (value - map.zmin) / (map.zmax - map.zmin))));
  const columns = rows[0].length, [x, y, width, height] = place(image), wide = width / columns, high = height / rows.length;
  if (!map.xgap) {
    const drawn = rectangles(shades.flat(), columns);
    return drawn && `<g shape-rendering="crispEdges" transform="${fit([x, y, width, height], columns, rows.length)}">${paths(drawn)}</g>`;
  }
  if (columns * rows.length > MOST_RECTANGLES) return null;
  const size = `width="${rounded(wide - map.xgap)}" height="${rounded(high - map.ygap)}"`;
  return shades.flatMap((row, i) => row.map((colour, j) => colour === null ? "" :
    `<rect x="${rounded(x + j * wide + map.xgap / 2)}" y="${rounded(y + i * high + map.ygap / 2)}" ${size} fill="${colour}"/>`)).join("");
}

// The maps of an overview, whose picture is a PNG of small_maps.py: the first colour is clear, the last two are those of hidden cells.
// A picture without a palette is a map of view.js: a pixel is a cell.
async function tiles(image) {
  const address = image.getAttributeNS("http://www.w3.org/1999/xlink", "href"), { width, height, pixels, palette } = await unpacked(address);
  if (!palette) return coloured(await pixelsOf(address, width, height), width, height, image);
  const page = palette.length - 2;
  const colours = [null, ...palette.slice(1, page), "url(#hidden)", "url(#hidden)"], drawn = rectangles(Array.from(pixels, (index) => colours[index]), width);
  const stripes = `<pattern id="hidden" width="6" height="6" patternUnits="userSpaceOnUse"><path fill="${palette[page]}" d="M0 0H6V6H0z"/>
<path fill="${palette[page + 1]}" d="M0 0h2L0 2zM6 0v2L2 6H0z"/></pattern>`;
  return drawn && `${drawn.has("url(#hidden)") ? stripes : ""}<g shape-rendering="crispEdges" transform="${fit(place(image), width, height)}">${paths(drawn)}</g>`;
}

function coloured(channels, width, height, image) {
  const drawn = rectangles(Array.from({ length: width * height }, (_, i) => channels[4 * i + 3] ? `rgb(${channels.slice(4 * i, 4 * i + 3).join(", ")})` : null), width);
  return drawn && `<g shape-rendering="crispEdges" transform="${fit(place(image), width, height)}">${paths(drawn)}</g>`;
}

async function pixelsOf(address, width, height) {
  const picture = Object.assign(new Image(), { src: address }), canvas = Object.assign(document.createElement("canvas"), { width, height }).getContext("2d");
  await picture.decode();
  canvas.drawImage(picture, 0, 0);
  return canvas.getImageData(0, 0, width, height).data;
}

// A PNG as small_maps.py writes one: indices into a palette, rows not filtered, one part with the data. Of one without a palette its size.
async function unpacked(address) {
  const bytes = Uint8Array.from(atob(address.slice(address.indexOf(",") + 1)), (letter) => letter.charCodeAt(0)), view = new DataView(bytes.buffer), parts = {};
  for (let at = 8; at < bytes.length; at += 12 + view.getUint32(at)) {
    parts[String.fromCharCode(...bytes.subarray(at + 4, at + 8))] = bytes.subarray(at + 8, at + 8 + view.getUint32(at));
  }
  const [width, height] = [16, 20].map((at) => view.getUint32(at)), { PLTE: channels, IDAT: data } = parts;
  if (!channels) return { width, height };
  const rows = new Uint8Array(await new Response(new Blob([data]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer());
  const palette = Array.from({ length: channels.length / 3 }, (_, i) => `rgb(${channels.slice(3 * i, 3 * i + 3).join(", ")})`);
  return { width, height, palette, pixels: rows.filter((_, i) => i % (width + 1)) }; // each row begins with the name of its filter
}

// colours : of cells, row by row; null for none. -> colour -> its rectangles [x, y, width, height], in cells: a run of one
// colour, as high as the rows that have the same run. null if they are too many.
function rectangles(colours, columns) {
  const drawn = new Map();
  let above = new Map(), count = 0;
  for (let start = 0; start < colours.length; start += columns) {
    const runs = new Map();
    for (let from = 0, to; from < columns; from = to) {
      const colour = colours[start + from];
      for (to = from + 1; to < columns && colours[start + to] === colour;) to += 1;
      if (colour === null) continue;
      const old = above.get(from), same = old?.colour === colour && old.box[2] === to - from;
      const run = same ? old : { colour, box: [from, start / columns, to - from, 0] };
      run.box[3] += 1;
      runs.set(from, run);
      if (same) continue;
      if (++count > MOST_RECTANGLES) return null;
      if (!drawn.has(colour)) drawn.set(colour, []);
      drawn.get(colour).push(run.box);
    }
    above = runs;
  }
  return drawn;
}

const paths = (drawn) => [...drawn].map(([colour, boxes]) =>
  `<path fill="${colour}" d="${boxes.map(([x, y, width, height]) => `M${x} ${y}h${width}v${height}h${-width}z`).join("")}"/>`).join("");

// The colour of a share of the scale, between two of its stops as Plotly does it; null where the scale is clear.
function shade(scale, share) {
  const at = Math.min(Math.max(share, 0), 1), after = Math.max(scale.findIndex(([stop]) => stop >= at), 1);
  const [[low, from], [high, to]] = [scale[after - 1], scale[after]], part = (at - low) / (high - low);
  if (![from, to].every((colour) => colour.startsWith("#"))) return null;
  const [first, second] = [from, to].map((hex) => [1, 3, 5].map((place) => parseInt(hex.slice(place, place + 2), 16)));
  return `rgb(${first.map((value, i) => Math.round(value + part * (second[i] - value))).join(", ")})`;
}
