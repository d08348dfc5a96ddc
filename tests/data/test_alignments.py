"""Links in the formats of public test sets: what they say, by hand, and what is wrong with a file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.data import alignments

SOURCE, TARGET = "The dog runs .\nIt  is | late\n", "Le chien court .\nIl est tard\n"


@pytest.fixture
def write_links(tmp_path):
    """place(links, …) -> the paths of the links and of the two texts."""

    def write(links: str, source: str = SOURCE, target: str = TARGET):
        paths = tmp_path / "links", tmp_path / "source", tmp_path / "target"
        for path, text in zip(paths, (links, source, target)):
            path.write_text(text, encoding="utf-8")
        return paths

    return write


def test_pharaoh(write_links):
    first, second = alignments.read(*write_links("0-0 1-1 2?2 3p1\n0-0 3-2?\n"))
    assert (first.source, first.words()[1]) == ("The dog runs .", ["Le", "chien", "court", "."])
    assert first.sure == {(0, 0), (1, 1)} and first.possible == first.sure | {(2, 2), (3, 1)}
    assert second.words()[0] == ["It", "is", "|", "late"]  # words stand between spaces; a bar is a word like another
    assert second.sure == {(0, 0)} and second.possible == {(0, 0), (3, 2)}


def test_counted_from_one_and_the_target_first(write_links):
    first, second = alignments.read(*write_links("1-1 2-1 0-3\n\n"), first=1, swapped=True)
    assert first.sure == {(0, 0), (0, 1)} and not second.possible  # word 0 says that the other has no link


def test_naacl(write_links):
    links = "0001 1 1\n1 2 2 P\n1 3 3 s 0.9\n\n2 1 1 S\n2 4 3 P .5\n2 2 0\n"
    first, second = alignments.read(*write_links(links))
    assert first.sure == {(0, 0), (2, 2)} and first.possible == first.sure | {(1, 1)}
    assert second.sure == {(0, 0)} and second.possible == {(0, 0), (3, 2)}


def test_sentences_have_the_numbers_of_their_tags(write_links):
    texts = (
        "<s snum=0007> The dog runs </s>\n<s snum=9> It rains </s>\n",
        "<s snum=7>Le chien court</s>\n<s snum=9>Il pleut</s>",
    )
    (pair,) = alignments.read(*write_links("9 1 1 S\n9 2 2 S\n", *texts))
    assert (pair.source, pair.target, pair.sure) == ("It rains", "Il pleut", {(0, 0), (1, 1)})


def test_two_files_for_sure_and_possible(write_links, tmp_path):
    (tmp_path / "possible").write_text("0-0 2-1\n0-0\n", encoding="utf-8")
    first, second = alignments.read(*write_links("0-0\n\n"), possible=tmp_path / "possible")
    assert (first.sure, first.possible) == ({(0, 0)}, {(0, 0), (2, 1)})
    assert (second.sure, second.possible) == (set(), {(0, 0)})


@pytest.mark.parametrize(
    "links, words",
    [
        ("0-0\n4-0\n0-0", r"links, line 2: the source has words 0 to 3; got word 4. Are words counted from 1"),
        ("0-0 0-9\n", "line 1: the target has words 0 to 3; got word 9"),
        ("1 1 1 S\n7 1 1 S\n", "line 2: there is no sentence 7"),
        ("0-0\n\n0-0\n", "line 3: there is no sentence 3"),
        ("0:0\n", r"line 1: a link must be i-j, or i\?j"),
        ("1 1 1 S\n1 1 1 X\n", "line 2: a link must be SENTENCE SOURCE TARGET"),
        ("1-1 999999999999-1\n", "a link must be i-j"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(write_links, links, words):
    with pytest.raises(ValueError, match=words):
        alignments.read(*write_links(links))


@pytest.mark.parametrize(
    "source, target, words",
    [
        ("a b\n", "c\nd\n", "has 1 sentences and .* has 2"),
        ("a\n\n", "b\nc\n", "sentence 2 must have words in both files; got none in .*source"),
        ("\n", "\n", "at least one sentence"),
        ("<s snum=1>a</s>\n<s snum=1>b</s>\n", "c\nd\n", "sentence 1 must come once"),
    ],
)
def test_texts_that_are_not_side_by_side(write_links, source, target, words):
    with pytest.raises(ValueError, match=words):
        alignments.sentences(*write_links("", source, target)[1:])


LINES = st.lists(st.text(st.sampled_from("0123456789-?p SPs.:\t–x"), max_size=12), max_size=4).map("\n".join)


@given(LINES, st.sampled_from([None, 0, 1]), st.booleans())
def test_any_links_are_read_or_refused(tmp_path_factory, text, first, swapped):
    folder = tmp_path_factory.getbasetemp()
    for name, content in (("links", text), ("source", SOURCE), ("target", TARGET)):
        (folder / name).write_text(content, encoding="utf-8")
    try:
        pairs = alignments.read(folder / "links", folder / "source", folder / "target", first=first, swapped=swapped)
    except ValueError as error:
        assert str(folder) in str(error)
    else:
        assert all(pair.sure <= pair.possible for pair in pairs)
