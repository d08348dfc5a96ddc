"""The code that runs in the browser: scripts/ has one file per task.

The index page loads them once, as one script (server/index_page.py). Streamlit sends the script of a component with
every change of its data, so the script of a component is one line that calls the loaded code.
"""

import json
from pathlib import Path

from attnviz import plotlyjs
from attnviz.export import fonts

# bridge.js calls what is in those after it. Charts have names of their own.
_BRIDGE = ("bridge", "save", "tokens", "rows", "tour", "enlarge", "skip", "pages", "present", "guesses")
_CHARTS, _MOMENTS = ("plot",), ("learning",)


def script(name: str) -> str:
    """The text of a script, such as `plot.js`."""
    return (Path(__file__).parent / "scripts" / name).read_text(encoding="utf-8")


def loaded() -> str:
    """The script that the index page loads."""
    face = f"const JAPANESE_FACE = {json.dumps(fonts.rule('ADDRESS', 'truetype'))};"
    bridge = "\n".join([face, *(script(f"{name}.js") for name in _BRIDGE), plotlyjs.SAVING])
    others = ("\n".join(script(f"{name}.js") for name in names) for names in (_CHARTS, _MOMENTS))
    return "".join(f"(() => {{\n'use strict';\n{part}\n}})();\n" for part in (bridge, *others))
