"""The commands around training: `calibrate`, `moments` and `transplant`."""

from dataclasses import fields, replace

import pytest
import tiny

from attnviz import confidence, evaluation, loading, moments
from attnviz.__main__ import main
from attnviz.confidence import calibration
from attnviz.confidence.signs import SAMPLES
from attnviz.data.tasks import TASKS
from attnviz.models import checkpoint_files, checkpoints
from attnviz.training import card

NAME = "en-fr/bahdanau"


@pytest.fixture
def everyday(tmp_path):
    """A data folder whose validation has 12 captions and 100 everyday sentences."""
    folder = tiny.write_data(tmp_path / "data", train=40)
    (folder / "everyday_enfr").mkdir()
    for split, count, seed in (("train", 30, 5), ("val", 100, 6), ("test", 5, 7)):
        lines = "".join(f"{source}\t{target}\n" for source, target in tiny.sentences(count, seed))
        (folder / "everyday_enfr" / f"{split}.tsv").write_text(lines, encoding="utf-8")
    return folder


@pytest.fixture
def models(tmp_path):
    return tiny.write_models(tmp_path / "models")


@pytest.fixture(autouse=True)
def few_sentences(monkeypatch):
    """Of the sentences with names and numbers only these: a model that has learnt little writes as long as it may."""
    sentences = evaluation.read_cases()[:9]
    monkeypatch.setattr(evaluation, "read_cases", lambda: sentences)


def run(*words):
    return main([str(word) for word in words])


def test_calibrate_writes_thresholds_and_the_words_of_training(everyday, models, capsys):
    before = checkpoint_files.read_json(models / NAME / "card.json")
    assert confidence.Judge.load(NAME, models) is None
    assert not run("calibrate", "--model", NAME, "--data", everyday, "--root", models)
    assert capsys.readouterr().out.startswith(f"{models / NAME / 'card.json'}: of the worst tenth of validation ")
    after = checkpoint_files.read_json(models / NAME / "card.json")
    assert {key: after[key] for key in before} == before and after.keys() - before == {
        "confidence",
        "copied",
        "longest",
    }
    judge = confidence.Judge.load(NAME, models)
    assert judge.known_words.count("dog") and not judge.known_words.count("Narita")
    assert judge.target_words.sentences and loading.load(NAME, models).longest == after["longest"] > 1


def test_calibrate_has_the_models_of_the_task_draw_translations(everyday, models, monkeypatch):
    """One that is there and one that is not draw nothing."""
    judges = []
    for other in ("luong-dot", "none"):
        monkeypatch.setitem(TASKS, "en-fr", replace(TASKS["en-fr"], samplers=("bahdanau", other)))
        assert not run("calibrate", "--model", NAME, "--data", everyday, "--root", models)
        judges.append(confidence.Judge.load(NAME, models))
    assert [judge.samplers for judge in judges] == [(NAME, "en-fr/luong-dot"), ()]
    assert [judge.scale.sample_count for judge in judges] == [SAMPLES, 0]


def test_a_damaged_model_that_should_draw_translations_is_named(models, monkeypatch, caplog):
    """A card without these samples looks like any other."""
    monkeypatch.setitem(TASKS, "en-fr", replace(TASKS["en-fr"], samplers=("bahdanau", "luong-dot")))
    translator = loading.load_translator(NAME, models)
    assert [sampler.name for sampler in card._samplers(translator, models)] == [NAME, "en-fr/luong-dot"]
    (damaged := models / "en-fr" / "luong-dot" / "model.safetensors").write_bytes(b"")
    assert card._samplers(translator, models) == []
    assert caplog.messages[0].startswith(f"the confidence of {NAME} is judged without samples: {damaged} is damaged")


def test_calibrate_learns_once_from_a_pair_of_several_models(everyday, models, capsys, monkeypatch):
    """What is learnt is that of one model at a time; what a card says of copied names stays."""
    learnt, names = [], (NAME, "en-fr/luong-dot")
    learn = confidence.Lexicon.learn
    monkeypatch.setattr(confidence.Lexicon, "learn", lambda *given: learnt.append(given) or learn(*given))
    path = models / NAME / "card.json"
    checkpoint_files.write_json(path, checkpoint_files.read_json(path) | {"copied": {"beam_1": {"share": 0.5}}})
    assert not run("calibrate", "--model", *names, "--data", everyday, "--root", models)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [str(models / name / "card.json") for name in names]
    assert lines[0].endswith("numbers copied: 50%") and len(learnt) == 1
    together = [checkpoint_files.read_json(models / name / "card.json")["confidence"] for name in names]
    assert not run("calibrate", "--model", names[1], "--data", everyday, "--root", models)
    assert checkpoint_files.read_json(models / names[1] / "card.json")["confidence"] == together[1] != together[0]


@pytest.mark.parametrize(
    "name, message",
    [
        (NAME, "en-fr must translate from English and have 100 validation sentences to calibrate on"),
        ("en-fr/none", "no checkpoint 'en-fr/none' in "),
    ],
)
def test_calibrate_refuses(data, models, capsys, name, message):
    assert run("calibrate", "--model", name, "--data", data, "--root", models) == 2
    assert message in capsys.readouterr().err


def test_a_run_keeps_moments_and_they_are_packed(everyday, tmp_path, capsys):
    out, moments_folder = tmp_path / "out", tmp_path / "kept"
    sizes = ("width=16", "embedding_width=16", "vocabulary=120")
    train = ("train", "--pair", "en-fr", "--mechanism", "bahdanau", "--data", everyday, "--out", out, "--epochs", 2)
    settings = [word for size in sizes for word in ("--set", size)]
    assert not run(*train, "--batch-tokens", 60, "--moments", moments_folder, *settings)
    card = checkpoint_files.read_card(NAME, out)
    assert card["confidence"].keys() == {field.name for field in fields(calibration.Calibration)}
    assert set(card["copied"]) == {"beam_1", "beam_5"} and "everyday" in card["scores"]
    assert confidence.Judge.load(NAME, out) is not None
    capsys.readouterr()
    assert not run(
        "moments", "--model", NAME, "--kept", moments_folder, "--count", 3, "--data", everyday, "--root", out
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["update", "loss", "as", "kept", "loss", "as", "packed"]
    assert f"{out / 'moments' / 'en-fr' / 'bahdanau.moments'} is ready: " in "\n".join(lines)
    assert len(moments.moments(NAME, out)) == 3


def test_transplant(models, tmp_path, capsys):
    tokenizer = tmp_path / "tokenizer.json"
    tiny.train_vocabulary((side for pair in tiny.sentences(200, 5) for side in pair), 90).save(tokenizer)
    words = ("--start", models / NAME, "--tokenizer", tokenizer, "--out", tmp_path / "new", "--pair", "en-nl")
    assert not run("transplant", *words)
    folder = tmp_path / "new" / "en-nl" / "bahdanau"
    assert capsys.readouterr().out == f"{folder} is ready\n"
    assert checkpoints.load_model("en-nl/bahdanau", tmp_path / "new")[1]["vocabulary"] < 120


@pytest.mark.parametrize("missing, message", [("--start", "--start must be"), ("--tokenizer", "--tokenizer must be")])
def test_transplant_refuses(models, tmp_path, capsys, missing, message):
    words = {"--start": models / NAME, "--tokenizer": models / "en-fr" / "tokenizer.json", "--out": tmp_path / "new"}
    words[missing] = tmp_path / "nowhere"
    assert run("transplant", *(word for item in words.items() for word in item)) == 2
    assert message in capsys.readouterr().err and not (tmp_path / "new").exists()
