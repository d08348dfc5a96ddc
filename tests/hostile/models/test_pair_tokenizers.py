"""The tokenizer of a folder of checkpoints: a bomb is refused, and what the library raises is a sentence."""

import json

import pytest
import tiny
from families import BYTES, in_sequence, replace, template

import attnviz
from attnviz.models.checkpoint_files import CheckpointError
from attnviz.models.model import TextError


@pytest.fixture
def pair(tmp_path):
    """A tokenizer.json changed by a function, or by values -> the folder of its checkpoints."""
    root = tiny.write_models(tmp_path / "checkpoints")
    path = root / "en-fr" / "tokenizer.json"

    def write(change=lambda content: content, **values):
        path.write_text(json.dumps(change(json.loads(path.read_text())) | values))
        return root

    return write


def numbered(number):
    """A tokenizer.json in which a piece has another number, and one in which a step adds that number."""

    def change(content):
        vocabulary = content["model"]["vocab"]
        return content | {"model": content["model"] | {"vocab": vocabulary | {list(vocabulary)[-1]: number}}}

    return change


@pytest.mark.parametrize(
    "values, message",
    [
        ({"normalizer": in_sequence("normalizers", replace({"Regex": "x*"}, "a"), 30)}, "its normalizer can make"),
        ({"normalizer": in_sequence("normalizers", {"type": "NFKC"}, 2)}, "are not those of a vocabulary"),
        ({"pre_tokenizer": in_sequence("pretokenizers", BYTES, 30)}, "its normalizer can make"),
        ({"version": "9.9"}, "the tokenizer failed: Unknown tokenizer version '9.9'"),
    ],
)
def test_a_checkpoint_with_a_bomb(pair, values, message):
    with pytest.raises(CheckpointError, match=message):
        attnviz.load("en-fr/bahdanau", pair(**values))


def test_pieces_of_a_checkpoint_are_counted_from_0(pair):
    with pytest.raises(CheckpointError, match=r"damaged \(its 107 pieces are not numbered from 0 to 106\); restore it"):
        attnviz.load("en-fr/bahdanau", pair(numbered(10**6)))


@pytest.mark.parametrize("kind, message", [("WordLevel", "Missing \\[UNK\\]"), ("BPE", "Unk token `zzz` not found")])
def test_what_the_library_raises_for_a_text_is_a_sentence(pair, kind, message):
    """Plain Exception, which passed every net."""
    root = pair(lambda content: content | {"model": {**content["model"], "type": kind, "unk_token": "zzz"}})
    model = attnviz.load("en-fr/bahdanau", root)
    with pytest.raises(TextError, match=f"^en-fr/bahdanau cannot read the text: the tokenizer failed: .*{message}"):
        model.trace("漢")
    assert [type(answer) for answer in model.traces(["漢", "漢"])] == [TextError] * 2


def test_a_number_that_the_model_has_no_row_for_is_refused_also_where_it_is_not_used(pair):
    with pytest.raises(ValueError, match="it gives a piece the number 100,000,000, and those of this model are"):
        attnviz.load("en-fr/bahdanau", pair(post_processor=template(10**8)))
