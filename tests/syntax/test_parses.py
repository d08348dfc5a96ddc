"""Parses: the shipped ones are whole trees of the sentences that were linked, and a file that is wrong is refused."""

from types import SimpleNamespace

import pytest

from attnviz import gold, syntax
from attnviz.data.tasks import TASKS
from attnviz.syntax import Parse

LINKED = {pair.source for languages in ("en-fr", "en-de", "en-ja") for pair in gold.shipped(languages)}
ROW = "{}\t{}\t_\tX\t_\t_\t{}\t{}\t_\t{}\n"


def test_every_linked_sentence_has_a_parse_of_its_words():
    assert set(syntax.shipped()) == LINKED
    for text, parse in syntax.shipped().items():
        assert "".join(parse.word(place) for place in range(len(parse.words))) == text.replace(" ", "")


def test_the_page_s_first_sentence_has_one_and_none_of_the_linked_has_two():
    assert TASKS["en-fr"].first in syntax.examples()
    assert not LINKED & set(syntax.examples())


def test_pairs_by_hand():
    parse = syntax.shipped()["She gave him the red car."]
    words = {
        label: [(parse.word(a), parse.word(b)) for a, b in parse.pairs(label)] for label in (*syntax.RELATIONS, "iobj")
    }
    assert words == {
        "nsubj": [("She", "gave")],
        "obj": [("car", "gave")],
        "det": [("the", "car")],
        "amod": [("red", "car")],
        "case": [],
        "iobj": [("him", "gave")],
    }


def test_words_that_are_not_spaced_and_tokens_that_are_no_words(tmp_path):
    path = tmp_path / "own.conllu"
    rows = ROW.format("1-2", "don't", "_", "_", "_") + ROW.format(1, "do", 2, "aux", "SpaceAfter=No")
    path.write_text(rows + ROW.format(2, "n't", 0, "root", "_") + "\n", encoding="utf-8")
    (parse,) = syntax.read(path)
    assert parse == Parse("don't", ((0, 2), (2, 5)), (1, -1), ("aux", "root"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must hold at least one sentence; got none"),
        ("no columns\n\n", "must be in the CoNLL-U format"),
        (ROW.format(1, "a", 2, "det", "_") + ROW.format(2, "b", 1, "dep", "_") + "\n", "sentence 1: one word must"),
        (ROW.format(1, "a", 7, "det", "_") + ROW.format(2, "b", 0, "root", "_") + "\n", "sentence 1: one word must"),
        (ROW.format(1, "a", "_", "_", "_") + "\n", "every word must have a head"),
        (
            "".join(ROW.format(*row, "_") for row in ((1, "a", 2, "x"), (2, "b", 1, "x"), (3, "c", 0, "root"))) + "\n",
            "go in a circle",
        ),
    ],
)
def test_a_file_that_is_wrong_is_refused(tmp_path, text, message):
    path = tmp_path / "own.conllu"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        syntax.read(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="UTF-8"):
        syntax.read(path)


def test_a_sentence_needs_spacy_where_it_is_not_installed():
    if syntax.spacy_models():
        assert syntax.parse_with_spacy("A dog runs.").pairs("nsubj") == [(1, 2)]
        return
    with pytest.raises(ValueError, match=r"pip install spacy && python -m spacy download en_core_web_sm"):
        syntax.parse_with_spacy("A dog runs.")


def _token(i, text, idx, dep, head, lemma):
    return SimpleNamespace(i=i, text=text, idx=idx, dep_=dep, lemma_=lemma, head=SimpleNamespace(i=head))


def test_any_english_model_of_spacy_is_taken(monkeypatch):
    """A package of models declares them as entry points; names are no code, so nothing is imported."""
    points = [SimpleNamespace(name=name) for name in ("en_core_web_trf", "de_core_news_sm", "en_core_web_lg")]
    monkeypatch.setattr(syntax, "entry_points", lambda group: points if group == "spacy_models" else [])
    installed = {"spacy"}
    monkeypatch.setattr(syntax.importlib.util, "find_spec", lambda name: name in installed or None)
    assert syntax.spacy_models() == ("en_core_web_lg", "en_core_web_trf")
    with pytest.raises(ValueError, match="spaCy and en_core_web_md must be installed"):
        syntax.parse_with_spacy("A dog runs.", "en_core_web_md")
    installed.add("en_core_web_sm")
    assert syntax.spacy_models() == ("en_core_web_sm", "en_core_web_lg", "en_core_web_trf")
    installed.clear()
    assert syntax.spacy_models() == ()


def test_spacy_s_prepositions_and_forms_of_be_become_those_of_universal_dependencies():
    """The values are what spaCy 3.8 with en_core_web_sm 3.8 gives for this sentence."""
    text = "The book is on the table."
    rows = [
        (0, "The", 0, "det", 1, "the"),
        (1, "book", 4, "nsubj", 2, "book"),
        (2, "is", 9, "ROOT", 2, "be"),
        (3, "on", 12, "prep", 2, "on"),
        (4, "the", 15, "det", 5, "the"),
        (5, "table", 19, "pobj", 3, "table"),
        (6, ".", 24, "punct", 2, "."),
    ]
    parse = syntax.from_spacy(text, [_token(*row) for row in rows])
    assert parse.governors == (1, 2, -1, 5, 5, 2, 2)
    assert parse.relations == ("det", "nsubj", "root", "case", "det", "obl", "punct")
