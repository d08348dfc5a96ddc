"""The first weights of a run, from a trained model, as they are or with another vocabulary."""

import pytest
import tiny
import torch
from runs import PAIR, config, history
from safetensors.torch import load_file

from attnviz.data.tokenizer import train_vocabulary
from attnviz.models import checkpoint_files, checkpoints
from attnviz.training import saved_run
from attnviz.training.initial import spellings, transplant, transplanted
from attnviz.training.train import train


def test_fine_tuning_begins_with_the_weights_and_the_tokenizer(finished, corpus, tmp_path):
    start, out = finished(), tmp_path / "out"
    before = history(start)[-1]
    folder = train(config(epochs=1, learning_rate=1e-9), corpus, out, PAIR, start=start)
    first = history(folder)[0]
    assert first["val_loss"] == pytest.approx(before["val_loss"], abs=2e-3)
    assert first["val_loss"] < history(start)[0]["val_loss"] - 0.1
    assert (folder.parent / "tokenizer.json").read_bytes() == (start.parent / "tokenizer.json").read_bytes()
    settings = saved_run.read(folder)["settings"]
    assert settings["start"] == checkpoint_files.fingerprint(f"{PAIR}/bahdanau", start.parent.parent)


def test_fine_tuning_refuses_another_model_and_another_tokenizer(finished, corpus, tmp_path):
    start = finished()
    with pytest.raises(ValueError, match="holds a different model"):
        train(config("transformer"), corpus, tmp_path / "a", PAIR, start=start)
    train_vocabulary(["x y"], 40).save(_parents(tmp_path / "b" / PAIR / "tokenizer.json"))
    with pytest.raises(ValueError, match="differs from the tokenizer of"):
        train(config(), corpus, tmp_path / "b", PAIR, start=start)


def test_another_mechanism_begins_with_the_weights_that_both_have(finished, corpus, tmp_path, capsys):
    start = finished("luong-general")
    folder = train(config("luong-local", epochs=1, learning_rate=1e-9), corpus, tmp_path, PAIR, start=start)
    before, after = (load_file(path / "model.safetensors") for path in (start, folder))
    new = ["attention.hidden.weight", "attention.place.weight"]
    assert sorted(after.keys() - before.keys()) == new
    assert all(torch.allclose(after[name].float(), before[name].float(), atol=1e-3) for name in before)
    assert (
        f"{start} has another mechanism; these weights begin at random: {', '.join(new)}\n" in capsys.readouterr().err
    )
    card = checkpoint_files.read_card(f"{PAIR}/luong-local", tmp_path)
    assert card["start"]["weights_sha256"] == checkpoint_files.fingerprint(f"{PAIR}/luong-general", start.parent.parent)


def _parents(path):
    path.parent.mkdir(parents=True)
    return path


def test_rows_by_hand():
    old = train_vocabulary(["ab abc"] * 3, 12)  # a, b, c and what they join to
    new = train_vocabulary(["abc cab"] * 3, 16)
    names = [new.backend.id_to_token(number) for number in range(len(new))]
    spelt = dict(zip(names, spellings(old, new)))
    assert spelt["<eos>"] == [2] and spelt["c"] == [old.backend.token_to_id("c")]
    assert [old.backend.id_to_token(part) for part in spelt["ca"]] == ["c", "a"] if "ca" in spelt else True
    weights = {
        "embedding.weight": torch.randn(len(old), 3),
        "output_bias": torch.randn(len(old)),
        "other": torch.ones(2),
    }
    moved = transplanted(weights, old, new)
    for piece, parts in spelt.items():
        number = names.index(piece)
        assert torch.equal(moved["embedding.weight"][number], weights["embedding.weight"][parts].mean(dim=0))
        assert torch.equal(moved["output_bias"][number], weights["output_bias"][parts].mean())
    assert torch.equal(moved["other"], weights["other"])


def test_a_checkpoint_is_transplanted_and_translates(tmp_path):
    root = tiny.write_models(tmp_path / "old") or tmp_path / "old"
    new = train_vocabulary((side for pair in tiny.sentences(200, 5) for side in pair), 90)
    new.save(tmp_path / "tokenizer.json")
    folder = transplant(root / "en-fr" / "bahdanau", tmp_path / "tokenizer.json", tmp_path / "new")
    model, config = checkpoints.load_model("en-fr/bahdanau", tmp_path / "new")
    assert config["vocabulary"] == len(new) and model.embedding.num_embeddings == len(new)
    assert (folder.parent / "tokenizer.json").read_bytes() == (tmp_path / "tokenizer.json").read_bytes()
    other = transplant(root / "en-fr" / "bahdanau", tmp_path / "tokenizer.json", tmp_path / "new", "en-de")
    assert other == tmp_path / "new" / "en-de" / "bahdanau" and (other / "model.safetensors").is_file()
