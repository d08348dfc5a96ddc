"""What a visitor sends: whether it is a trace or arrays, and the limits of both."""

import functools
import io
import json

import numpy as np
import pytest
from safetensors.numpy import save

import attnviz
from attnviz.trace import files, uploads
from attnviz.trace.uploads import Reading

LAYER = np.full((2, 3, 3), 1 / 3, np.float32)
TRACE = attnviz.from_arrays([LAYER], ["a", "b", "c"])


def npz(compressed: bool = False, **named) -> bytes:
    file = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(file, **named)
    return file.getvalue()


@pytest.mark.parametrize(
    "content, trace",
    [
        (files.pack(TRACE), True),
        (TRACE.to_json().encode(), True),
        (b"{}", True),
        (b'{"maps": ', True),
        (b"no file of ours", True),
        (npz(a=LAYER), False),
        (save({"blocks.0.attn.hook_pattern": LAYER}), False),
        (json.dumps([LAYER.tolist()]).encode(), False),
        (json.dumps({"tokens": ["a"], "weights": [[[1]]]}).encode(), False),
    ],
)
def test_a_trace_or_arrays(content, trace):
    assert uploads.is_trace(content) == trace


@pytest.mark.parametrize("tokens", ["a b  c", '["a", "b", "c"]', "[a b c"])
def test_tokens_that_are_typed(tokens):
    made = uploads.unpack(save({"0": LAYER}), "x.y.safetensors", Reading(tokens))
    assert [token.text for token in made.source] == (tokens.split() if tokens.startswith("[a") else ["a", "b", "c"])
    assert made.model == "x.y"


def test_what_the_file_says_and_what_is_typed():
    content = npz(layer_0=LAYER, tokens=["a", "b", "<pad>"], special=["a"])
    trace = uploads.unpack(content, "mine")
    assert [token.special for token in trace.source] == [True, False, False]
    assert [token.text for token in uploads.unpack(content, "mine", Reading("x y z")).source] == ["x", "y", "z"]
    with pytest.raises(uploads.TokensMissing, match="holds weights and no tokens"):
        uploads.unpack(npz(layer_0=LAYER), "mine")


def test_limits(monkeypatch):
    """What a small file unpacks to is bounded before it is unpacked."""
    with pytest.raises(ValueError, match="at most 1,600 are read"):
        uploads.unpack(npz(weights=np.ones((1, 1601, 1, 1))), "mine", Reading("a"))
    row = np.eye(1, 4097, dtype=np.float32)[None, None]
    with pytest.raises(ValueError, match="at most 4,096 are read"):
        uploads.unpack(npz(weights=row), "mine", Reading(" ".join(["a"] * 4097), "b"))
    monkeypatch.setattr(uploads, "NUMBERS", 1000)
    with pytest.raises(ValueError, match="unpacks to more than is read"):
        uploads.unpack(npz(compressed=True, weights=np.zeros((1, 1, 1001), np.float64)), "mine", Reading("a"))


def test_parameters_of_a_model_are_no_weights_of_attention():
    content = save({"encoder.query.weight": np.array([[0.5, -0.2]], np.float32)})
    with pytest.raises(ValueError, match="holds -0.200 in 'encoder.query.weight'.*the parameters of a model"):
        uploads.unpack(content, "model.safetensors")


@pytest.mark.parametrize(
    "content, message",
    [
        (b"\x80\x04]q\x00.", "it is a pickle, which runs code when it is read; save it as .npz or .safetensors"),
        (npz(weights=np.zeros((0, 2, 3, 3)), tokens=["a"]), "weights are empty: an array of shape (0, 2, 3, 3) has no"),
        (npz(weights=LAYER[None], tokens=np.array([b"\xff", b"b", b"c"])), "its texts are not UTF-8"),
        (
            npz(weights=np.full((1, 2, 4, 3), 1 / 3), tokens=list("abc")),
            "if its rows are target tokens, give these too",
        ),
        (
            json.dumps({"x": functools.reduce(lambda y, _: {"y": y}, range(9), {"z": 1}), "tokens": ["a"]}).encode(),
            "has names in names more than 8 times; give the dict of the layers",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_said(content, message):
    with pytest.raises(ValueError) as raised:
        uploads.unpack(content, "mine.npz")
    assert message in str(raised.value)


def test_tokens_as_other_programs_write_them():
    """Bytes, words in the header of safetensors, and the mask of a tokenizer."""
    padded = np.array([[[1, 0, 0], [0.5, 0.5, 0], [0, 0, 0]]])
    of_bytes = npz(weights=LAYER[None], tokens=np.array(["é".encode(), b"b", b"c"]))
    words = save({"weights": LAYER[None]}, metadata={"tokens": "a b c"})
    masked = npz(weights=padded[None], tokens=list("abc"), attention_mask=np.array([1, 1, 0]))
    texts = [[token.text for token in uploads.unpack(content, "x").source] for content in (of_bytes, words, masked)]
    assert texts == [["é", "b", "c"], ["a", "b", "c"], ["a", "b"]]
