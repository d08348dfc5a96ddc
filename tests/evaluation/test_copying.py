"""Names and numbers that should come out as they went in."""

import pytest

from attnviz.evaluation import copying
from attnviz.evaluation.copying import Case
from attnviz.data.tasks import TASKS


def test_the_sentences_that_ship():
    cases = copying.read()
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
    measured = copying.measure([Case(wanted, (wanted,))], [translation])
    assert measured.share == right and measured.missed == (() if right else ((wanted, translation),))
    assert (measured.names, measured.numbers) == ((0, 1) if wanted[0].isdigit() else (1, 0))


def test_names_do_not_count_where_a_language_has_a_script_of_its_own():
    case = Case("Tom paid 25 dollars.", ("Tom", "25"))
    measured = copying.measure([case], ["トムは２５ドル払った。"], names=False)
    assert (measured.names, measured.numbers, measured.numbers_right, measured.share, measured.missed) == (
        0,
        1,
        1,
        1.0,
        (),
    )
    assert TASKS["en-fr"].copies_names and TASKS["en-de"].copies_names and not TASKS["en-ja"].copies_names


def test_a_number_in_chinese_characters_is_no_copy():
    assert copying.measure([Case("25 cats", ("25",))], ["猫が二十五匹"], names=False).share == 0


def test_one_translation_a_sentence():
    with pytest.raises(ValueError, match="there must be a translation of each of the 1 sentences; got 0"):
        copying.measure([Case("Tom", ("Tom",))], [])
