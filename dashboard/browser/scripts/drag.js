// Bars that are sliders: drag one, or focus it and press the arrow keys. What is let go is sent to the page (see drag.py).
function label(bar, value, total) {
  const share = total > 0 ? value / total : 0;
  bar.querySelector("output").textContent = share.toFixed(2);
  bar.querySelector("input").setAttribute("aria-valuetext", `${share.toFixed(2)} of the weight`);
}

function values(row) {
  return [...row.querySelectorAll("input")].map((input) => input.exact); // the browser rounds a value to the steps of the bar
}

function relabel(row) {
  const all = values(row), total = all.reduce((sum, value) => sum + value, 0);
  [...row.children].forEach((bar, i) => label(bar, all[i], total));
}

function build(row, { tokens, weights }) {
  row.replaceChildren(...tokens.map((token, i) => {
    const bar = document.createElement("label"), output = document.createElement("output"), input = document.createElement("input"), name = document.createElement("span");
    Object.assign(input, { type: "range", min: 0, max: 1, step: 0.01, value: weights[i], exact: weights[i] });
    input.setAttribute("aria-label", `weight of source token ${i + 1}, ${token}`);
    input.setAttribute("aria-orientation", "vertical");
    name.textContent = token;
    bar.append(output, input, name);
    return bar;
  }));
}

function set(row, { weights }) {
  row.querySelectorAll("input").forEach((input, i) => Object.assign(input, { value: weights[i], exact: weights[i] }));
}

export default function ({ data, parentElement, setTriggerValue }) {
  const row = parentElement.querySelector(".drag-bars"), tokens = JSON.stringify(data.tokens), weights = JSON.stringify(data.weights);
  if (row.tokens !== tokens) build(row, data);
  else if (row.weights !== weights) set(row, data); // the bar that is in use keeps the focus
  Object.assign(row, { tokens, weights });
  relabel(row);
  row.oninput = ({ target }) => { target.exact = Number(target.value); relabel(row); };
  row.onchange = () => setTriggerValue("weights", values(row));
}
