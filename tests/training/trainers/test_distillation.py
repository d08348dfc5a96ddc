"""Knowledge distillation: what teachers say, the n-grams of sentences that they speak of, and a run that learns from them."""

import json
import shutil

import numpy as np
import pytest
import runs
import tiny
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnviz.__main__ import main
from attnviz.data import corpora
from attnviz.data.limits import LONGEST
from attnviz.data.tasks.sst2 import LABELS
from attnviz.models import checkpoint_files, checkpoints, classifier, provenance
from attnviz.training import recipes
from attnviz.training.config import TrainingConfig
from attnviz.training.train import train as train_model
from attnviz.training.trainers import distillation, saved_run

NAME = "sst2/self-attention"
TRAIN = ("train", "--pair", "sst2", "--mechanism")
SMALL = ("--set", "width=16", "--set", "heads=2", "--set", "vocabulary=120", "--set", "warmup=5")


def config(**changes):
    return TrainingConfig(
        "self-attention",
        **{
            "epochs": 3,
            "batch_tokens": 100,
            "vocabulary": 120,
            "warmup": 5,
            "learning_rate": 2e-2,
            "options": {**tiny.CLASSIFIER, "dropout": 0.1},
            **changes,
        },
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tiny.write_reviews(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def teachers(tmp_path_factory, data):
    """The folders of two classifiers that have learnt something, of vocabularies of their own."""
    folders = []
    for seed, vocabulary in ((1, 120), (2, 90)):
        settings = config(epochs=4, seed=seed, vocabulary=vocabulary)
        folders.append(
            train_model(settings, corpora.load("sst2", data), tmp_path_factory.mktemp(f"teacher-{seed}"), "sst2")
        )
    return folders


def load(folder):
    return classifier.Classifier.load(*checkpoint_files.locate(folder))


@pytest.fixture
def train(data, teachers, tmp_path, capsys):
    """Run `train` with the teachers -> status, output, errors."""

    def run(*options, taught=teachers, out=tmp_path, mechanism="self-attention"):
        command = [*TRAIN, mechanism, "--data", str(data), "--out", str(out), "--epochs", "2", *SMALL, *options]
        return main(
            [*command, *(word for folder in taught for word in ("--teacher", str(folder)))]
        ), *capsys.readouterr()

    return run


@given(
    st.lists(st.lists(st.sampled_from("abcdé"), min_size=1, max_size=9).map(" ".join), max_size=6), st.integers(0, 5)
)
def test_ngrams_stand_in_a_sentence_as_they_are(sentences, count):
    found = distillation.ngrams(sentences, count, 1)
    assert len(set(found)) == len(found) <= count * len(sentences)
    assert not set(found) & set(sentences)
    assert all(any(f" {ngram} " in f" {sentence} " for sentence in sentences) for ngram in found)
    assert found == distillation.ngrams(sentences, count, 1)


def test_ngrams_are_of_every_length_and_place():
    words = [str(i) for i in range(12)]
    drawn = [ngram.split() for ngram in distillation.ngrams([" ".join(words)], 800, 1)]
    assert {len(ngram) for ngram in drawn} == set(range(1, 12)) and {ngram[0] for ngram in drawn} == set(words)
    assert distillation.ngrams([" ".join(words)], 5, 1) != distillation.ngrams([" ".join(words)], 5, 2)
    assert distillation.ngrams(["one", ""], 5, 1) == []


def test_what_teachers_say_is_the_mean_of_their_logits_at_one_spread(teachers):
    texts = ["the film is great", "dull", "a story", "is awful , really"]
    loaded = [load(folder) for folder in teachers]
    logits = np.stack([classifier.logits(one.model, one.tokenizer, texts).double().numpy() for one in loaded])
    centred = logits - logits.mean(-1, keepdims=True)
    spread = np.array([np.sqrt((one**2).mean()) for one in centred])
    mean = sum(one / own for one, own in zip(centred, spread)) * spread.mean() / 2
    shares = np.exp(mean) / np.exp(mean).sum(-1, keepdims=True)
    np.testing.assert_allclose(distillation.soft_targets(loaded, texts), shares, atol=1e-5)
    alone = distillation.soft_targets(loaded[:1], texts)
    np.testing.assert_allclose(alone, torch.from_numpy(logits[0]).softmax(-1), atol=1e-5)


def test_a_sure_teacher_has_no_more_say(teachers):
    texts = ["the film is great", "dull", "a story", "is awful , really"]
    loaded = [load(folder) for folder in teachers]
    before = distillation.soft_targets(loaded, texts).log()
    with torch.no_grad():
        for parameter in loaded[1].model.output.parameters():
            parameter.mul_(9)
    after = distillation.soft_targets(loaded, texts).log()
    odds = [said[:, 1] - said[:, 0] for said in (before, after)]
    torch.testing.assert_close(odds[1] / odds[1].abs().mean(), odds[0] / odds[0].abs().mean(), atol=1e-4, rtol=1e-3)


def test_a_run_learns_what_teachers_say_and_is_not_told_the_labels(data, teachers, tmp_path):
    """Its data has every label turned round, and it answers as its teachers do."""
    true = corpora.load("sst2", data)
    turned = [(sentence, LABELS[1 - LABELS.index(label)]) for sentence, label in true.train]
    loaded = [load(folder) for folder in teachers]
    settings = config(ngrams=3)
    text = checkpoints.load_tokenizer("sst2", teachers[0].parent.parent)
    trainer = distillation.DistillationTrainer(settings, text, turned, "cpu", labels=LABELS, teachers=loaded)
    for _ in range(8):
        for batch in trainer.batches.order(0):
            trainer.update(batch)
    heard = [sentence for sentence, _ in true.val]
    wanted = [LABELS[i] for i in distillation.soft_targets(loaded, heard).argmax(-1).tolist()]
    answers = classifier.predict(trainer.optimizer.averaged_model(), text, LABELS, heard)
    assert np.mean([a == b for a, b in zip(answers, wanted)]) > 0.9
    assert len(trainer.batches.examples) > 2 * len(turned)  # sentences and n-grams


def test_its_loss_is_the_cross_entropy_against_what_is_said(data, teachers):
    settings = config(label_smoothing=0.0, ngrams=2)
    text = checkpoints.load_tokenizer("sst2", teachers[0].parent.parent)
    pairs, loaded = corpora.load("sst2", data).train[:20], [load(folder) for folder in teachers]
    trainer = distillation.DistillationTrainer(settings, text, pairs, "cpu", labels=LABELS, teachers=loaded)
    trainer.optimizer.working = trainer.optimizer.averaged_model()  # fp32, no dropout
    batch = [0, 3, len(trainer.batches.examples) - 1]
    texts = [sentence for sentence, _ in trainer.batches.pairs]
    said = torch.log_softmax(
        classifier.logits(trainer.optimizer.working, text, [texts[i] for i in batch]), dim=-1
    ).numpy()
    heard = distillation.soft_targets(loaded, texts).numpy()[batch]
    assert trainer.loss(batch).item() == pytest.approx(-(heard * said).sum(-1).mean(), abs=1e-5)


def test_the_card_says_from_whom_it_learnt(train, teachers, tmp_path):
    for number, folder in enumerate(teachers):
        checkpoints.write_json(
            folder / "card.json",
            {"command": f"teacher {number}", "epochs": 4, "seconds": 5, "best": {"val_accuracy": 70}},
        )
    status, _, err = train()
    assert status == 0, err
    known = checkpoints.read_card(NAME, tmp_path)
    assert [(one["command"], one["best"]["val_accuracy"]) for one in known["teachers"]] == [
        ("teacher 0", 70),
        ("teacher 1", 70),
    ]
    assert known["settings"]["teachers"].split() == [
        checkpoints.fingerprint(*checkpoint_files.locate(folder)) for folder in teachers
    ]
    taught = json.loads(json.dumps(recipes.DISTILLATION)) | {"epochs": 2}
    options = taught.pop("options")
    assert known["settings"].items() >= taught.items() and known["settings"]["options"].items() >= options.items()
    names = ["/".join(folder.parts[-3:]) for folder in teachers]
    assert f"--teacher {names[0]} --teacher {names[1]}" in known["command"]
    assert (
        provenance.begun(tmp_path / NAME)["start"]["teachers"] == known["teachers"]
    )  # of what begins with these weights


def test_a_killed_run_goes_on_as_if_nothing_had_been_and_with_the_same_teachers_only(
    train, teachers, tmp_path, monkeypatch
):
    long = ("--epochs", "4", "--batch-tokens", "100")
    with monkeypatch.context() as patch, pytest.raises(runs.Killed):
        runs.kill_after(patch, 60)
        train(*long)
    assert saved_run.read(tmp_path / NAME)["history"]
    status, _, err = train(*long, taught=teachers[:1])
    prints = [checkpoints.fingerprint(*checkpoint_files.locate(folder))[:8] for folder in teachers]
    assert (
        status == 2
        and f"holds a training run with different settings (teachers {' '.join(prints)}, now {prints[0]}); give" in err
    )
    assert train(*long, out=tmp_path / "whole")[0] == train(*long)[0] == 0
    assert runs.same(tmp_path / NAME, tmp_path / "whole" / NAME, "model.safetensors", "training.safetensors")
    assert runs.history(tmp_path / NAME) == runs.history(tmp_path / "whole" / NAME)


@pytest.mark.parametrize(
    "mechanism, options, teacher, message",
    [
        (
            "self-attention",
            (),
            "/nowhere",
            "--teacher must be the folder of a checkpoint, such as checkpoints/sst2/self-attention; got /nowhere",
        ),
        ("self-attention", (), "en-fr/bahdanau", "a teacher must be a classifier (self-attention); {} holds bahdanau"),
        ("self-attention", ("--set", "consistency=2"), NAME, "consistency must be 0 with teachers; got 2"),
        ("self-attention", ("--set", "ngrams=-1"), NAME, "ngrams must be at least 0 and finite; got -1"),
        (
            "self-attention",
            ("--set", "ngrams=2"),
            None,
            "ngrams must be 0 without teachers; got 2",
        ),
        (
            "transformer",
            ("--pair", "en-fr"),
            NAME,
            "only a classifier (self-attention) can learn from teachers; transformer is not one",
        ),
    ],
)
def test_what_is_refused_is_one_line_and_writes_nothing(train, tmp_path, mechanism, options, teacher, message):
    folder = checkpoint_files.ROOT / teacher if teacher else None
    status, _, err = train(*options, taught=[folder] if folder else [], mechanism=mechanism)
    assert (status, err) == (2, f"python -m attnviz train: {message.format(folder)}\n")
    assert not list(tmp_path.iterdir())


def test_a_teacher_beside_another_tokenizer_is_refused(train, teachers, tmp_path):
    for folder, other in (teachers, teachers[::-1]):
        mixed = shutil.copytree(folder, tmp_path / "mixed" / "sst2" / "self-attention", dirs_exist_ok=True)
        shutil.copy(other.parent / "tokenizer.json", mixed.parent)
        status, _, err = train(taught=[mixed], out=tmp_path / "out")
        assert status == 2 and "pieces and the tokenizer" in err and "Traceback" not in err


def test_only_classifiers_learn_from_teachers(teachers, tmp_path):
    corpus = corpora.Corpus(tiny.sentences(20, 1), tiny.sentences(6, 2), {}, {})
    with pytest.raises(
        ValueError, match=r"^only a classifier \(self-attention\) can learn from teachers; bahdanau is not one$"
    ):
        train_model(runs.config(), corpus, tmp_path, "en-fr", teachers=teachers)


def test_a_model_is_not_its_own_teacher(teachers, data):
    with pytest.raises(
        ValueError, match="is the folder to train in, which would be overwritten; choose another --out$"
    ):
        train_model(config(), corpora.load("sst2", data), teachers[0].parent.parent, "sst2", teachers=teachers)


def test_what_a_teacher_cannot_read_is_left_out_and_said(data, teachers, capsys):
    """One tokenizer may make more pieces of a sentence than another, and an n-gram may have nothing visible in it."""
    loaded = [load(folder) for folder in teachers]
    coarse, fine = (teacher.tokenizer for teacher in loaded)
    words = {word for sentence, _ in tiny.reviews(150, 0) for word in sentence.split()}
    word = max(sorted(words), key=lambda word: len(fine.ids(word)) - len(coarse.ids(word)))
    long = " ".join([word] * ((LONGEST - 1) // (len(coarse.ids(word)) - 1)))
    assert len(fine.ids(long)) > LONGEST >= len(coarse.ids(long))
    pairs = [("the film is great", "positive"), ("\u200b \u200b dull", "negative"), (long, "positive")]
    trainer = distillation.DistillationTrainer(config(ngrams=4), coarse, pairs, "cpu", labels=LABELS, teachers=loaded)
    read = [sentence for sentence, _ in trainer.batches.pairs]
    assert (
        read[:2] == [pairs[0][0], pairs[1][0]]
        and long not in read
        and "\u200b" not in read
        and len(trainer.targets) == len(read)
    )
    assert (
        f"are left out: too long for a teacher, or without a visible character; the first is '{long[:80]}'"
        in capsys.readouterr().err
    )
    with pytest.raises(
        ValueError, match="^no training sentence is short enough for all teachers; give shorter sentences$"
    ):
        distillation.DistillationTrainer(config(), coarse, pairs[2:], "cpu", labels=LABELS, teachers=loaded)


def test_few_sentences_of_ones_own_have_the_passes_of_those_that_are_taught(teachers, tmp_path):
    path = tmp_path / "mine.tsv"
    path.write_text("".join(f"{sentence}\t{label}\n" for sentence, label in tiny.reviews(120, 3)), encoding="utf-8")
    out = tmp_path / "out"
    assert (
        main([*TRAIN, "self-attention", "--tsv", str(path), "--out", str(out), *SMALL, "--teacher", str(teachers[0])])
        == 0
    )
    known = checkpoints.read_card(NAME, out)["settings"]
    assert (known["epochs"], known["batch_tokens"]) == (recipes.DISTILLATION["epochs"], 500)
