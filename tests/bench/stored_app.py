"""The page with the models' work taken out: traces come from a file that tests/bench/page.py wrote."""

import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import stored  # noqa: E402

from dashboard import state  # noqa: E402

state.trace = stored.trace
runpy.run_path(str(ROOT / "dashboard" / "app.py"), run_name="__main__")
