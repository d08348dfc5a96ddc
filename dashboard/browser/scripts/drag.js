// Bars that are sliders: drag one, or focus it and press the arrow keys. They always sum to 1: a bar that moves takes its
// weight from the others, in proportion to theirs. What is let go is sent to the page (see drag.py).
function values(row) {
  return [...row.querySelectorAll("input")].map((input) => input.exact); // the browser rounds a value to the steps of the bar
}

function relabel(row) {
  row.querySelectorAll("label").forEach((bar) => {
    const input = bar.querySelector("input"), share = input.exact.toFixed(2);
    bar.querySelector("output").textContent = share;
    input.setAttribute("aria-valuetext", `${share} of the weight`);
  });
  row.nextElementSibling.textContent = `Sum of the weights of ${row.model}: ${values(row).reduce((sum, value) => sum + value, 0).toFixed(2)}`;
}

function move(row, moved) {
  const others = [...row.querySelectorAll("input")].filter((input) => input !== moved);
  const rest = others.reduce((sum, input) => sum + input.exact, 0), value = others.length ? Number(moved.value) : 1;
  for (const input of others) {
    input.exact = rest > 0 ? input.exact * (1 - value) / rest : (1 - value) / others.length;
    input.value = input.exact;
  }
  Object.assign(moved, { value, exact: value });
}

function build(row, { tokens, weights, model }) {
  row.replaceChildren(...tokens.map((token, i) => {
    const bar = document.createElement("label"), output = document.createElement("output"), input = document.createElement("input"), name = document.createElement("span");
    Object.assign(input, { type: "range", min: 0, max: 1, step: 0.01, value: weights[i], exact: weights[i] });
    input.setAttribute("aria-label", `${model}: weight of source token ${i + 1}, ${token}`);
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
  Object.assign(row, { tokens, weights, model: data.model });
  relabel(row);
  row.oninput = ({ target }) => { move(row, target); relabel(row); };
  row.onchange = () => setTriggerValue("weights", values(row));
}
