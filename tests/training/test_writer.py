"""Training a model that writes: what each pass reads, a run killed and resumed, and one that is made longer."""

from collections import Counter

import numpy as np
import pytest
import tiny_writer
import torch
from runs import Killed, history, kill_after, same
from tiny_writer import config, trained

from attnviz import moments
from attnviz.data import corpora
from attnviz.data.tokenizer import BOS, EOS, train_vocabulary
from attnviz.evaluation.language import surprise
from attnviz.models import checkpoints
from attnviz.models.checkpoint_files import read_card
from attnviz.training.optimizer import learning_rate
from attnviz.training.train import train
from attnviz.training.trainer import TextBatches
from attnviz.training.validation import NEAR, pack_spaced

WHOLE = ("model.safetensors", "training.safetensors")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tiny_writer.write_data(tmp_path_factory.mktemp("texts"))


@pytest.fixture(scope="module")
def finished(data, tmp_path_factory):
    """The folder of a model whose run nothing interrupted, not to be changed."""
    return trained(data, tmp_path_factory.mktemp("finished"))


@pytest.fixture(scope="module")
def text(data):
    corpus = corpora.load("en", data)
    return train_vocabulary(corpus.texts(), 120, corpus.style)


def batches(text, pairs, **changes):
    return TextBatches(config(**changes), text, pairs)


def test_a_pass_reads_every_token_once_but_for_the_ends(text):
    pairs = [(f"The dog number {number} runs." * 3, "stories") for number in range(20)]
    made = batches(text, pairs)
    for epoch in range(3):
        order = made.order(epoch)
        places = sorted(place for batch in order for place in batch)
        assert np.diff(places).tolist() == [32] * (len(places) - 1) and len(order) * 3 == made.total
        assert 0 <= places[0] < 32 and places[-1] + 32 <= len(made.stream) < places[-1] + 3 * 32
        every = Counter(number for ids in text.batch_ids([a for a, _ in pairs]) for number in ids)
        assert Counter(made.stream.tolist()) == every
        assert [len(batch) for batch in order[:-1]] == [3] * (len(order) - 1)


def test_passes_differ_and_repeat(text):
    pairs = [(f"Horse number {number}." * 3, "stories") for number in range(20)]
    first, second, again = (batches(text, pairs) for _ in range(3))
    assert first.order(0) != first.order(1)
    second.order(5)  # a resumed run has not read the passes before
    assert second.order(1) == again.order(1) and np.array_equal(second.stream, again.stream)


def test_what_is_predicted_follows_what_is_read(text):
    made = batches(text, [("The dog runs. The cat sleeps." * 30, "stories")])
    source, target = made.tensors(made.order(0)[0], "cpu")
    assert source.shape == target.shape == (3, 32) and (source[:, 0] == BOS).all()
    assert torch.equal(source[:, 1:], target[:, :-1])


def test_a_part_is_read_in_so_many_passes(text):
    """Captions are read in two passes: half of them in each, and all stories in both."""
    pairs = [("The dog runs." * 9, "stories")] * 4 + [("A cat." * number, "captions") for number in range(1, 8)]
    made, read = batches(text, pairs), []
    for epoch in range(2):
        made.order(epoch)
        ends = np.flatnonzero(made.stream == EOS)
        texts = [text.spelled(part) for part in np.split(made.stream, ends + 1)[:-1]]
        assert texts.count("The dog runs." * 9) == 4
        read.append([text for text in texts if text.startswith("A cat")])
    assert [len(texts) for texts in read] == [4, 3] and sorted(sum(read, []), key=len) == [
        pair[0] for pair in pairs[4:]
    ]


def test_too_little_text_is_refused(text):
    with pytest.raises(ValueError, match="a pass needs at least 64 pieces of text, two contexts of the model; got 6"):
        batches(text, [("Dog.", "stories")])


@pytest.mark.parametrize("updates", [3, 10])
def test_killed_and_resumed_is_as_if_never_killed(data, finished, tmp_path, monkeypatch, updates):
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_after(patch, updates)
        patch.setattr("attnviz.training.train.time.monotonic", iter(range(0, 10**6, 100)).__next__)  # saves at once
        trained(data, tmp_path)
    torch.manual_seed(99)
    folder = trained(data, tmp_path)
    assert same(folder, finished, *WHOLE) and history(folder) == history(finished)


def test_a_run_becomes_longer_until_its_rate_falls(data, tmp_path, monkeypatch):
    """Four passes, resumed for five: the same as five from the start. With the rate fallen, that is another run."""
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_after(patch, 4)
        patch.setattr("attnviz.training.train.time.monotonic", iter(range(0, 10**6, 100)).__next__)
        trained(data, tmp_path / "longer", epochs=4, warmup=1)
    longer, five = (trained(data, tmp_path / name, epochs=5, warmup=1) for name in ("longer", "five"))
    assert same(longer, five, *WHOLE) and len(history(longer)) == 5
    with pytest.raises(ValueError, match=r"different settings \(epochs 5, now 6\)"):
        trained(data, tmp_path / "longer", epochs=6, warmup=1)


def test_the_rate_is_constant_and_then_falls_to_nothing():
    wanted = config(warmup=2, learning_rate=1.0, decay=0.25)
    rates = [learning_rate(update, 40, wanted) for update in range(41)]
    assert rates[:2] == [0.5, 1.0] and rates[2:31] == [1.0] * 29
    assert rates[30:] == pytest.approx([1 - number / 10 for number in range(11)])


def test_it_learns_and_its_card_says_how_well(finished):
    entries, card = history(finished), read_card("en/writer", finished.parent.parent)
    assert entries[-1]["val_loss"] < entries[0]["val_loss"]
    assert card["best"]["val_bits_a_character"] == min(entry["val_bits_a_character"] for entry in entries)
    assert entries[-1]["val_bits_a_character"] == entries[-1]["val_bits_a_character_stories"]
    parts = ["val_stories", "val_captions", "val_everyday"]
    assert list(card["scores"]) == [*parts, "stories", "captions_2016", "captions_2017", "everyday"]
    assert all(scores["bits_a_character"] > 0 for scores in card["scores"].values())
    assert card["scores"]["stories"]["bits_a_character"] < 2
    assert card["ms_per_token"] > 0 and card["mechanism"] == "writer"


def test_moments_are_kept_and_packed(data, tmp_path):
    corpus = corpora.load("en", data)
    folder = train(config(), corpus, tmp_path, "en", moments=tmp_path / "kept", compile=False)
    val = [pair for pair in corpus.val if pair[1] == "stories"]
    path, rows = pack_spaced("en/writer", tmp_path, tmp_path / "kept", val, 2)
    assert path.is_file() and [update for update, _, _ in rows] == [0, 12]
    assert all(abs(packed / before - 1) <= NEAR for _, before, packed in rows), rows
    text, network = checkpoints.load_tokenizer("en", tmp_path), moments.restore("en/writer", 1, tmp_path)
    assert surprise(network, text, [story for story, _ in val]).nats_a_piece == pytest.approx(rows[1][2])
    assert history(folder)[-1]["val_loss"] < rows[0][1]
