// Plotly's configuration of a figure with two buttons, which save it as name.png and name.svg.
// changes : (chart) => what the layout gets when it is saved, so that the picture says what it is: heading.py.
function saveButtons(name, changes) {
  async function save(chart, format) {
    const layout = { ...chart.layout, paper_bgcolor: getComputedStyle(document.body).backgroundColor };
    for (const [part, value] of Object.entries(changes(chart))) {
      layout[part] = value && typeof value === "object" ? { ...layout[part], ...value } : value;
    }
    const size = { format, width: Math.max(chart._fullLayout.width, 720), height: layout.height };
    const face = async () => document.querySelector("style").textContent.match(/@font-face \{[^}]*\}/)?.[0] ?? "";
    const file = await pictureFile({ data: chart.data, layout }, chart, size, face), link = document.createElement("a");
    Object.assign(link, { href: URL.createObjectURL(file), download: `${name}.${format}` }).click();
  }
  const shown = [["png", Plotly.Icons.camera], ["svg", Plotly.Icons.disk]].map(([format, icon]) =>
    ({ name: `Save as ${format.toUpperCase()}`, icon, click: (chart) => save(chart, format) }));
  return { displaylogo: false, displayModeBar: true, scrollZoom: false, showTips: false, responsive: true, modeBarButtons: [shown] };
}
