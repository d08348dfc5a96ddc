"""The card that a run writes when it ends."""

import dataclasses
import json
import re
import shutil

import pytest
import tiny
import torch
from runs import config, rewrite

from attnviz import alignment, gold, mechanisms
from attnviz.data import corpora
from attnviz.evaluation import metrics
from attnviz.models import checkpoint_files, checkpoints
from attnviz.models.translator import Translator
from attnviz.networks import registry
from attnviz.training import card
from attnviz.training.train import train

NAME = "en-fr/bahdanau"
PAIRS = tiny.sentences(9, 7)


@pytest.fixture(scope="module")
def whole_corpus(data):
    return corpora.load("en-fr", data)


@pytest.fixture(scope="module")
def root(tmp_path_factory, whole_corpus):
    """With one model, trained on a pair that has tests and aligned sentences."""
    folder = tmp_path_factory.mktemp("whole")
    train(config(), whole_corpus, folder, "en-fr", command="python -m attnviz train ...")
    return folder


def test_a_run_writes_a_complete_card(root, whole_corpus):
    written = checkpoint_files.read_card(NAME, root)
    keys = ("pair", "mechanism", "seed", "command", "epochs", "training_pairs")
    expected = ("en-fr", "bahdanau", 1, "python -m attnviz train ...", 3, len(whole_corpus.train))
    assert {key: written[key] for key in keys} == dict(zip(keys, expected))
    assert len(written["examples"]) == 4 and set(written["examples"]) <= {source for source, _ in whole_corpus.val}
    assert written["data"] == whole_corpus.files and all(
        re.fullmatch("[0-9a-f]{64}", sha) for sha in written["data"].values()
    )
    assert written["settings"] == dataclasses.asdict(config())
    model_config = mechanisms.Config(**checkpoint_files.read_json(root / NAME / "config.json"))
    assert written["parameters"] == sum(p.numel() for p in registry.build(model_config).parameters())
    assert written["peak_memory_mb"] > 0 and written["seconds"] >= 0 and written["device"]
    assert written["precision"] in ("bfloat16", "float32")
    assert set(written["versions"]) == {"attnviz", "python", "torch"}
    assert written["best"] == max(written["history"], key=lambda entry: entry["val_bleu_lc"])
    assert {split: (scores["sentences"], scores["beam"]) for split, scores in written["scores"].items()} == {
        "val": (12, 1),
        "test_2016_flickr": (10, 1),
        "test_2016_flickr_beam_5": (10, 5),
        "test_2017_flickr": (8, 1),
        "test_2017_flickr_beam_5": (8, 5),
    }
    for scores in written["scores"].values():
        assert "tok:13a" in scores["bleu_signature"] and "case:lc" in scores["bleu_lc_signature"]
    assert checkpoints.verify(NAME, root) == written  # its hashes are those of the files


def test_a_card_that_is_missing_is_written_and_one_that_is_there_stays(root, whole_corpus, tmp_path):
    copy = shutil.copytree(root, tmp_path / "copy")
    path = copy / NAME / "card.json"
    before = json.loads(path.read_text())
    path.unlink()
    train(config(), whole_corpus, copy, "en-fr", command="again")
    after = json.loads(path.read_text())
    assert after["command"] == "again" and after["weights_sha256"] == before["weights_sha256"]
    assert after["history"] == before["history"]
    train(config(), whole_corpus, copy, "en-fr", command="a third time")
    assert json.loads(path.read_text()) == after


def test_the_card_says_nothing_of_what_was_not_recorded(root, whole_corpus, tmp_path):
    def forget(tensors, record):
        for entry in record["history"]:
            del entry["peak_memory_mb"], entry["device"], entry["precision"]

    rewrite(shutil.copytree(root, tmp_path / "copy") / NAME, forget)
    rebuilt = card.card(NAME, tmp_path / "copy", whole_corpus, "")
    assert rebuilt["peak_memory_mb"] is rebuilt["device"] is rebuilt["precision"] is None


@pytest.fixture(scope="module")
def untrained(tmp_path_factory):
    """The card of an untrained model, on sentences of which the first is in the training data."""
    root = tiny.write_models(tmp_path_factory.mktemp("run"))
    history = [{"epoch": 1, "val_bleu_lc": 2.0}, {"epoch": 2, "val_bleu_lc": 3.0}, {"epoch": 3, "val_bleu_lc": 1.0}]
    record = {"settings": {"seed": 4}, "seconds": 9.7, "history": history, "losses": [0, 0]}
    checkpoints.save_tensors(root / "en-fr/transformer/training.safetensors", {"x": torch.zeros(1)}, record)
    (root / "en-fr/transformer/card.json").unlink()
    corpus = corpora.Corpus([PAIRS[0]], PAIRS[:3], {"test": PAIRS[:1] + PAIRS[3:]}, {"file": "hash"})
    return card.card("en-fr/transformer", root, corpus, "command"), root, corpus


def test_every_split_is_scored_greedy_and_the_tests_with_a_beam_of_5(untrained):
    content, root, corpus = untrained
    assert {name: (entry["sentences"], entry["beam"]) for name, entry in content["scores"].items()} == {
        "val": (3, 1),
        "test": (7, 1),
        "test_beam_5": (7, 5),
    }
    model = Translator.load("en-fr/transformer", root)
    for name, beam in (("test", 1), ("test_beam_5", 5)):
        texts = [model.trace(source, beam=beam).translation for source, _ in corpus.tests["test"]]
        expected = metrics.score("en-fr", texts, [reference for _, reference in corpus.tests["test"]])
        assert {key: content["scores"][name][key] for key in expected} == expected


def test_sentences_that_training_has_not_seen_are_scored_apart(untrained):
    content, root, corpus = untrained
    unseen = [(source, reference) for source, reference in corpus.tests["test"] if source != PAIRS[0][0]]
    model = Translator.load("en-fr/transformer", root)
    texts = [model.trace(source).translation for source, _ in unseen]
    expected = metrics.score("en-fr", texts, [reference for _, reference in unseen])
    assert 0 < len(unseen) < 7
    assert content["scores"]["test"]["unseen"] == {"sentences": len(unseen), **expected}
    assert "unseen" not in content["scores"]["val"]


def test_the_best_epoch_is_that_of_the_metric_of_the_corpus(untrained):
    content = untrained[0]
    assert content["best"] == {"epoch": 2, "val_bleu_lc": 3.0} and content["epochs"] == 3 and content["seconds"] == 10


def test_the_card_has_the_alignment_error_and_the_time_of_a_sentence(untrained):
    content, root, _ = untrained
    model = Translator.load("en-fr/transformer", root)
    assert content["alignment"] == alignment.report(model, gold.shipped("en-fr"))
    assert content["ms_per_sentence"] > 0 and json.loads(json.dumps(content, allow_nan=False)) == content
