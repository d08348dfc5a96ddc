"""The sentiment classifier beside translators: on a sentence, and in the study."""

import pytest

from dashboard.inside.faithfulness import RunningTests
from dashboard.inside.studied import placed, tasks
from dashboard.inside.scene import Column
from dashboard.session import caches

TEXT, MODEL = "A moving film that is never dull.", "en-fr/bahdanau"


def finished(name: str) -> RunningTests:
    testing = RunningTests(caches.model(name), TEXT, None)
    while not testing.finished:
        testing.advance()
    return testing


@pytest.fixture(scope="module")
def said():
    """Of the shipped models."""
    column = Column(caches.trace(MODEL, TEXT), 0, 0, None)
    asked, translator, classifier = tasks.classifier(column), finished(MODEL), finished(tasks.CLASSIFIER)
    return tasks.beside([(column, translator.tests)], asked, classifier), translator, classifier


def test_the_numbers_are_those_of_the_tests(said):
    words, translator, classifier = said
    kept, count = translator.tests.tested.sums["preserved uniform all"]
    assert f"Bahdanau keeps {kept:.0f} of {count} tokens" in words
    stays = classifier.tests.tested.sums["preserved uniform all"][0] == 1
    label = classifier.tests.subject.trace.translation
    assert f"its label “{label}” {'stays' if stays else 'changes'}." in words
    for testing in (translator, classifier):
        total, number = testing.tests.tested.sums["variation uniform"]
        assert f"<td>{total / number:.3f}</td>" in words


def test_the_study_stands_beside_the_sentence(said):
    words, *_ = said
    row = placed.study(tasks.CLASSIFIER)["preserved uniform all"]
    assert f"<td>{row['value']:.2f} ({row['low']:.2f} to {row['high']:.2f})</td>" in words


def test_it_says_what_it_does_not_show(said):
    words, *_ = said
    assert "One sentence and one classifier do not decide it" in words and "1909.11218" in words


def test_letters_are_no_review():
    letters = Column(caches.trace("reverse/bahdanau", "a b c"), 0, 0, None)
    assert tasks.classifier(letters) is None


def test_without_the_classifier_there_is_nothing_to_compare(tmp_path, monkeypatch):
    column = Column(caches.trace(MODEL, TEXT), 0, 0, None)
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(tmp_path))
    assert tasks.classifier(column) is None
