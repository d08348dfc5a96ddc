"""A trained model with another vocabulary."""

import tiny
import torch

from attnviz.models import checkpoints
from attnviz.data.tokenizer import train_vocabulary
from attnviz.training.transplant import spellings, transplant, transplanted


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
