// A figure in the colours of a theme: each colour of the light theme has one in the dark theme (COLOURS, of Python).
const TEXTS = ["text", "ticktext", "hovertext", "customdata", "meta"]; // of a figure: no colours
function themed({ data, layout }, dark) {
  const turned = (value, name) => {
    if (TEXTS.includes(name)) return value;
    if (Array.isArray(value)) return value.map((inner) => turned(inner));
    if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([inner, part]) => [inner, turned(part, inner)]));
    return COLOURS.get(value) ?? value;
  };
  return dark ? { data: turned(data), layout: turned(layout) } : { data, layout };
}
