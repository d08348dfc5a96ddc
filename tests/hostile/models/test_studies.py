"""The results of studies in a folder from somebody else: what cannot be shown is left out, and the page is drawn."""

import json

import pytest
import tiny
from streamlit.testing.v1 import AppTest

from attnviz.models import checkpoint_values

PAGE = """import streamlit as st
from dashboard.pages import PAGES

next(page for page in PAGES if page.folder == "learn").show(dict(chapter="bottleneck", lesson="", tables=True))
"""
ROW = {"mechanism": "bahdanau", "words": 8.6, "high": 10, "bleu_lc": 48.4, "joined": False}
WRONG = [
    [],
    None,
    5,
    {"rows": 5},
    {"rows": {"a": 1}},
    {"rows": [5, None, []]},
    *({"rows": [ROW | {name: wrong}]} for name in ROW for wrong in (None, [], {}, "x", True, 10**400)),
    {"rows": [{}]},
    {"models": [5], "rows": [ROW]},
]


@pytest.mark.parametrize("content", WRONG)
def test_what_is_wrong_is_left_out(content):
    study = checkpoint_values.study(content)
    assert all(isinstance(row, dict) for row in [*study.get("rows", ()), *study.get("models", ())])


def test_the_chapter_is_drawn(tmp_path, monkeypatch):
    root = tiny.write_models(tmp_path / "checkpoints")
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(root))
    (root / "studies").mkdir(exist_ok=True)
    for number, content in enumerate(WRONG[3:]):
        (root / "studies" / "length.json").write_text(json.dumps(content) + " " * number)  # another size, another stamp
        app = AppTest.from_string(PAGE, default_timeout=60).run()
        assert not app.exception and not app.error, (content, app.exception, app.error)
