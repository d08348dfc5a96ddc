"""`python -m attnviz models` with cards that say odd things: the table stands, whatever is in them."""

import pytest
import tiny

from attnviz import checkpoints
from attnviz.__main__ import main


@pytest.mark.parametrize("card", [
    {"scores": []}, {"scores": {"test_2016_flickr": 3}}, {"scores": {"test_2016_flickr": {"bleu_lc": "high"}}}, {"parameters": "many"},
    {"parameters": None}, {"parameters": [1], "scores": None}, {},
])  # fmt: skip
def test_a_card_that_says_odd_things(tmp_path, capsys, card):
    root = tiny.write_models(tmp_path)
    checkpoints.write_json(root / "en-fr" / "bahdanau" / "card.json", card)
    assert main(["models", "--root", str(root)]) == 0
    out, err = capsys.readouterr()
    line = next(line for line in out.splitlines() if line.startswith("en-fr/bahdanau"))
    assert err == "" and "–" in line and line.endswith("none")
    assert "1,234" in out and "1.50" in out  # the others are as they were
