"""Each checkpoint that ships: it is what its card says, translates sentences it has never seen, and looks where it should."""

import functools

import pytest
import sacrebleu
from captions import LINKS, PAIRS

import attnviz
from attnviz import checkpoints, corpora, select

# Greedy BLEU (13a, lower-cased) on captions.PAIRS when the checkpoint was shipped, less 1 for other machines' rounding.
FLOORS = {"en-fr/bahdanau": 81.3, "en-fr/luong-general": 75.8, "en-fr/transformer": 81.4}
TESTS = ("test_2016_flickr", "test_2017_flickr")
BARS = {"en-fr/bahdanau": (52, 42), "en-fr/luong-general": (52, 42), "en-fr/transformer": (54, 42)}

TRANSLATORS = [name for name in attnviz.available() if name.split("/")[0] not in corpora.LABELLED]
every = pytest.mark.parametrize("name", TRANSLATORS)
load = functools.cache(attnviz.load)


def test_the_three_mechanisms_ship_with_one_vocabulary():
    assert TRANSLATORS == list(BARS)
    assert len(list((checkpoints.ROOT / "en-fr").rglob("tokenizer.json"))) == 1


@every
def test_it_translates_as_well_as_when_it_was_shipped(name):
    model = load(name)
    found = [model.trace(source).translation for source, _ in PAIRS]
    score = sacrebleu.corpus_bleu(found, [[reference for _, reference in PAIRS]], lowercase=True).score
    assert score >= FLOORS[name]


@every
def test_it_looks_where_it_should(name):
    right = total = 0
    for source, target, links in LINKS:
        grid = select.select(load(name).trace(source, target), words=True)
        keys = [token.text for token in grid.keys]
        for row, query in zip(grid.weights, grid.queries):
            if query.text in links:
                total, right = total + 1, right + (keys[row.argmax()] == links[query.text])
    assert total == 12 and right >= 10  # Bahdanau looks at the end mark for a first word, and at "A" for "femme"


@every
def test_the_card_belongs_to_the_weights_and_meets_the_bar(name):
    card = load(name).card
    assert card["weights_sha256"] == checkpoints.fingerprint(name)
    for test, bar in zip(TESTS, BARS[name]):
        assert card["scores"][test]["bleu_lc"] >= bar
        assert "tok:13a" in card["scores"][test]["bleu_lc_signature"] and "case:lc" in card["scores"][test]["bleu_lc_signature"]
    assert card["data"] and all(len(digest) == 64 for digest in card["data"].values())
    for key in ("seed", "command", "settings", "parameters", "epochs", "seconds", "peak_memory_mb", "device", "history"):
        assert card[key], key


@every
def test_the_file_is_small_and_half_precision(name):
    path = checkpoints.ROOT / name / "model.safetensors"
    assert path.stat().st_size <= 10e6
    stored = checkpoints.load_tensors(path)
    assert {str(value.dtype) for value in stored.values()} == {"torch.float16"}
    model = load(name).model
    assert checkpoints.same({key: value.float() for key, value in stored.items()}, dict(model.state_dict()))


@every
def test_beam_search_is_no_worse_than_greedy(name):
    model = load(name)
    for source, _ in PAIRS[:8]:
        greedy, beam = model.trace(source), model.trace(source, beam=5)
        assert beam.log_prob / len(beam.log_probs) >= greedy.log_prob / len(greedy.log_probs) - 1e-4
