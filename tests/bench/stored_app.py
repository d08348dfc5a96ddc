"""The page with the models' work taken out: traces come from a folder of JSON files that tests/bench/page.py wrote."""

import functools
import hashlib
import os
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from attnviz.trace import Trace  # noqa: E402
from dashboard import state  # noqa: E402


@functools.cache
def stored(mechanism: str, text: str) -> Trace:
    name = hashlib.sha256(f"{mechanism}/{text}".encode()).hexdigest()
    return Trace.from_json((Path(os.environ["ATTNVIZ_STORED"]) / f"{name}.json").read_text(encoding="utf-8"))


state.trace = lambda mechanism, text, target, beam: stored(mechanism, text)
if __name__ == "__main__":
    runpy.run_path(str(ROOT / "dashboard" / "app.py"), run_name="__main__")
