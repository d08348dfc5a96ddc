"""The link from the step on the first page, tokens in quotes, and how much weight is hidden."""

from urllib.parse import parse_qs, urlsplit

import attnviz
from attnviz import select
from dashboard.compare.scene import CompareChoices
from dashboard.markup.text import quoted, removed, sentence_link, step_link


def link(step: int, *mechanisms: str, **others) -> str:
    choices = CompareChoices("A <b> dog", mechanisms, **others)
    return step_link(choices.query(), mechanisms, step)


def query(html: str) -> dict:
    address = html.split('href="')[1].split('"')[0].replace("&amp;", "&")
    assert urlsplit(address).path == "inside"
    return parse_qs(urlsplit(address).query)


def test_it_opens_the_same_step_of_the_mechanisms_that_attend():
    parameters = query(link(3, "bahdanau", "fixed-context", "transformer", layer=1, head=2))
    assert parameters["show"] == ["Bahdanau", "Transformer"] and parameters["step"] == ["4"]
    assert parameters["text"] == ["A <b> dog"]
    assert parameters["layer"] == ["2"] and parameters["head"] == ["3"] and parameters["pair"] == ["English → French"]


def test_the_mean_of_heads_is_the_mean_there_too_and_recurrent_models_have_no_head():
    assert query(link(0, "transformer"))["head"] == ["mean of heads"]
    assert "head" not in query(link(0, "bahdanau", "fixed-context"))
    assert "head" not in query(link(0, "transformer", kind="encoder", head=2))  # a head of another kind


def test_without_attention_there_is_no_step_to_open():
    assert link(0, "fixed-context") == "<p></p>"


def test_a_token_in_quotes_is_shown_as_in_a_picture():
    assert quoted(["a<b", "", "\u2800", "a<b"]) == "‘a&lt;b’, ‘␣’, ‘U+2800’"


def test_what_was_trained_in_the_visit_has_no_links_for_they_open_another_visit():
    choices = CompareChoices("a b c", ("luong-dot",), "sort~00ff")
    assert "href" not in step_link(choices.query(), ["luong-dot"], 0)
    assert "href" not in sentence_link("sort~00ff", ["luong-dot"], "a b c")
    assert "href" in sentence_link("sort", ["luong-dot"], "a b c")


def test_hidden_weight_is_told_only_where_special_tokens_are_hidden():
    """A row that would be read beyond the first or the last is blank, and none of its weight is hidden."""
    trace = attnviz.load("en-fr/bahdanau").trace("The dog runs.")
    assert removed(select.select(trace, shift=1)) == removed(select.select(trace)) == ""
    for shift, rows in ((0, slice(-1)), (-1, slice(-2))):  # but for that of <eos>
        hidden = removed(select.select(trace, special=False, shift=shift))
        share = trace.map().weights[0, rows, -1].mean()
        assert hidden == f"Special tokens are hidden: {100 * share:.0f}% of the weight on average"
