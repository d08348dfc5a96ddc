"""What a translator refuses, in whole sentences."""

import pytest
import tiny
from refused_texts import refused

from attnviz.data import MOST_PIECES
from attnviz.loading import load
from attnviz.mechanisms import MECHANISMS
from attnviz.models import checkpoint_files
from attnviz.models.model import describe
from attnviz.models.translator import BEAMS, Translator
from attnviz.networks import decode

TYPED = "The black dog runs."
every = pytest.mark.parametrize("mechanism", MECHANISMS)


@every
@pytest.mark.parametrize("blank", ["", " ", "\t\n \u00a0"])
def test_empty_texts(translator, blank):
    assert refused(lambda: translator.trace(blank)) == "the text is empty; type a sentence"
    assert refused(lambda: translator.trace(TYPED, blank)) == "the target is empty; type a sentence"


@every
def test_texts_of_invisible_characters(translator):
    assert refused(lambda: translator.trace("\u200b\u200b")) == "the text has no visible character; type a sentence"
    assert refused(lambda: translator.trace(TYPED, "\x00")) == "the target has no visible character; type a sentence"


@every
def test_bytes_that_are_no_text(translator):
    wanted = "the text has bytes that are not valid characters; type it again, in UTF-8"
    assert refused(lambda: translator.trace("caf\udce9")) == wanted


@every
def test_long_texts(translator):
    dogs = " ".join(["dog"] * 500)
    pieces = len(translator.tokenizer.ids(dogs))
    wanted = (
        f"the text is too long: {pieces} pieces with <eos>, and the models read at most 200; "
        "shorten it or split it into sentences"
    )
    assert refused(lambda: translator.trace(dogs)) == wanted
    assert refused(lambda: translator.trace(TYPED, dogs)) == wanted.replace("text", "target", 1)


@every
def test_the_longest_text_is_read(translator):
    typed = "dog"
    while len(translator.tokenizer.ids(typed + " dog")) <= MOST_PIECES:
        typed += " dog"
    assert len(translator.trace(typed, typed).source) == len(translator.tokenizer.ids(typed))
    assert 2 * MOST_PIECES + 10 == decode.limit(MOST_PIECES) <= 512  # the Transformer's places


@every
@pytest.mark.parametrize("beam", [0, -1, BEAMS + 1])
def test_beams_out_of_range(translator, beam):
    assert refused(lambda: translator.trace(TYPED, beam=beam), ValueError) == f"beam must be from 1 to 20; got {beam}"


@pytest.mark.parametrize("missing", ["bahdanau/config.json", "bahdanau/model.safetensors", "tokenizer.json"])
def test_a_checkpoint_described_as_sound_is_one_that_loads(tmp_path, missing):
    folder = tiny.write_models(tmp_path) / "en-fr"
    (folder / "bahdanau" / "card.json").unlink()  # it may be missing
    assert describe("en-fr/bahdanau", tmp_path)["problem"] is None and load("en-fr/bahdanau", tmp_path).card == {}
    (folder / missing).unlink()
    assert describe("en-fr/bahdanau", tmp_path) == {
        "name": "en-fr/bahdanau",
        "problem": refused(lambda: load("en-fr/bahdanau", tmp_path), checkpoint_files.CheckpointError),
    }


def test_a_tokenizer_of_another_pair_is_refused(root, tmp_path):
    target = tiny.write_models(tmp_path / "other")
    small = tiny.train_vocabulary(["ab ab abc abc"], 10)
    small.save(target / "en-fr" / "tokenizer.json")
    size = len(tiny.vocabulary())
    wanted = (
        f"en-fr/bahdanau: the model knows {size} pieces and the tokenizer {len(small)}; they do not belong together"
    )
    assert refused(lambda: Translator.load("en-fr/bahdanau", target), checkpoint_files.CheckpointError) == wanted
