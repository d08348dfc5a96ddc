"""`train --teacher`: the card, a run that is killed and resumed, and what is refused."""

import json
import shutil

import pytest
import runs
import tiny
from taught_runs import config

from attnviz.__main__ import main
from attnviz.data import corpora
from attnviz.models import checkpoint_files
from attnviz.training import recipes, saved_run
from attnviz.training.train import train as train_model

NAME = "sst2/self-attention"
TRAIN = ("train", "--pair", "sst2", "--mechanism")
SMALL = ("--set", "width=16", "--set", "heads=2", "--set", "vocabulary=120", "--set", "warmup=5")


@pytest.fixture
def train(reviews, teachers, tmp_path, capsys):
    """Run `train` with the teachers -> status, output, errors."""

    def run(*options, taught=teachers, out=tmp_path, mechanism="self-attention"):
        command = [*TRAIN, mechanism, "--data", str(reviews), "--out", str(out), "--epochs", "2", *SMALL, *options]
        return main(
            [*command, *(word for folder in taught for word in ("--teacher", str(folder)))]
        ), *capsys.readouterr()

    return run


def test_the_card_says_from_whom_it_learnt(train, teachers, tmp_path):
    for number, folder in enumerate(teachers):
        checkpoint_files.write_json(
            folder / "card.json",
            {"command": f"teacher {number}", "epochs": 4, "seconds": 5, "best": {"val_accuracy": 70}},
        )
    status, _, err = train()
    assert status == 0, err
    card = checkpoint_files.read_card(NAME, tmp_path)
    assert [(teacher["command"], teacher["best"]["val_accuracy"]) for teacher in card["teachers"]] == [
        ("teacher 0", 70),
        ("teacher 1", 70),
    ]
    assert card["settings"]["teachers"].split() == [
        checkpoint_files.fingerprint(*checkpoint_files.locate(folder)) for folder in teachers
    ]
    taught = json.loads(json.dumps(recipes.DISTILLATION)) | {"epochs": 2}
    options = taught.pop("options")
    assert card["settings"].items() >= taught.items() and card["settings"]["options"].items() >= options.items()
    names = ["/".join(folder.parts[-3:]) for folder in teachers]
    assert f"--teacher {names[0]} --teacher {names[1]}" in card["command"]
    assert (
        checkpoint_files.begun(tmp_path / NAME)["start"]["teachers"] == card["teachers"]
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
    prints = [checkpoint_files.fingerprint(*checkpoint_files.locate(folder))[:8] for folder in teachers]
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


def test_a_model_is_not_its_own_teacher(teachers, reviews):
    with pytest.raises(
        ValueError, match="is the folder to train in, which would be overwritten; choose another --out$"
    ):
        train_model(config(), corpora.load("sst2", reviews), teachers[0].parent.parent, "sst2", teachers=teachers)


def test_few_sentences_of_ones_own_have_the_passes_of_those_that_are_taught(teachers, tmp_path):
    path = tmp_path / "mine.tsv"
    path.write_text("".join(f"{sentence}\t{label}\n" for sentence, label in tiny.reviews(120, 3)), encoding="utf-8")
    out = tmp_path / "out"
    assert (
        main([*TRAIN, "self-attention", "--tsv", str(path), "--out", str(out), *SMALL, "--teacher", str(teachers[0])])
        == 0
    )
    card = checkpoint_files.read_card(NAME, out)["settings"]
    assert (card["epochs"], card["batch_tokens"]) == (recipes.DISTILLATION["epochs"], 500)
