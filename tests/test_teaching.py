"""Knowledge distillation: what teachers say, the parts of sentences that they speak of, and a run that learns from them."""

import json

import numpy as np
import pytest
import runs
import tiny
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnviz import checkpoints, classify, corpora, files, recipes, teaching, training
from attnviz.__main__ import main
from attnviz.mechanisms import LABELS

NAME = "sst2/self-attention"
TRAIN = ("train", "--pair", "sst2", "--mechanism", "self-attention")
SMALL = ("--set", "width=16", "--set", "heads=2", "--set", "vocabulary=120", "--set", "warmup=5")


def plan(**changes):
    return recipes.Settings("self-attention", **{"epochs": 3, "batch_tokens": 100, "vocabulary": 120, "warmup": 5, "learning_rate": 2e-2,
                                                 "options": {**tiny.CLASSIFIER, "dropout": 0.1}, **changes})  # fmt: skip


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("attnviz.run.shutil.which", lambda name: None)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tiny.write_reviews(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def teachers(tmp_path_factory, data):
    """The folders of two classifiers that have learnt something, of vocabularies of their own."""
    folders = []
    for seed, vocabulary in ((1, 120), (2, 90)):
        settings = plan(epochs=4, seed=seed, vocabulary=vocabulary)
        folders.append(training.train(settings, corpora.load("sst2", data), tmp_path_factory.mktemp(f"teacher-{seed}"), "sst2", compile=False))
    return folders


@pytest.fixture
def train(data, teachers, tmp_path, capsys):
    """Run `train` with the teachers -> status, output, errors."""

    def run(*options, taught=teachers):
        command = [*TRAIN, "--data", str(data), "--out", str(tmp_path), "--epochs", "2", *SMALL, *options]
        return main([*command, *(word for folder in taught for word in ("--teacher", str(folder)))]), *capsys.readouterr()

    return run


@given(st.lists(st.lists(st.sampled_from("abcdé"), min_size=1, max_size=9).map(" ".join), max_size=6), st.integers(0, 5))
def test_parts_stand_in_a_sentence_as_they_are(sentences, count):
    found = teaching.parts(sentences, count, 1)
    assert len(set(found)) == len(found) <= count * len(sentences)
    assert not set(found) & set(sentences)
    assert all(any(f" {part} " in f" {sentence} " for sentence in sentences) for part in found)
    assert found == teaching.parts(sentences, count, 1)


def test_parts_are_of_every_length_and_place():
    words = [str(i) for i in range(12)]
    drawn = [part.split() for part in teaching.parts([" ".join(words)], 400, 1)]
    assert {len(part) for part in drawn} == set(range(1, 12)) and {part[0] for part in drawn} == set(words)
    assert teaching.parts([" ".join(words)], 5, 1) != teaching.parts([" ".join(words)], 5, 2)
    assert teaching.parts(["one", ""], 5, 1) == []


def test_what_teachers_say_is_the_mean_of_their_logits_at_one_spread(teachers):
    texts = ["the film is great", "dull", "a story", "is awful , really"]
    loaded = [teaching.load(folder) for folder in teachers]
    logits = np.stack([classify.logits(model, text, texts).double().numpy() for model, text in loaded])
    centred = logits - logits.mean(-1, keepdims=True)
    spread = np.array([np.sqrt((one**2).mean()) for one in centred])
    mean = sum(one / own for one, own in zip(centred, spread)) * spread.mean() / 2
    shares = np.exp(mean) / np.exp(mean).sum(-1, keepdims=True)
    np.testing.assert_allclose(teaching.said(loaded, texts), shares, atol=1e-5)
    alone = teaching.said(loaded[:1], texts)
    np.testing.assert_allclose(alone, torch.from_numpy(logits[0]).softmax(-1), atol=1e-5)


def test_a_sure_teacher_has_no_more_say(teachers):
    texts = ["the film is great", "dull", "a story", "is awful , really"]
    loaded = [teaching.load(folder) for folder in teachers]
    before = teaching.said(loaded, texts).log()
    with torch.no_grad():
        for parameter in loaded[1][0].output.parameters():
            parameter.mul_(9)
    after = teaching.said(loaded, texts).log()
    odds = [said[:, 1] - said[:, 0] for said in (before, after)]
    torch.testing.assert_close(odds[1] / odds[1].abs().mean(), odds[0] / odds[0].abs().mean(), atol=1e-4, rtol=1e-3)


def test_a_run_learns_what_teachers_say_and_is_not_told_the_labels(data, teachers, tmp_path):
    """Its data has every label turned round, and it answers as its teachers do."""
    true = corpora.load("sst2", data)
    turned = [(sentence, LABELS[1 - LABELS.index(label)]) for sentence, label in true.train]
    loaded = [teaching.load(folder) for folder in teachers]
    settings = plan(parts=3)
    text = checkpoints.load_text("sst2", teachers[0].parent.parent)
    run = teaching.TaughtRun(settings, text, turned, "cpu", compile=False, teachers=loaded)
    for _ in range(8):
        for batch in run.order(0):
            run.learn(batch)
    heard = [sentence for sentence, _ in true.val]
    wanted = [LABELS[i] for i in teaching.said(loaded, heard).argmax(-1).tolist()]
    answers = classify.labels(run.averaged(), text, heard)
    assert np.mean([a == b for a, b in zip(answers, wanted)]) > 0.9
    assert len(run.data) > 2 * len(turned)  # sentences and parts


def test_its_loss_is_the_cross_entropy_against_what_is_said(data, teachers):
    settings = plan(label_smoothing=0.0, parts=2)
    text = checkpoints.load_text("sst2", teachers[0].parent.parent)
    pairs, loaded = corpora.load("sst2", data).train[:20], [teaching.load(folder) for folder in teachers]
    run = teaching.TaughtRun(settings, text, pairs, "cpu", compile=False, teachers=loaded)
    run.working = run.averaged()  # fp32, no dropout
    batch = [0, 3, len(run.data) - 1]
    texts = [sentence for sentence, _ in run.pairs]
    said = torch.log_softmax(classify.logits(run.working, text, [texts[i] for i in batch]), dim=-1).numpy()
    heard = teaching.said(loaded, texts).numpy()[batch]
    assert run.objective(batch).item() == pytest.approx(-(heard * said).sum(-1).mean(), abs=1e-5)


def test_the_card_says_from_whom_it_learnt(train, teachers, tmp_path):
    for number, folder in enumerate(teachers):
        checkpoints.write_json(folder / "card.json", {"command": f"teacher {number}", "epochs": 4, "seconds": 5})
    status, _, err = train()
    assert status == 0, err
    known = checkpoints.read_card(NAME, tmp_path)
    assert [teacher["command"] for teacher in known["teachers"]] == ["teacher 0", "teacher 1"]
    assert known["settings"]["teachers"].split() == [checkpoints.fingerprint(*files.place(folder)) for folder in teachers]
    taught = json.loads(json.dumps(recipes.TAUGHT)) | {"epochs": 2}
    options = taught.pop("options")
    assert known["settings"].items() >= taught.items() and known["settings"]["options"].items() >= options.items()
    names = ["/".join(folder.parts[-3:]) for folder in teachers]
    assert f"--teacher {names[0]} --teacher {names[1]}" in known["command"]


def test_a_killed_run_goes_on_with_the_same_teachers_only(train, teachers, tmp_path, monkeypatch):
    long = ("--epochs", "4", "--batch-tokens", "100")
    with monkeypatch.context() as patch, pytest.raises(runs.Killed):
        runs.kill_after(patch, 60)
        train(*long)
    assert checkpoints.load_metadata(tmp_path / NAME / "training.safetensors")["history"]
    status, _, err = train(*long, taught=teachers[:1])
    assert status == 2 and "holds a run with other settings (teachers " in err
    assert train(*long)[0] == 0
    assert len(checkpoints.read_card(NAME, tmp_path)["history"]) == 4


@pytest.mark.parametrize("options, teacher, message", [
    ((), "/nowhere", "--teacher must be the folder of a checkpoint, such as checkpoints/en-fr/bahdanau; got /nowhere"),
    ((), "en-fr/bahdanau", "a teacher must be a classifier (self-attention); {} holds bahdanau"),
    (("--set", "consistency=2"), NAME, "consistency must be 0 with teachers; got 2"),
    (("--set", "parts=-1"), NAME, "parts must be at least 0 and finite; got -1"),
    (("--set", "parts=2"), None, "parts are what teachers speak of, and there are none; leave parts=2 out"),
])  # fmt: skip
def test_what_is_refused_is_one_line_and_writes_nothing(train, tmp_path, options, teacher, message):
    folder = files.ROOT / teacher if teacher else None
    status, _, err = train(*options, taught=[folder] if folder else [])
    assert (status, err.splitlines()[-1]) == (2, f"python -m attnviz train: {message.format(folder)}")
    assert not list(tmp_path.rglob("*.safetensors"))


def test_only_classifiers_learn_from_teachers(teachers, tmp_path):
    corpus = corpora.Corpus(tiny.sentences(20, 1), tiny.sentences(6, 2), {}, {})
    with pytest.raises(ValueError, match=r"^only classifiers \(self-attention\) learn from teachers; bahdanau is none$"):
        training.train(runs.plan(), corpus, tmp_path, "en-fr", teachers=teachers)


def test_a_model_is_not_its_own_teacher(teachers, data):
    with pytest.raises(ValueError, match="is the folder to train in, whose weights would be written over; choose another --out$"):
        training.train(plan(), corpora.load("sst2", data), teachers[0].parent.parent, "sst2", teachers=teachers)
