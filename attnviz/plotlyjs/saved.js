// A figure as a file. figure : of Plotly, to be drawn. chart : the element in which the same figure is seen.
// face : async (svg) => CSS, a font for letters of the picture that the system may lack, or "". -> Blob
async function pictureFile(figure, chart, { format, width, height }, face) {
  const address = await Plotly.toImage(figure, { format: "svg", width, height }), plain = decodeURIComponent(address.slice(address.indexOf(",") + 1));
  const style = await face(plain), svg = (text) => new Blob([text], { type: "image/svg+xml" });
  if (format === "svg") return svg(withFace(await vectors(plain, chart), style));
  const picture = style ? await lettered(withFace(plain, style), width, height) : await drawn(svg(plain), width, height);
  return new Promise((resolve) => picture.toBlob(resolve, "image/png"));
}

const withFace = (svg, style) => style ? svg.replace(/<svg[^>]*>/, (start) => `${start}<style>${style}</style>`) : svg;

// file : an SVG. -> a canvas with it, twice as large.
async function drawn(file, width, height) {
  const image = new Image(), canvas = Object.assign(document.createElement("canvas"), { width: 2 * width, height: 2 * height });
  image.src = URL.createObjectURL(file);
  await image.decode();
  canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
  URL.revokeObjectURL(image.src);
  return canvas;
}

// The same of a picture with a font of its own, which a browser may read only after it has drawn: until then letters are missing.
// One of them, drawn below the picture and cut off, says when.
async function lettered(svg, width, height) {
  const room = 20, [letter] = svg.match(/[\u3000-\u9fff]/), picture = new DOMParser().parseFromString(svg, "image/svg+xml"), root = picture.documentElement;
  root.setAttribute("height", height + room);
  root.setAttribute("viewBox", `0 0 ${width} ${height + room}`);
  const sign = root.appendChild(picture.createElementNS(root.namespaceURI, "text"));
  sign.textContent = letter;
  for (const [name, value] of Object.entries({ y: height + 16, "font-size": 16, "font-family": "attnviz Japanese" })) sign.setAttribute(name, value);
  const file = new Blob([new XMLSerializer().serializeToString(picture)], { type: "image/svg+xml" });
  for (let tries = 0; ; tries += 1) {
    const canvas = await drawn(file, width, height + room), below = canvas.getContext("2d").getImageData(0, 2 * height, 40, 2 * room);
    if (below.data.some(Boolean) || tries === 50) {
      const whole = Object.assign(document.createElement("canvas"), { width: 2 * width, height: 2 * height });
      whole.getContext("2d").drawImage(canvas, 0, 0);
      return whole;
    }
    await new Promise((resolve) => setTimeout(resolve, 20 * tries));
  }
}
