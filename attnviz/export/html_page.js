// The script of html_page.py: draws the figures that are packed in the page, and follows the steps.
const DARK = matchMedia("screen and (prefers-color-scheme: dark)"); // paper stays light
const text = (id) => document.getElementById(id).textContent;
const steps = []; // what draws the bars of each part anew
let headings;

async function begin() {
  const script = document.createElement("script");
  script.textContent = await unpack(text("plotly")); // packed it is a third of its size, figures are a tenth
  document.head.append(script);
  const figures = JSON.parse(await unpack(text("figures"))), drawn = Object.entries(figures.drawn);
  headings = figures.saved;
  for (const [id, figure] of drawn) {
    const { data, layout } = themed(figure, DARK.matches);
    await Plotly.newPlot(id, data, layout, saveButtons(id, (chart) => chart.heading ?? headings[id]));
  }
  for (const [part, { main, bars }] of Object.entries(figures.steps)) follow(part, main, bars);
  DARK.addEventListener("change", () => {
    for (const [id, figure] of drawn) redraw(id, figure);
    for (const again of steps) again();
  });
}

function redraw(id, figure) {
  const { data, layout } = themed(figure, DARK.matches);
  Plotly.react(id, data, layout);
}

function follow(part, main, bars) {
  const choose = document.getElementById(`${part}choose`);
  function show(step) {
    choose.value = step + 1; // as it is counted on the page
    document.getElementById(`${part}step`).textContent = `${step + 1} of ${bars.length}`;
    redraw(`${part}bars`, bars[step]);
    document.getElementById(`${part}bars`).heading = bars[step].saved;
    document.getElementById(`${part}caption`).textContent = bars[step].layout.meta.description;
  }
  steps.push(() => show(Number(choose.value) - 1));
  choose.addEventListener("input", () => show(Number(choose.value) - 1));
  document.getElementById(part + main).on("plotly_click", (event) => show(event.points[0].y));
}
begin();
