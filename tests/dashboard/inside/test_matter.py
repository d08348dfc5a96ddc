"""Does it matter: the percentile of a sentence in the stored study, and the sentiment classifier beside translators."""

import json

import pytest
import tiny

from attnviz.faithfulness.sentence import QUANTILES
from attnviz.models import checkpoint_files
from attnviz.service import ServiceError
from dashboard.inside import matter
from dashboard.inside.faithfulness import STAGES, RunningTests
from dashboard.inside.scene import Column
from dashboard.session import caches

REVIEW, MODEL = "A moving film that is never dull.", "en-fr/bahdanau"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return tiny.write_models(tmp_path_factory.mktemp("placed"))


@pytest.fixture
def tested(models, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(models))
    testing = RunningTests(MODEL, "The dog runs.", "Le chien court.")
    for done in range(1, STAGES + 1):
        assert not testing.finished
        testing.advance()
        assert testing.done == done
    testing.advance()  # nothing is left to do
    assert testing.finished and testing.done == STAGES
    trace = caches.trace(MODEL, "The dog runs.", "Le chien court.", 1)
    return [(Column(trace, 0, 0, "Le chien court."), testing.tests)]


def write(models, sha256: str) -> None:
    label = {"mechanism": "bahdanau", "pair": "en-fr", "quantiles": [0.0] * 21}
    rows = [
        label | {"measure": "variation median", "sentences": 200},
        label | {"measure": "variation uniform", "sentences": 500},
    ]
    study = {
        "command": "python -m attnviz study <faithfulness>",
        "models": [{"weights_sha256": sha256}],
        "rows": rows,
    }
    (models / "studies").mkdir(exist_ok=True)
    (models / "studies" / "faithfulness.json").write_text(json.dumps(study), encoding="utf-8")


def test_without_a_study_there_are_values_and_no_percentiles(tested):
    text = matter.percentiles(tested)
    assert "total variation under permuted attention" in text
    assert "No percentile for Bahdanau: the study has not been run on these weights." in text


def test_a_study_of_these_weights_places_the_sentence(models, tested):
    write(models, checkpoint_files.fingerprint(MODEL, models))
    text = matter.percentiles(tested)
    assert "<td>100</td>" in text and "among 200 to 500 test sentences" in text
    assert "&lt;faithfulness&gt;" in text and "No percentile" not in text
    assert len(QUANTILES) == 21


def test_a_study_of_other_weights_is_no_study_of_this_model(models, tested):
    write(models, "0" * 64)
    assert "No percentile for Bahdanau" in matter.percentiles(tested)


@pytest.mark.parametrize("content", [b"{", b"\xff", b"[]", b"null"])
def test_a_study_that_cannot_be_read_is_none(models, tested, content):
    (models / "studies").mkdir(exist_ok=True)
    (models / "studies" / "faithfulness.json").write_bytes(content)
    assert caches.study("faithfulness") == {}


def test_a_text_of_which_the_model_says_nothing_is_refused(models, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(models))
    testing = RunningTests(MODEL, "", None)
    testing.advance()
    assert testing.finished and testing.tests is None and testing.problem


@pytest.mark.parametrize("reason", [KeyboardInterrupt, ServiceError])
def test_a_stage_that_is_stopped_begins_anew(reason, models, monkeypatch):
    """All visitors with this text share the tests: models that were away for a moment are no problem of the text."""
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(models))
    testing = RunningTests(MODEL, "The dog runs.", "Le chien court.")

    def stop():
        raise reason

    testing.advance(stop)  # reading the text is one stage, and hears nothing
    for done in range(1, STAGES):
        with pytest.raises(reason):
            testing.advance(stop)
        assert testing.done == done and not testing.problem
        testing.advance()
    assert testing.finished and testing.tests.results.sums["preserved uniform all"][1] > 2


def finished(name: str) -> RunningTests:
    testing = RunningTests(name, REVIEW, None)
    while not testing.finished:
        testing.advance()
    return testing


@pytest.fixture(scope="module")
def both_tasks():
    """Of the shipped models."""
    column = Column(caches.trace(MODEL, REVIEW), 0, 0, None)
    translator, classifier = finished(MODEL), finished(matter.CLASSIFIER)
    classified = matter.classifier(column)
    words = matter.both_tasks([(column, translator.tests)], classified, classifier)
    return words, translator, classifier


def test_the_numbers_are_those_of_the_tests(both_tasks):
    words, translator, classifier = both_tasks
    unchanged, count = translator.tests.results.sums["preserved uniform all"]
    assert f"Bahdanau keeps {unchanged:.0f} of {count} tokens" in words
    stays = classifier.tests.results.sums["preserved uniform all"][0] == 1
    label = classifier.tests.subject.trace.translation
    assert f"its label “{label}” {'stays' if stays else 'changes'}." in words
    for testing in (translator, classifier):
        total, number = testing.tests.results.sums["variation uniform"]
        assert f"<td>{total / number:.3f}</td>" in words


def test_the_study_stands_beside_the_sentence(both_tasks):
    words, *_ = both_tasks
    row = matter.measured(matter.CLASSIFIER)["preserved uniform all"]
    assert f"<td>{row['value']:.2f} ({row['low']:.2f} to {row['high']:.2f})</td>" in words


def test_it_says_what_it_does_not_show(both_tasks):
    words, *_ = both_tasks
    assert "One sentence and one classifier do not decide it" in words and "1909.11218" in words


def test_letters_are_no_review():
    letters = Column(caches.trace("reverse/bahdanau", "a b c"), 0, 0, None)
    assert matter.classifier(letters) is None


def test_without_the_classifier_there_is_nothing_to_compare(tmp_path, monkeypatch):
    column = Column(caches.trace(MODEL, REVIEW), 0, 0, None)
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(tmp_path))
    assert matter.classifier(column) is None
