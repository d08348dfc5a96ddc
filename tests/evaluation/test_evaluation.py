"""What a card says about sentences that visitors type; names and numbers that should come out as they went in."""

import pytest
import tiny

from attnviz import evaluation
from attnviz.confidence import TrainingWords
from attnviz.confidence.judge import read_scale
from attnviz.data.tasks import TASKS
from attnviz.evaluation import Case
from attnviz.models.translator import Translator


def test_the_sentences_that_ship():
    cases = evaluation.read_cases()
    assert len(cases) == len({case.text for case in cases}) == 100
    assert all(word in case.text for case in cases for word in case.wanted) and all(case.wanted for case in cases)
    wanted = [word for case in cases for word in case.wanted]
    assert sum(word[0].isdigit() for word in wanted) >= 40 and sum(not word[0].isdigit() for word in wanted) >= 70


@pytest.mark.parametrize(
    "wanted, translation, right",
    [
        ("Anna", "Voici Anna.", True),
        ("Anna", "C'est le chien d'Anna", True),
        ("Anna", "Annas Hund", False),
        ("Anna", "anna", False),
        ("1998", "en 1998.", True),
        ("1998", "１９９８年", True),
        ("1250", "1 250 euros", True),
        ("1250", "1.250", True),
        ("1250", "12 50", False),
        ("25", "225", False),
        ("555-1234", "le 555-1234.", True),
        ("555-1234", "電話番号は５５５-１２３４です。", True),
        ("555-1234", "５５５-１２３４４", False),
        ("555-1234", "le 1555-1234", False),
    ],
)
def test_what_counts_as_copied(wanted, translation, right):
    measured = evaluation.count_copied([Case(wanted, (wanted,))], [translation])
    assert measured.share == right and measured.missed == (() if right else ((wanted, translation),))
    assert (measured.names, measured.numbers) == ((0, 1) if wanted[0].isdigit() else (1, 0))


def test_names_do_not_count_where_a_language_has_a_script_of_its_own():
    case = Case("Tom paid 25 dollars.", ("Tom", "25"))
    measured = evaluation.count_copied([case], ["トムは２５ドル払った。"], names=False)
    assert (measured.names, measured.numbers, measured.numbers_right, measured.share, measured.missed) == (
        0,
        1,
        1,
        1.0,
        (),
    )
    assert TASKS["en-fr"].copies_names and TASKS["en-de"].copies_names and not TASKS["en-ja"].copies_names


def test_a_number_in_chinese_characters_is_no_copy():
    assert evaluation.count_copied([Case("25 cats", ("25",))], ["猫が二十五匹"], names=False).share == 0


def test_one_translation_a_sentence():
    with pytest.raises(ValueError, match="there must be a translation of each of the 1 sentences; got 0"):
        evaluation.count_copied([Case("Tom", ("Tom",))], [])


WORDS = TrainingWords.learn(source for source, _ in tiny.sentences(50, 3))


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    return Translator.load("en-fr/bahdanau", tiny.write_models(tmp_path_factory.mktemp("models")))


def test_copied(translator):
    figures = evaluation.copied(translator)
    assert figures.keys() == {"beam_1", "beam_5"} and figures["beam_5"]["names"] == 83


def test_confidence(translator):
    calibration = evaluation.confidence(translator, tiny.sentences(100, 4), WORDS)
    assert 0 <= calibration.worst_tenth <= 1 and len(calibration.bins) == 10
    assert read_scale(calibration.to_dict()["scale"]) == calibration.scale


def test_confidence_with_translations_that_models_draw(translator, root):
    samplers = translator, Translator.load("en-fr/luong-dot", root)
    drawn = evaluation.confidence(
        translator,
        tiny.sentences(100, 4),
        WORDS,
        lambda text: [sample for sampler in samplers for sample in sampler.samples(text, 3)],
    )
    assert drawn.scale.sample_count
    assert not evaluation.confidence(translator, tiny.sentences(100, 4), WORDS).scale.sample_count


def test_sentences_that_no_model_reads_are_left_out(translator):
    pairs = [*tiny.sentences(100, 4), ("x " * 300, "x")]
    assert sum(count for *_, count in evaluation.confidence(translator, pairs, WORDS).bins) == 100
