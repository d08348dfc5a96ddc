"""What a map shows, in a sentence: every rule by hand, and the rule of swapped words against links set by hand."""

import numpy as np
import pytest
from grids import EOS, grid, words

import attnviz
from attnviz import alignment, gold, reading, select
from attnviz.trace import Token

SOURCE, TARGET = words("the", "green", "grass"), words("l’", "herbe", "verte")
FOUR = words("a", "b", "c", "d")


def one_hot(*keys, size):
    return np.eye(size)[list(keys)]


def names(drawn):
    return [observation.rule for observation in reading.observe(drawn)]


def test_two_words_that_changed_places():
    weights = [[0.9, 0, 0.1, 0], [0.1, 0.1, 0.7, 0.1], [0, 0.86, 0.04, 0.1], [0, 0, 0, 1]]
    seen = reading.swapped(grid(TARGET, SOURCE, weights))
    assert seen.sentence == (
        "‘herbe’ looks at ‘grass’ (0.70), and the next word, ‘verte’, looks at ‘green’ (0.86): "
        "in the source their order is reversed, ‘green grass’."
    )
    assert seen.cells == ((1, 2), (2, 1))


def test_below_the_least_weight_nothing_is_claimed():
    weights = [[0.9, 0, 0.1, 0], [0.1, 0.1, 0.49, 0.31], [0, 0.86, 0.04, 0.1], [0, 0, 0, 1]]
    assert reading.swapped(grid(TARGET, SOURCE, weights)) is None


def test_words_further_apart_differ_in_order():
    weights = one_hot(0, 2, 0, 3, size=4)
    seen = reading.swapped(grid(TARGET, SOURCE, weights))
    assert seen.sentence.endswith("in the source their order is reversed.")


def test_a_verb_at_the_end():
    """The last of five words looks at the second of five: three places from its own."""
    five = words("a", "b", "c", "d", "e")
    seen = reading.moved(grid(five, five, one_hot(0, 2, 3, 4, 1, 5, size=6)))
    assert seen.sentence == (
        "‘e’, word 5 of 5, looks at ‘b’ (1.00), word 2 of 5 in the source: far from its own place."
    )
    assert seen.cells == ((4, 1),)
    assert reading.moved(grid(five, five, one_hot(0, 1, 3, 4, 2, 5, size=6))) is None  # two places


def test_the_largest_weight_is_that_of_a_word():
    drawn = grid(words("a", "."), words("a", "."), [[0.4, 0.3, 0.3], [0, 1, 0], [0, 0, 1]])
    assert "‘a’ has the largest weight: 0.40 on ‘a’." in reading.strongest(drawn).sentence


def test_pieces_of_a_word_are_read_as_the_word():
    """Keys gr|een: .3 + .4 is above the least weight, though neither piece is."""
    keys = (Token("gr", 0, 2, word=0), Token("een", 2, 5, word=0), Token("grass", 6, 11, word=1), EOS)
    weights = [[0.1, 0.1, 0.7, 0.1], [0.3, 0.4, 0.2, 0.1], [0, 0, 0, 1]]
    assert "‘verte’, looks at ‘green’ (0.70)" in reading.swapped(grid(words("herbe", "verte"), keys, weights)).sentence


def test_punctuation_is_no_word():
    drawn = grid(words("herbe", "."), words("grass", "."), one_hot(1, 0, 2, size=3))
    assert reading.swapped(drawn) is None


def test_rows_on_the_end_of_the_text():
    seen = reading.special(grid(FOUR, FOUR, one_hot(4, 4, 2, 4, 4, size=5)))
    assert seen.sentence == "3 of 4 rows look most at <eos>: they look at no word in particular."
    assert seen.cells == ((0, 4), (1, 4), (3, 4))
    alone = reading.special(grid(words("attention"), words("attention"), one_hot(1, 1, size=2)))
    assert alone.sentence == "The row of the only word looks most at <eos>, and at no word in particular."
    assert reading.special(grid(FOUR, FOUR, one_hot(4, 4, 2, 3, 4, size=5))) is None  # half are not most


def test_a_diagonal_and_its_mirror_image():
    assert names(grid(FOUR, FOUR, one_hot(0, 1, 2, 3, 4, size=5)))[0] == "diagonal"
    mirrored = grid(FOUR, FOUR, one_hot(3, 2, 1, 0, 4, size=5))
    assert names(mirrored)[0] == "reversed"
    assert reading.sentence(mirrored).startswith("The map is an anti-diagonal: 100% of the words")


@pytest.mark.parametrize(
    ("distance", "name"), [(-1, "the token before them"), (0, "themselves"), (1, "the token after them")]
)
def test_neighbours_in_self_attention(distance, name):
    keys = np.clip(np.arange(5) + distance, 0, 4)
    seen = reading.neighbour(grid(FOUR, FOUR, one_hot(*keys, size=5), kind="encoder"))
    assert f"look most at {name}." in seen.sentence


def test_the_inputs_of_a_decoder_stand_one_place_later():
    """Key t of a translation's decoder is the token before target token t. Its first row has no choice, so it is not
    counted."""
    keys = (Token("<bos>", 0, 0, special=True), *words("a", "b", "c"))
    drawn = grid(FOUR, keys, np.eye(5), kind="decoder", visible=np.tri(5, dtype=bool))
    assert reading.neighbour(drawn).sentence == "3 of 3 rows look most at the token before them."


def test_sharp_and_blurred_exclude_each_other():
    sharp = grid(TARGET, SOURCE, one_hot(0, 0, 0, 0, size=4))
    blurred = grid(TARGET, SOURCE, np.full((4, 4), 0.25))
    assert (
        reading.sharp(sharp).sentence
        == "Sharp: on average 1.00 of the weight of a word's row is on one token (punctuation aside)."
    )
    assert reading.blurred(sharp) is None and reading.sharp(blurred) is None
    assert "as widely as uniform attention over 4.0 of 4 tokens." in reading.blurred(blurred).sentence
    with_a_stop = grid(words("a", "b", "c", "."), SOURCE, [*one_hot(0, 0, 0, size=4), [0.25] * 4, [1, 0, 0, 0]])
    assert (
        reading.sharp(with_a_stop).sentence == reading.sharp(sharp).sentence
    )  # the row of the full stop does not count
    assert reading.sentence(blurred) == reading.blurred(blurred).sentence  # no weight of an even row is worth naming


def test_a_row_of_a_decoder_is_blurred_over_what_it_sees():
    """The first of four rows sees one token and has no choice; the others are uniform over 2, 3 and 4 of them: their
    mean is 3."""
    keys = (Token("<bos>", 0, 0, special=True), *words("a", "b", "c"))
    seen = np.tri(5, dtype=bool)
    drawn = grid(FOUR, keys, seen / seen.sum(1, keepdims=True), kind="decoder", visible=seen)
    assert "as widely as uniform attention over 3.0 of the 3.0 tokens that it sees." in reading.blurred(drawn).sentence


def test_the_largest_weight_of_all_words():
    weights = [[0.4, 0.3, 0.3, 0], [0.3, 0.3, 0.2, 0.2], [0.2, 0.45, 0.15, 0.2], [0, 0, 0, 1]]
    seen = reading.strongest(grid(TARGET, SOURCE, weights))
    assert seen.sentence == ("Punctuation and special tokens aside, ‘verte’ has the largest weight: 0.45 on ‘green’.")
    assert seen.cells == ((2, 1),)


def test_without_weights_nothing_is_said():
    blank = grid(TARGET, SOURCE, np.full((4, 4), np.nan), removed=np.ones(4))
    assert reading.observe(blank) == [] and reading.sentence(blank) == ""


def test_every_map_with_weights_has_a_sentence():
    for seed in range(20):
        weights = np.random.default_rng(seed).dirichlet(np.full(5, 0.5), 5)
        assert reading.sentence(grid(FOUR, FOUR, weights))


def test_links_set_by_hand_are_read_as_they_cross():
    """A map with all weight on the links: whatever is called swapped stands crosswise in the links."""
    claims = 0
    for pair in gold.shipped("en-fr"):
        keys, queries = (
            (*(Token(text[a:b], a, b, word=i) for i, (a, b) in enumerate(spans)), EOS)
            for text, spans in ((pair.source, pair.source_words), (pair.target, pair.target_words))
        )
        weights = np.zeros((len(queries), len(keys)))
        for source, target in pair.possible:
            weights[target, source] = 1
        weights[weights.sum(1) == 0, -1] = 1
        seen = reading.swapped(grid(queries, keys, weights / weights.sum(1, keepdims=True)))
        if seen:
            claims += 1
            (first, after), (second, before) = seen.cells
            assert first < second and before < after
            assert {(after, first), (before, second)} <= pair.possible
    assert claims >= 20  # of 40: French puts most adjectives after their nouns


def test_what_a_model_is_said_to_swap_is_mostly_linked_so_by_hand():
    model, pairs = attnviz.load("en-fr/bahdanau"), gold.shipped("en-fr")[:12]
    right = []
    for pair in pairs:
        drawn = select.select(model.trace(pair.source, pair.target))
        if seen := reading.swapped(drawn):
            right.append(set(seen.cells) <= alignment.cells(drawn, pair).possible)
    assert len(right) >= 2 and np.mean(right) >= 0.8


def test_letters_are_not_called_words():
    drawn = grid(FOUR, FOUR, one_hot(4, 4, 4, 3, 4, size=5))
    assert reading.special(drawn, "letter").sentence.endswith("they look at no letter in particular.")
    swapped = reading.swapped(grid(FOUR, FOUR, one_hot(1, 0, 2, 3, 4, size=5)), "letter").sentence
    assert "and the next letter, ‘b’, looks at" in swapped and swapped.endswith(
        "in the source their order is reversed, ‘a b’."
    )
    assert "word" not in reading.sentence(drawn, "letter")
