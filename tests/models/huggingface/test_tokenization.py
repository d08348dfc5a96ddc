"""pieces.py: tokens with their places, from tokenizers of several kinds."""

import families
import pytest
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers

from attnviz.models.huggingface import tokenization

pytestmark = pytest.mark.xdist_group("hf")  # one process imports the library


def fast(made):
    tokenizer, special = made
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


def brief(tokens):
    return [(token.text, token.start, token.word) for token in tokens]


def test_spaces_before_a_word_are_not_its_own():
    tokens = tokenization.encode(fast(families.byte_pairs()), " The  dog\nis").tokens
    assert brief(tokens) == [("The", 1, 0), (" ", 4, 1), ("dog", 6, 2), ("\n", 9, 3), ("is", 10, 4)]


def test_a_space_that_nobody_typed_is_empty():
    tokens = tokenization.encode(fast(families.sentencepiece()), "ab").tokens
    assert brief(tokens) == [("", 0, 0), ("a", 0, 0), ("b", 1, 0), ("</s>", 2, None)]


def test_words_begin_after_white_space_where_the_tokenizer_knows_none():
    """As Llama's first tokenizer: spaces are pieces like letters, and the whole text is one word to it."""
    vocabulary = ["<unk>", "▁", *"abc", "▁b"]
    tokenizer = Tokenizer(models.BPE({piece: i for i, piece in enumerate(vocabulary)}, [("▁", "b")], unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Strip(" ", 1, 0)])
    tokens = tokenization.encode(fast((tokenizer, {"unk_token": "<unk>"})), "ca bc").tokens
    assert brief(tokens) == [("", 0, 0), ("c", 0, 0), ("a", 1, 0), ("b", 3, 1), ("c", 4, 1)]


class Slow:
    """A tokenizer that says nothing of places or words: pieces as sentencepiece names them, and what they spell."""

    is_fast, unk_token_id, all_special_ids = False, None, ()

    def __init__(self, *vocabulary):
        self.vocabulary = vocabulary

    def __call__(self, verbose, **_):
        return {"input_ids": list(range(len(self.vocabulary)))}

    def decode(self, ids, **_):
        return "".join(self.vocabulary[number] for number in ids).replace("▁", " ").strip()

    def convert_ids_to_tokens(self, ids):
        return [self.vocabulary[number] for number in ids]


def test_a_space_that_is_a_piece_of_its_own_begins_the_word_after_it():
    tokens = tokenization.encode(Slow("▁i", "s", "▁", "r", "un", "▁o", "n"), "is run on").tokens
    assert [(t.text, t.word) for t in tokens] == [("i", 0), ("s", 0), ("", 1), ("r", 1), ("un", 1), ("o", 2), ("n", 2)]


def test_a_special_token_that_was_typed_keeps_its_place():
    tokens = tokenization.encode(fast(families.wordpiece()), "a [MASK] dog").tokens
    assert [(t.text, t.start, t.end, t.special) for t in tokens] == [
        ("[CLS]", 0, 0, True),
        ("a", 0, 1, False),
        ("[MASK]", 2, 8, True),
        ("dog", 9, 12, False),
        ("[SEP]", 12, 12, True),
    ]


@pytest.mark.parametrize("made", [families.wordpiece, families.byte_pairs, families.sentencepiece])
@pytest.mark.parametrize("text", ["the black dog", "le chien noir court", "a dog is running"])
def test_what_ids_spell_stands_where_encoding_puts_it(made, text):
    tokenizer = fast(made())
    read = tokenization.encode(tokenizer, text)
    written, tokens = tokenization.spell(tokenizer, list(read.ids))
    assert written == text
    assert [t for t in tokens if not t.special] == [t for t in read.tokens if not t.special]


def test_a_character_stands_at_the_piece_that_completes_it():
    tokenizer = fast(families.byte_pairs())
    ids = tokenizer("🙂a")["input_ids"]
    assert len(ids) == 5
    text, tokens = tokenization.spell(tokenizer, ids)
    assert text == "🙂a" and [t.text for t in tokens] == ["", "", "", "🙂", "a"]


def test_special_tokens_spell_nothing():
    tokenizer = fast(families.byte_pairs())
    a, b = tokenizer("ab")["input_ids"]
    text, tokens = tokenization.spell(tokenizer, [0, a, 2, b])
    assert text == "ab" and [(t.text, t.start, t.end, t.special) for t in tokens] == [
        ("<s>", 0, 0, True),
        ("a", 0, 1, False),
        ("</s>", 1, 1, True),
        ("b", 1, 2, False),
    ]


def test_nothing_spells_nothing():
    assert tokenization.spell(fast(families.byte_pairs()), []) == ("", ())


def test_names_are_what_readers_see():
    tokenizer = fast(families.byte_pairs())
    [dog], space = tokenizer(" dog")["input_ids"], tokenizer(" ")["input_ids"][0]
    assert [tokenization.name(tokenizer, number) for number in (dog, 0, space, 100_000)] == [
        "dog",
        "<s>",
        "␣",
        "#100000",
    ]
