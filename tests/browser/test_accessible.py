"""No finding of axe-core, of any impact, on the pages as they open, light and dark.

vendor/axe.min.js is that of the npm package axe-core 4.14.1, unchanged; its licence is MPL-2.0.
"""

from pathlib import Path

import pytest

AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text(encoding="utf-8")
FINDINGS = """async () => (await axe.run()).violations.map(
  (rule) => `${rule.impact} ${rule.id}: ${rule.nodes.map((node) => node.html.slice(0, 120)).join(" ")}`)"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/", "/heads"])
def test_axe_finds_nothing(chrome, address, path, theme):
    context = chrome.new_context(viewport={"width": 1366, "height": 900}, color_scheme=theme, bypass_csp=True)
    page = context.new_page()
    page.goto(address + path)
    page.wait_for_selector(".caveat", timeout=60_000)  # the last words of the page
    page.wait_for_function("document.querySelectorAll('.js-plotly-plot').length > 3")
    page.evaluate(AXE)
    findings = page.evaluate(FINDINGS)
    context.close()
    assert findings == []
