"""The runs that a checkpoint's weights went through."""

import pytest

from attnviz.models import checkpoints, provenance

FIRST = {
    "command": "train",
    "settings": {"seed": 1},
    "data": {"a": "01"},
    "epochs": 20,
    "seconds": 60,
    "weights_sha256": "23",
    "history": [{"epoch": 1, "val_bleu_lc": 5.0, "val_loss": 2.0, "train_loss": 3.0}],
}


def test_the_runs_of_a_card_begin_with_the_first():
    second = FIRST | {"epochs": 10, "start": FIRST}
    third = {"epochs": 5, "start": second}
    assert provenance.runs({}) == [{}] and provenance.runs(FIRST) == [FIRST]
    assert provenance.runs(third) == [FIRST, second, third]
    for start in ("0123", ["x"], 5, {}, None):
        assert provenance.runs({"epochs": 1, "start": start}) == [{"epochs": 1, "start": start}]


def test_a_card_keeps_what_all_runs_before_it_say(tmp_path, monkeypatch):
    folder = tmp_path / "en-fr" / "bahdanau"
    checkpoints.write_json(
        folder / "card.json", FIRST | {"seed": 1, "history": [FIRST["history"][0] | {"seconds": 9, "device": "abacus"}]}
    )
    begun = provenance.begun(folder)
    assert begun == {"start": FIRST} and provenance.begun(None) == {}
    checkpoints.write_json(folder / "card.json", FIRST | {"epochs": 10} | begun)
    monkeypatch.chdir(folder)
    assert provenance.begun(folder / ".") == {"start": FIRST | {"epochs": 10, "start": FIRST}}


def test_a_card_that_is_missing_says_nothing_and_a_damaged_one_is_told(tmp_path):
    folder = tmp_path / "en-fr" / "bahdanau"
    folder.mkdir(parents=True)
    assert provenance.begun(folder) == {"start": dict.fromkeys(FIRST) | {"history": []}}
    for history in ("much", 5, [1, "two"]):
        checkpoints.write_json(folder / "card.json", FIRST | {"history": history})
        assert provenance.begun(folder) == {"start": FIRST | {"history": []}}
    (folder / "card.json").write_text("{")
    with pytest.raises(checkpoints.CheckpointError):
        provenance.begun(folder)
