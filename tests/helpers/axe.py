"""axe-core, which looks for what keeps people out of a page: tests/browser/vendor."""

import serving

_SCRIPT = (serving.ROOT / "tests" / "browser" / "vendor" / "axe.min.js").read_text(encoding="utf-8")
_FINDINGS = """async () => (await axe.run()).violations.map(
  (rule) => `${rule.impact} ${rule.id}: ${rule.nodes.map((node) => node.html.slice(0, 120)).join(" ")}`)"""


def findings(page) -> list[str]:
    """The violations of any impact on a page (Playwright's), each in a line."""
    page.evaluate(_SCRIPT)
    return page.evaluate(_FINDINGS)
