// What the page says to bridge.js, which the index page has loaded.
export default function (component) {
  const said = (window.__attnvizSaid ??= {});
  said.component = component;
  const stop = said.act?.(component);
  return () => {
    if (said.component === component) said.component = null;
    (stop ?? said.stop)?.();
  };
}
