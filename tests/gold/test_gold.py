"""The format of links set by hand, its errors, and the project's own pairs."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz import gold

LANGUAGES = ("en-fr", "en-de", "en-ja")
EXAMPLE = """# a comment

Isn't she the teacher|?
N'|est|-elle pas la professeure ?
0-0? 0-1 0-3 1-2 2-4 3-5 4-6

犬|が|走|る|。
A dog runs|.
# between the lines of a pair too
0-1 0-0? 1- 2-2 3-2? 4-3
"""


def test_the_example_by_hand():
    first, second = gold.parse(EXAMPLE)
    assert (first.source, first.target) == ("Isn't she the teacher?", "N'est-elle pas la professeure ?")
    assert first.words() == (
        ["Isn't", "she", "the", "teacher", "?"],
        ["N'", "est", "-elle", "pas", "la", "professeure", "?"],
    )
    assert first.source_words[3:] == ((14, 21), (21, 22)) and first.target_words[:3] == ((0, 2), (2, 5), (5, 10))
    assert first.sure == {(0, 1), (0, 3), (1, 2), (2, 4), (3, 5), (4, 6)} and first.possible == first.sure | {(0, 0)}
    assert second.source == "犬が走る。" and second.source_words == ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5))
    assert second.sure == {(0, 1), (2, 2), (4, 3)} and second.alone == ({1}, set())


def test_the_example_is_that_of_the_readme():
    assert "\n".join(EXAMPLE.splitlines()[2:5]) in (gold.FOLDER / "README.md").read_text(encoding="utf-8")


def test_forgotten_words_are_named():
    pair = gold.parse("The dog runs .\nLe chien , court .\n0-0 1-1 -2")[0]
    assert pair.forgotten() == ["runs", ".", "court", "."]


words = st.text(st.sampled_from(string.ascii_letters + "éß犬.'?-"), min_size=1, max_size=6)


@st.composite
def pairs(draw):
    """Words and what stands between them, and links between any of them."""
    sides = []
    for _ in range(2):
        side = draw(st.lists(words, min_size=1, max_size=6))
        sides.append(
            (side, draw(st.lists(st.sampled_from([" ", "  ", "|"]), min_size=len(side) - 1, max_size=len(side) - 1)))
        )
    cells = st.tuples(*(st.integers(0, len(side) - 1) for side, _ in sides))
    return sides, draw(st.dictionaries(cells, st.booleans()))


@given(pairs())
def test_what_is_written_is_read(drawn):
    sides, links = drawn
    lines = ["".join(a + b for a, b in zip(side, [*gaps, ""])) for side, gaps in sides]
    marks = " ".join(f"{a}-{b}{'' if sure else '?'}" for (a, b), sure in links.items()) or "0-"
    pair = gold.parse(f"{lines[0]}\n{lines[1]}\n{marks}\n")[0]
    assert pair.words() == tuple(side for side, _ in sides)
    assert (pair.source, pair.target) == tuple(line.replace("|", "") for line in lines)
    assert pair.possible == set(links) and pair.sure == {link for link, sure in links.items() if sure}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x must hold at least one pair; got none"),
        ("# nothing\n\n", "x must hold at least one pair; got none"),
        ("a\nb", "x, line 1: a pair must be three lines, its source, its target and its links; got 2"),
        ("\na\nb\n0-0\nc\n", "x, line 2: a pair must be three lines, its source, its target and its links; got 4"),
        (
            "a\nb\n0-0\n\na\nb\n0:0",
            "x, line 5: a link must be SOURCE-TARGET, counted from 0, with ? when it is only possible, and 3- "
            "or -3 for a word without a link; got '0:0'",
        ),
        (
            "a\nb\n-",
            "x, line 1: a link must be SOURCE-TARGET, counted from 0, with ? when it is only possible, and 3- or -3 "
            "for a word without a link; got '-'",
        ),
        (
            "a\nb\n0-?",
            "x, line 1: a link must be SOURCE-TARGET, counted from 0, with ? when it is only possible, and 3- or -3 "
            "for a word without a link; got '0-?'",
        ),
        (
            f"a\nb\n0-{'9' * 5000}",
            "x, line 1: a link must be SOURCE-TARGET, counted from 0, with ? when it is only possible, and 3- or -3 "
            f"for a word without a link; got '0-{'9' * 77}",
        ),
        ("a\nb\n0-1", "x, line 1: the target has words 0 to 0; got word 1 among the links"),
        ("a b\nb\n2-0?", "x, line 1: the source has words 0 to 1; got word 2 among the links"),
        ("a\nb\n0-0 -7", "x, line 1: the target has words 0 to 0; got word 7 among the links"),
        ("a\nb\n0-0 0-0?", "x, line 1: a link must be given once; got 0-0 twice"),
        ("a\nb\n0-0 0-", "x, line 1: word 0 of the source is marked as having no link, but has one"),
        ("|\nb\n0-0", "x, line 1: a sentence must hold at least one word; got '|'"),
    ],
)
def test_errors_name_the_line(text, message):
    with pytest.raises(ValueError) as error:
        gold.parse(text, "x")
    assert str(error.value) == message


def test_a_sure_link_must_be_possible():
    with pytest.raises(ValueError, match="^every sure link must be possible too; got 0-0 among the sure ones alone$"):
        gold.LinkedPair("a", "b", ((0, 1),), ((0, 1),), frozenset({(0, 0)}), frozenset())


def test_files(tmp_path):
    path = tmp_path / "own.txt"
    path.write_text("a\r\nb\r\n0-0\r\n", encoding="utf-8-sig", newline="")
    assert gold.read(path)[0].sure == {(0, 0)}
    path.write_bytes(b"a\nb\xff\n0-0\n")
    with pytest.raises(ValueError) as error:
        gold.read(path)
    assert str(error.value) == f"{path} must be UTF-8 text; got byte 0xff at 3"
    with pytest.raises(FileNotFoundError):
        gold.read(tmp_path / "none.txt")
    assert gold.shipped("xx-yy") == ()


# --- the project's own


@pytest.mark.parametrize("languages", LANGUAGES)
def test_at_least_30_pairs_in_which_no_word_was_forgotten(languages):
    own = gold.shipped(languages)
    assert len(own) >= 30 and len({pair.source for pair in own}) == len({pair.target for pair in own}) == len(own)
    for pair in own:
        assert pair.forgotten() == [], pair.source
        alone = {words[place] for words, places in zip(pair.words(), pair.alone) for place in places}
        assert alone <= {",", "、", "que", "you", "You", "who", "that", "it", "I"}, pair.source  # no word of content


@pytest.mark.parametrize("languages", LANGUAGES)
def test_sentences_end_with_a_sure_link_between_their_marks(languages):
    for pair in gold.shipped(languages):
        source, target = pair.words()
        assert source[-1] in ".?!" and target[-1] in ".?!。" and (len(source) - 1, len(target) - 1) in pair.sure


@pytest.mark.parametrize("languages", LANGUAGES)
def test_many_pairs_are_reordered(languages):
    """Two sure links that cross: what a diagonal cannot get right."""
    crossed = [
        pair for pair in gold.shipped(languages) if any(a < c and b > d for a, b in pair.sure for c, d in pair.sure)
    ]
    assert len(crossed) >= 20
