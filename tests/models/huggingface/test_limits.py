"""Texts that a model of the transformers library cannot show, and how much it takes."""

import families
import pytest
import transformers
from families import FAMILIES, LIMIT, WRITERS

import attnviz
from attnviz.models.model import TextError

pytestmark = pytest.mark.xdist_group("hf")  # one process imports the library
TEXT = "The black dogs are running."

writers, every = pytest.mark.parametrize("family", WRITERS), pytest.mark.parametrize("family", FAMILIES)


@every
@pytest.mark.parametrize(
    "text, wanted",
    [
        ("", "the text is empty; type a sentence"),
        (" \n", "the text is empty; type a sentence"),
        ("\udcff", "the text has bytes that are not valid characters; type it again, in UTF-8"),
    ],
)
def test_no_text(load, family, text, wanted):
    with pytest.raises(TextError) as error:
        load(family).trace(text)
    assert str(error.value) == wanted


def test_a_text_of_special_tokens_only(load):
    with pytest.raises(TextError, match="^the text has no tokens but special ones; type a sentence$"):
        load("bert").trace("[SEP]")


def test_one_token(load):
    trace = load("gpt2").trace("n")
    assert [token.text for token in trace.source] == ["n"] and trace.map("decoder").weights.tolist() == [
        [[1.0]],
        [[1.0]],
    ]


@every
def test_the_limit_is_the_models(load, family):
    """As many tokens as it has positions pass; of one more the message says how many there are and may be."""
    model = load(family)
    added = sum(token.special for token in model.trace("n").source)
    assert len(model.trace(text(model, LIMIT)).source) == LIMIT and added == {
        "gpt2": 0,
        "llama": 1,
        "t5": 1,
        "marian": 1,
    }.get(family, 2)
    with pytest.raises(TextError) as error:
        model.trace(text(model, LIMIT + 1))
    assert str(error.value) == (
        f"the text is too long: {LIMIT + 1} tokens with those that {model.name} adds, and its limit here is "
        f"{LIMIT}; shorten it or split it into sentences"
    )


def text(model, count):
    """A text of so many tokens, those that the tokenizer adds included."""
    grown = "n"
    while len(model.tokenizer(grown)["input_ids"]) < count:
        grown += " n"
    cut = grown if len(model.tokenizer(grown)["input_ids"]) == count else grown[:-2]
    return cut if len(model.tokenizer(cut)["input_ids"]) == count else f"{cut}n"


def test_a_model_that_reads_more_is_shown_what_can_be_drawn(tmp_path):
    assert attnviz.load(f"hf:{families.write(tmp_path / 'long', 'llama', max_position_embeddings=4096)}").limit == 512


@writers
def test_a_target_is_checked_as_a_text_is(load, family):
    with pytest.raises(TextError, match="^the target is empty; type a sentence$"):
        load(family).trace(TEXT, " ")
    with pytest.raises(
        TextError, match="^the target is too long: .* tokens with those that hf:.* adds, and its limit here is"
    ):
        load(family).trace(TEXT, "n " * 600)
    with pytest.raises(ValueError, match="^beam must be from 1 to 20; got 0$"):
        load(family).trace(TEXT, beam=0)


@pytest.mark.parametrize("more", [{"target": "x"}, {"beam": 2}])
def test_a_reader_produces_nothing(load, more):
    with pytest.raises(ValueError, match="reads a text and produces none, so it takes no target and no beam$"):
        load("gpt2").trace(TEXT, **more)


def test_a_target_that_a_reader_cannot_take_is_an_error_in_its_place(load):
    given = load("gpt2").traces([TEXT] * 3, [None, "x", None])
    assert [isinstance(trace, TextError) for trace in given] == [False, True, False]
    with pytest.raises(ValueError, match="takes no target and no beam"):
        load("gpt2").traces([TEXT], beam=2)  # before anything is read


def test_a_family_that_calls_another_head_a_language_models(tmp_path):
    """FlauBERT's LMHeadModel predicts masked words, and the library has none of it that predicts the next."""
    tokenizer, _ = made = families.wordpiece()
    config = transformers.FlaubertConfig(
        n_words=tokenizer.get_vocab_size(), vocab_size=tokenizer.get_vocab_size(), emb_dim=16, n_layers=2, n_heads=2
    )
    families.save(tmp_path, transformers.FlaubertWithLMHeadModel(config), made)
    assert attnviz.load(f"hf:{tmp_path}").head_counts == {"encoder": (2, 2)}
