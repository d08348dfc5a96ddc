// A map or its bars over the whole window: every token is named, in full, and what does not fit is reached by scrolling.
const CELL = { least: 22, most: 120 }, LETTER = 7.6, EDGE = 16; // px of a cell, of a letter of 14 px, beside the longest label

function enlarge(chart, button) {
  const { data, layout } = picture(chart), dialog = document.createElement("dialog"), { label = "chart" } = meta(chart);
  dialog.className = "enlarged";
  dialog.setAttribute("aria-label", label);
  dialog.innerHTML = '<form method="dialog"><p></p><button class="close">Close</button></form><div class="scroll" tabindex="0" role="group"><div class="large"></div></div>';
  dialog.querySelector("p").textContent = label[0].toUpperCase() + label.slice(1);
  dialog.querySelector(".scroll").setAttribute("aria-label", `${label}: ${meta(chart).description ?? ""}`);
  document.querySelector(".stApp").append(dialog); // where the theme is
  dialog.showModal();
  const large = dialog.querySelector(".large"), room = dialog.querySelector(".scroll").getBoundingClientRect();
  if (data[0].type === "heatmap") data[0].hovertext ??= chart.data?.[0]?.hovertext; // plot.js has written them out
  window.Plotly.newPlot(large, data, { ...layout, font: chart._fullLayout.font, ...spread(layout, meta(chart).ticks, room) }, { displayModeBar: false });
  dialog.addEventListener("close", () => { window.Plotly.purge(large); dialog.remove(); button.focus(); });
}

// The axes with all labels, and the size that gives each its room. ticks : {x, y}, where some were cut or left out.
function spread({ xaxis, yaxis, margin }, ticks = {}, room) {
  const columns = ticks.x ?? xaxis.ticktext, queries = ticks.y ?? (yaxis.range[0] > yaxis.range[1] ? yaxis.ticktext : null);
  const top = xaxis.side === "top", left = queries ? width(queries) : 48, names = width(columns), right = 24;
  const wide = between((room.width - left - right - EDGE) / columns.length), upright = wide < names;
  const over = (upright ? names : 34) + EDGE, under = top ? 78 : over;
  const high = queries && between((room.height - over - under - EDGE) / queries.length);
  return {
    width: left + right + wide * columns.length, height: queries ? over + under + high * queries.length : Math.max(room.height - EDGE, 260),
    autosize: false, annotations: [], title: undefined,
    margin: { ...margin, l: left, r: right, t: top ? over : 24, b: under },
    xaxis: { ...xaxis, ...all(columns), tickangle: upright ? -90 : 0 }, yaxis: queries ? { ...yaxis, ...all(queries) } : yaxis,
  };
}

const between = (size) => Math.min(Math.max(size, CELL.least), CELL.most);
const all = (texts) => ({ tickvals: texts.map((_, place) => place), ticktext: texts, tickfont: { size: 14 } });

function width(labels) {
  const plain = document.createElement("span");
  return EDGE + LETTER * Math.max(...labels.map((label) => {
    plain.innerHTML = label; // escaped where it was made; never in the page
    return [...plain.textContent].reduce((sum, letter) => sum + (letter.codePointAt(0) > 0x2e7f ? 2 : 1), 0);
  }));
}
