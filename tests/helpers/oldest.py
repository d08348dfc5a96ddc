"""Tests with the oldest releases that pyproject.toml allows: `python tests/helpers/oldest.py [arguments of pytest]`.

They go into an environment of their own, inside the one that runs this. PyTorch, Streamlit and what the tests need come
from there: an older PyTorch is gigabytes.
"""

import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(sys.prefix) / "oldest"
PYTHON = HERE / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
# A plugin of the newer platformdirs; transformers needs newer tokenizers.
WITHOUT = ("-p", "no:cacheprovider", "-p", "no:platformdirs", "--ignore=tests/trace/test_generated.py")
FROM_OUTSIDE = {"torch", "streamlit"}
# What a release may break: reading and drawing traces, tables, pictures and pages, tokenizers and weights.
TESTS = (
    "trace stats figures/test_maps.py figures/test_charts.py figures/test_small_maps.py export/test_html_page.py "
    "cli/test_trace.py data/test_tokenizer.py faithfulness/test_gradients.py dashboard/learn/test_lessons.py "
    "dashboard/compare/test_tour.py"
).split()


def oldest() -> list[str]:
    """The least release of each range, such as `numpy==1.26`, and what the oldest pandas needs beside."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    entries = map(Requirement, project["dependencies"] + project["optional-dependencies"]["notebook"])
    least = {entry.name: part.version for entry in entries for part in entry.specifier if part.operator == ">="}
    return ["pytz", *(f"{name}=={version}" for name, version in least.items() if name not in FROM_OUTSIDE)]


def install() -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--clear", HERE], check=True)
    inside = subprocess.run(
        [PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    )
    (Path(inside.stdout.strip()) / "others.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    options = ["--quiet", "--no-deps", "--no-compile", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", "--python", PYTHON, "install", *options, *oldest()], check=True)


def main(arguments: list[str]) -> int:
    install()
    chosen = arguments or [f"tests/{name}" for name in TESTS]
    return subprocess.run([PYTHON, "-m", "pytest", *WITHOUT, *chosen], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
