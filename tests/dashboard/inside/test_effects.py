"""Words that differ between two texts are marked; the table of an effect names its tokens."""

import re
from types import SimpleNamespace

import numpy as np
import synthetic

from dashboard.inside import effects
from dashboard.inside.effects import marked


def test_words_that_differ_are_marked_on_both_sides():
    old, new = marked("Le chien noir court.", "Le chien brun court.", "fr")
    assert old == '<span lang="fr" dir="auto">Le chien <mark>noir</mark> court.</span>'
    assert "<mark>brun</mark>" in new


def test_equal_texts_have_no_mark_and_are_escaped():
    assert marked("<b> a", "<b> a", "fr")[0] == '<span lang="fr" dir="auto">&lt;b&gt; a</span>'


def test_texts_without_spaces_are_compared_by_character():
    old, new = marked("犬が走る", "猫が走る", "ja")
    assert "<mark>犬</mark>が走る" in old and "<mark>猫</mark>が走る" in new


def test_an_empty_text_marks_all_of_the_other():
    assert "<mark>Le</mark>" in marked("Le", "", "fr")[0]


def test_spaces_around_a_word_are_not_marked():
    assert marked("a b c", "a c", "fr")[0] == '<span lang="fr" dir="auto">a <mark>b</mark> c</span>'


def test_signs_are_words_of_their_own():
    assert marked("l'herbe verte.", "l'herbe.", "fr")[0].endswith("l&#x27;herbe <mark>verte</mark>.</span>")


def test_a_table_of_the_last_tokens_marks_the_first_of_them_that_goes_on_with_a_word():
    effect = SimpleNamespace(
        before=synthetic.trace(target="chien noir", pieces=True),
        log_prob_changes=np.array([-0.5, 0, 0, 0]),
        total_variation=np.array([0.25, 0, 0, 0]),
    )
    rows = re.findall("<th scope=.row.[^>]*>(.*?)</th>", effects.effect_table("Each token", effect, 1, "fr"))
    assert rows == ["1 ·en", "2 no", "3 ·ir", "4 &lt;eos&gt;"]
