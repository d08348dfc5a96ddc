"""The classifier that ships: it is what its card says, and knows what plain words mean."""

import functools

import pytest

import attnviz
from attnviz.models import checkpoint_files
from dashboard.markup import text

NAME = "sst2/self-attention"
PLAIN = {
    "A wonderful film, funny and moving.": "positive",
    "I don't recommend this dull, stupid mess.": "negative",
    "One of the best performances of the year!": "positive",
    "Boring, badly written and far too long.": "negative",
    "A beautiful, touching, and thoughtful story.": "positive",
    "It's a waste of time.": "negative",
}

load = functools.cache(attnviz.load)


def test_it_is_listed():
    assert NAME in attnviz.available()


@pytest.mark.parametrize("sentence, label", PLAIN.items())
def test_plain_words(sentence, label):
    trace = load(NAME).trace(sentence)
    assert trace.translation == label and not any(token.unknown for token in trace.source)
    assert trace.map("encoder").weights.shape == (4, len(trace.source), len(trace.source))


def test_the_card_belongs_to_the_weights():
    card = load(NAME).card
    assert card["weights_sha256"] == checkpoint_files.fingerprint(NAME) and card["data"].keys() == {
        "sst2/train.tsv.gz",
        "sst2/dev.tsv.gz",
    }
    dev = card["scores"]["dev"]
    counts = [
        [dev["confusion"][true][given] for given in ("negative", "positive")] for true in ("negative", "positive")
    ]
    assert [sum(row) for row in counts] == [428, 444] and dev["sentences"] == 872
    assert dev["accuracy"] >= 82 and dev["accuracy"] == pytest.approx(
        100 * (counts[0][0] + counts[1][1]) / 872, abs=0.005
    )
    assert card["best"]["val_accuracy"] == pytest.approx(dev["accuracy"], abs=0.35)  # fp16 may turn a few sentences
    assert "chosen on dev" in card["remark"]
    for key in ("seed", "command", "settings", "parameters", "epochs", "seconds", "device", "versions", "history"):
        assert card[key], key


def test_it_is_small():
    assert sum(path.stat().st_size for path in (checkpoint_files.ROOT / "sst2").rglob("*") if path.is_file()) < 3e6


def test_characters_that_it_does_not_read_are_named():
    """Its reviews have no full stops: what stands in no token is said rather than gone."""
    assert (
        text.unread(load(NAME).trace("A < moving film.. 😴"))
        == " Not read, because the training reviews do not have them: ‘&lt;’, ‘.’, ‘😴’."
    )
    assert text.unread(load(NAME).trace("A moving film, isn't it?")) == ""
