"""`sst2` as a person meets it: trained, killed and resumed, loaded, traced, scored, on the command line; and bad files."""

import gzip
import json
import math
import re
import shutil

import numpy as np
import pytest
import tiny
import torch
from attnviz.training.recipes import training_config
from attnviz.training.train import train
from attnviz.training.trainers.classifier import ClassifierTrainer
from attnviz.training.trainers.trainer import Trainer
from runs import Killed, history, kill_after, same

import attnviz
from attnviz import figures, select, stats
from attnviz.__main__ import main
from attnviz.data import corpora, readers
from attnviz.data.tokenizer import train_vocabulary
from attnviz.evaluation import classification
from attnviz.data.tasks.sst2 import LABELS
from attnviz.models import checkpoints
from attnviz.models import classifier as classify
from attnviz.models.model import TextError
from attnviz.trace import Trace

NAME = "sst2/self-attention"
SMALL = [
    "--epochs",
    "4",
    "--batch-tokens",
    "200",
    "--set",
    "vocabulary=90",
    "--set",
    "warmup=5",
    "--set",
    "learning_rate=0.02",
    *(word for name, value in tiny.CLASSIFIER.items() for word in ("--set", f"{name}={value}")),
]
TRAIN = ["train", "--pair", "sst2", "--mechanism", "self-attention", *SMALL]
SENTENCE = "The film isn't dull, it's LOVELY!"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.delenv("ATTNVIZ_DATA", raising=False)


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    return tiny.write_reviews(tmp_path_factory.mktemp("reviews"))


@pytest.fixture(scope="module")
def out(tmp_path_factory, reviews):
    """A folder with the trained checkpoint, made by the command line."""
    folder = tmp_path_factory.mktemp("out")
    assert main([*TRAIN, "--data", str(reviews), "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def classifier(out):
    return attnviz.load(NAME, out)


def config():
    return training_config(
        "sst2",
        "self-attention",
        {**tiny.CLASSIFIER, "dropout": 0.1},
        epochs=3,
        batch_tokens=200,
        vocabulary=90,
        warmup=5,
        word_dropout=0.1,
    )


def test_it_learns_what_the_words_say_and_the_best_epoch_ships(out):
    card = checkpoints.read_card(NAME, out)
    best = max(entry["val_accuracy"] for entry in card["history"])
    assert (
        best >= 90
        and card["best"]["val_accuracy"] == best
        and card["scores"]["dev"]["accuracy"] == pytest.approx(best, abs=2.5)
    )
    assert card["weights_sha256"] == checkpoints.fingerprint(NAME, out) and card["training_pairs"] == 150
    assert card["data"].keys() == {"sst2/train.tsv.gz", "sst2/dev.tsv"} and "chosen on dev" in card["remark"]
    assert card["command"].startswith(
        "python -m attnviz train --pair sst2 --mechanism self-attention --data DIR --epochs 4 "
    )
    for key in (
        "seed",
        "settings",
        "tokenizer_sha256",
        "parameters",
        "epochs",
        "versions",
        "device",
        "ms_per_sentence",
    ):
        assert card[key], key


def test_a_trace_says_the_label_and_everything_that_was_looked_at(classifier):
    trace = classifier.trace(SENTENCE)
    ids = torch.tensor([classifier.tokenizer.ids(SENTENCE)])
    verdict = classifier.model(ids)
    chances = verdict.logits.softmax(-1)[0]
    assert trace.translation == LABELS[int(chances.argmax())] == trace.target[0].text and len(trace.target) == 1
    assert math.exp(trace.log_prob) == pytest.approx(float(chances.max()), abs=1e-5)
    assert {choice.text for choice in trace.alternatives[0]} == set(LABELS)
    assert sum(choice.probability for choice in trace.alternatives[0]) == pytest.approx(1)
    np.testing.assert_allclose(trace.map("cross").weights[0], verdict.pooling[0], atol=1e-6)
    for layer, weights in enumerate(verdict.maps):
        np.testing.assert_allclose(trace.map("encoder", layer).weights, weights[0], atol=1e-6)
    assert [token.text for token in trace.source if token.text in ("isn't", "LOVELY", "!")] and trace.source[-1].special


def test_a_label_can_be_given(classifier):
    own = classifier.trace(SENTENCE)
    for choice in own.alternatives[0]:
        given = classifier.trace(SENTENCE, choice.text)
        assert (
            given.forced
            and given.translation == choice.text
            and math.exp(given.log_prob) == pytest.approx(choice.probability)
        )
        assert classifier.log_prob(SENTENCE, choice.text) == given.log_prob and given.maps == own.maps
    with pytest.raises(ValueError, match="^target must be one of negative, positive; got 'good'$"):
        classifier.trace(SENTENCE, "good")


def test_a_trace_goes_wherever_traces_go(classifier):
    trace = classifier.trace(SENTENCE)
    assert Trace.from_json(trace.to_json()) == trace
    grid = select.select(trace, "encoder", words=True, special=False)
    assert figures.heatmap(grid).data[0].z.shape == grid.weights.shape
    assert [token.text for token in grid.queries][-2:] == ["LOVELY", "!"]
    frame = stats.steps(trace)
    assert len(frame[frame.kind == "cross"]) == 1 and len(frame[frame.kind == "encoder"]) == 4 * len(trace.source)


@pytest.mark.parametrize(
    "text, message",
    [
        (" ", "the text is empty; type a sentence"),
        ("...", "the text has no visible character; type a sentence"),
        ("dull " * 250, "the text is too long: 251 pieces with <eos>, and the models read at most 200"),
    ],
)
def test_texts_that_no_model_can_take(classifier, text, message):
    with pytest.raises(TextError, match=f"^{re.escape(message)}"):
        classifier.trace(text)


def test_scores_by_hand(classifier, reviews):
    pairs = readers.read_labelled(reviews / "sst2" / "dev.tsv", LABELS)
    said = [classifier.trace(sentence).translation for sentence, _ in pairs]  # alone, not in batches
    found = classification.score(classifier, *zip(*pairs))
    assert found["accuracy"] == pytest.approx(100 * np.mean([a == b for a, (_, b) in zip(said, pairs)]), abs=0.01)
    for true in LABELS:
        for given in LABELS:
            assert found["confusion"][true][given] == sum(a == given and b == true for a, (_, b) in zip(said, pairs))
    assert (
        classify.predict(classifier.model, classifier.tokenizer, classifier.labels, [sentence for sentence, _ in pairs])
        == said
    )


def test_the_command_line(out, reviews, tmp_path, capsys):
    def cli(*words):
        assert main([*words, "--root", str(out)]) == 0
        return capsys.readouterr().out

    trace = cli("trace", SENTENCE, "--model", NAME).splitlines()
    assert trace[0].removeprefix("label: ") in LABELS and re.fullmatch(r"probability: [01]\.\d{3}", trace[1])
    assert trace[2] == "attention: encoder, layer 2 of 2, mean of 2 heads" and trace[4].split()[0] == "token"
    assert trace[5].split()[0] == "The" and trace[-1].split()[0] == "<eos>"
    assert Trace.from_json(cli("trace", SENTENCE, "--model", NAME, "--json", "-")).translation in LABELS
    cli("trace", SENTENCE, "--model", NAME, "--html", str(tmp_path / "page.html"))
    assert b"self-attention" in (tmp_path / "page.html").read_bytes()
    dev = str(reviews / "sst2" / "dev.tsv")
    figures = json.loads(cli("evaluate", "--model", NAME, "--source", dev, "--json"))
    assert figures["sentences"] == 40 and sum(sum(row.values()) for row in figures["confusion"].values()) == 40
    shown = cli("evaluate", "--model", NAME, "--source", dev)
    assert f"{figures['accuracy']:.2f} %" in shown and "predicted positive" in shown
    assert re.search(rf"{NAME} .* {figures['accuracy']:.2f} accuracy, dev +none", cli("models"))


def test_killed_and_resumed_is_as_if_never_killed(reviews, tmp_path, monkeypatch):
    corpus = corpora.load("sst2", reviews)
    whole = train(config(), corpus, tmp_path / "whole", "sst2")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_after(patch, 17)
        train(config(), corpus, tmp_path / "killed", "sst2", save_every=0)
    torch.manual_seed(99)
    folder = train(config(), corpus, tmp_path / "killed", "sst2")
    assert same(folder, whole, "model.safetensors", "training.safetensors") and history(folder) == history(whole)


@pytest.mark.parametrize(
    "lines, problem",
    [
        ("good\t1\nbad\n", "2 must be a sentence, a tab, and its label, 0 (negative) or 1 (positive); got 'bad'"),
        (
            "good\t1\n\nbad\t2\n",
            "3 must be a sentence, a tab, and its label, 0 (negative) or 1 (positive); got 'bad\\t2'",
        ),
        ("good\tyes\n", "1 must be a sentence, a tab, and its label, 0 (negative) or 1 (positive); got 'good\\tyes'"),
        ("\t1\n", "1 must be a sentence, a tab, and its label, 0 (negative) or 1 (positive); got '\\t1'"),
    ],
)
def test_files_without_labels(out, reviews, tmp_path, capsys, lines, problem):
    path = tiny.write_reviews(tmp_path) / "sst2" / "train.tsv.gz"
    path.write_bytes(gzip.compress(lines.encode()))
    for command in (
        [*TRAIN, "--data", str(tmp_path), "--out", str(tmp_path / "out")],
        ["evaluate", "--model", NAME, "--root", str(out), "--source", str(path)],
    ):
        assert main(command) == 2
        assert capsys.readouterr() == ("", f"python -m attnviz {command[0]}: {path} line {problem}\n")


@pytest.mark.parametrize(
    "command, message",
    [
        (
            ["train", "--pair", "sst2", "--mechanism", "bahdanau"],
            "bahdanau is not for sst2; choose one of self-attention",
        ),
        (
            ["train", "--pair", "en-fr", "--mechanism", "self-attention"],
            "self-attention is not for en-fr; choose one of fixed-context, ",
        ),
        (
            [*TRAIN, "--source-file", "a", "--target-file", "b"],
            "sst2 needs sentences with their labels in one file; give it with --tsv",
        ),
        (
            ["trace", "a", "--model", NAME, "--beam", "2"],
            f"{NAME} is a classifier; --target and --beam are for models that translate",
        ),
        (
            ["evaluate", "--model", NAME, "--source", "a", "--reference", "b"],
            f"{NAME} is a classifier, and its labels are in --source; ",
        ),
        (
            ["evaluate", "--model", NAME, "--source", "/dev/null"],
            "/dev/null must hold at least one sentence with its label; got none",
        ),
        (["align", "--model", NAME], f"{NAME} is a classifier; only models that translate have word alignments"),
    ],
)
def test_what_a_classifier_is_not_for(out, capsys, command, message):
    more = [] if command[0] == "train" else ["--root", str(out)]
    assert main([*command, *more]) == 2
    assert capsys.readouterr().err.startswith(f"python -m attnviz {command[0]}: {message}")


def test_sentences_of_ones_own(reviews, tmp_path, capsys):
    (tmp_path / "mine.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in tiny.reviews(60, 3)), encoding="utf-8")
    assert main([*TRAIN, "--tsv", str(tmp_path / "mine.tsv"), "--val-size", "9", "--out", str(tmp_path / "out")]) == 0
    assert checkpoints.read_card(NAME, tmp_path / "out")["scores"]["dev"]["sentences"] == 9
    assert "[" in capsys.readouterr().out  # each epoch shows a sentence, its label, and where the label looked most


def test_a_run_of_labels_can_be_made_to_agree_with_itself(reviews):
    """R-Drop, as for translations: two passes of one update, and one label for each sentence in both."""
    from dataclasses import replace

    corpus = corpora.load("sst2", reviews)
    text = train_vocabulary(corpus.texts(), 90, corpus.style)
    trainer = ClassifierTrainer(replace(config(), consistency=1.0), text, corpus.train, "cpu", labels=LABELS)
    assert isinstance(trainer, Trainer)
    assert math.isfinite(float(trainer.update(trainer.batches.order(0)[0])))


def test_a_classifier_of_a_task_without_its_labels_is_refused(out, tmp_path):
    other = tmp_path / "en-xx"
    shutil.copytree(out / "sst2", other)
    with pytest.raises(checkpoints.CheckpointError) as error:
        attnviz.load("en-xx/self-attention", tmp_path)
    assert str(error.value) == (
        "en-xx/self-attention: the model chooses from 2 labels and the task en-xx has 0; they do not belong together"
    )
