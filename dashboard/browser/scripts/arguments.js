// What the page says to bridge.js. Its scripts are long and always the same, and Streamlit sends the scripts of a component with
// every change of its data. Here they come apart: a browser that has the scripts is not sent them again.
export default function (component) {
  const said = (window.__attnvizSaid ??= {});
  said.component = component;
  const stop = said.act?.(component);
  return () => {
    if (said.component === component) said.component = null;
    (stop ?? said.stop)?.();
  };
}
