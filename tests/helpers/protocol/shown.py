"""What a person sees of a page of the dashboard: its sentence, its controls, its words, and the data of its pictures.

Two pages show the same where these are equal, whatever their addresses are."""

from playwright.sync_api import Page

# The words are those on the screen. The offer of the tour is made to new visitors only, and what a button says for a
# moment, a picture beside the pointer, or a field in use (“15/200”), is no part of the view. The numbers of a picture
# are one digest of all that Plotly holds of it.
_SHOWN = r"""() => {
  const seen = (selector) => [...document.querySelectorAll(selector)].filter((part) => part.offsetParent);
  const words = (part, selector) => [...part.querySelectorAll(selector)].map(({ innerText }) => innerText);
  const value = (part) => part.type === "checkbox" || part.type === "radio" ? part.checked : part.value;
  const digest = (text) => [...text].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)) | 0, 7);
  const plain = (name, data) => ArrayBuffer.isView(data) ? [...data] : data;
  const data = ({ x, y, z, text, customdata }) => ({ x, y, z, text, customdata });
  const controls = {};
  for (const place of document.querySelectorAll("[class*='st-key-']")) {
    const key = [...place.classList].find((name) => name.startsWith("st-key-"));
    if (place.querySelector("[class*='st-key-']")) continue;
    const inputs = [...place.querySelectorAll("input:not([type=file]), textarea")].map(value);
    const chosen = words(place, "[aria-checked=true], [aria-pressed=true]");
    const written = words(place, "[role=combobox], [data-baseweb=select]");
    if (inputs.length || chosen.length || written.length) controls[key] = [inputs, chosen, written];
  }
  const passing = words(document, ".st-key-tour_offer, .tip, .save, [data-testid=InputInstructions]");
  const main = seen("[data-testid=stMain]")[0];
  const hovering = [...document.querySelectorAll(".hoverlayer > *")].map((part) => [part, part.parentNode]);
  hovering.forEach(([part]) => part.remove());  // innerText has hidden parts of a picture too
  const text = passing.reduce((all, part) => all.replace(part, ""), main?.innerText ?? "");
  hovering.forEach(([part, layer]) => layer.append(part));
  const charts = seen(".plot").filter((chart) => !chart.hidden && chart._fullData);
  return {
    page: location.pathname,
    sentence: document.querySelector(".st-key-text :is(input, textarea)")?.value ?? null, controls,
    translations: seen(".said").map(({ innerText }) => innerText),
    charts: charts.map(({ meta, _fullData }) => [meta?.label, digest(JSON.stringify(_fullData.map(data), plain))]),
    words: text.split(/\s*\n\s*/).filter((line) => line && !["Copy link", "Link copied"].includes(line)),
  };
}"""


def shown(page: Page) -> dict:
    """What the page shows now."""
    return page.evaluate(_SHOWN)


def keeps_last_picture(view: dict) -> bool:
    """Does the page show its last picture, because nothing can be drawn of what was typed or chosen?"""
    return any(line.startswith("The page still shows") for line in view["words"])


def difference(first: dict, second: dict) -> str:
    """Where two pages differ, in lines; empty where they show the same."""
    lines = []
    for name in first:
        if first[name] == second[name]:
            continue
        if isinstance(first[name], dict):
            keys = sorted({*first[name], *second[name]})
            parts = [(key, first[name].get(key), second[name].get(key)) for key in keys]
            lines += [f"{name} {key}: {left} ≠ {right}" for key, left, right in parts if left != right]
        elif isinstance(first[name], list):
            left = [text for text in first[name] if text not in second[name]]
            right = [text for text in second[name] if text not in first[name]]
            lines.append(f"{name}: {left or 'another order'} ≠ {right}")
        else:
            lines.append(f"{name}: {first[name]} ≠ {second[name]}")
    return "\n".join(lines)
