"""The documentation builds into a site without a warning, and its gallery has every figure."""

import re

import every_figure
import forked
from pages import ROOT

REMOTE = re.compile(r'<(?:script|link|img)[^>]+(?:src|href)="(?:https?:)?//')


def test_the_site_builds_with_the_picture_of_every_figure_and_fetches_nothing(tmp_path):
    done = forked.run("sphinx", "-q", "-W", "--keep-going", "-c", "docs/site", ".", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert 'href="docs/index.html"' in (tmp_path / "index.html").read_text(
        encoding="utf-8"
    )  # what a server shows first
    gallery = (tmp_path / "docs/gallery.html").read_text(encoding="utf-8")
    blocks = (ROOT / "docs/gallery.md").read_text(encoding="utf-8").count("```python")
    assert gallery.count('alt="What the block shows"') >= blocks > 20
    shown = set(re.findall(r"[\w.]+", re.sub("<[^>]+>", "", gallery)))
    names = {name.rpartition(".")[2] for name in shown}
    assert {function.__name__ for function in every_figure.functions()} <= names
    functions = (tmp_path / "docs/site/made/attnviz.select.html").read_text(encoding="utf-8")
    assert "True joins pieces to words" in functions
    formulas = (tmp_path / "docs/site/made/mechanisms.html").read_text(encoding="utf-8")
    assert formulas.count("<math") > 10
    questions = (tmp_path / "docs/site/made/questions.html").read_text(encoding="utf-8")
    assert questions.count("<h2>") == 15 and "weight on &lt;eos&gt; or [SEP]?" in questions
    assert "localhost:8501/learn?chapter=" in questions
    assert not [page for page in tmp_path.rglob("*.html") if REMOTE.search(page.read_text(encoding="utf-8"))]
