"""The runs that a checkpoint's weights went through."""

import pytest

from attnviz.models import checkpoint_files

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
    assert checkpoint_files.runs({}) == [{}] and checkpoint_files.runs(FIRST) == [FIRST]
    assert checkpoint_files.runs(third) == [FIRST, second, third]
    for start in ("0123", ["x"], 5, {}, None):
        assert checkpoint_files.runs({"epochs": 1, "start": start}) == [{"epochs": 1, "start": start}]


def test_a_card_keeps_what_all_runs_before_it_say(tmp_path, monkeypatch):
    folder = tmp_path / "en-fr" / "bahdanau"
    checkpoint_files.write_json(
        folder / "card.json", FIRST | {"seed": 1, "history": [FIRST["history"][0] | {"seconds": 9, "device": "abacus"}]}
    )
    begun = checkpoint_files.begun(folder)
    assert begun == {"start": FIRST} and checkpoint_files.begun(None) == {}
    checkpoint_files.write_json(folder / "card.json", FIRST | {"epochs": 10} | begun)
    monkeypatch.chdir(folder)
    assert checkpoint_files.begun(folder / ".") == {"start": FIRST | {"epochs": 10, "start": FIRST}}


def test_a_card_that_is_missing_says_nothing_and_a_damaged_one_is_told(tmp_path):
    folder = tmp_path / "en-fr" / "bahdanau"
    folder.mkdir(parents=True)
    assert checkpoint_files.begun(folder) == {"start": dict.fromkeys(FIRST) | {"history": []}}
    for history in ("much", 5, [1, "two"]):
        checkpoint_files.write_json(folder / "card.json", FIRST | {"history": history})
        assert checkpoint_files.begun(folder) == {"start": FIRST | {"history": []}}
    (folder / "card.json").write_text("{")
    with pytest.raises(checkpoint_files.CheckpointError):
        checkpoint_files.begun(folder)
