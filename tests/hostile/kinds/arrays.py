"""Arrays from elsewhere, in a file, in memory with any options, or as `generate` returns them: they make a trace, or a
sentence says why not."""

import io
import json
import pickle

from hypothesis import strategies as st

from tests.hostile import strategies
from tests.hostile.workplace import Workplace, sentence

WARM = b"{}"
OPTIONS = ("kind", "batch", "missing", "padding", "rest", "word_ids", "special", "start", "name", "target")
KINDS = ("float32", "float16", "int8", "bool", "lists")


def strategy():
    import numpy as np
    from safetensors.numpy import save

    layer, files = np.full((2, 3, 3), 1 / 3, np.float32), [io.BytesIO() for _ in range(4)]
    np.savez(files[0], layer_0=layer, layer_1=layer, tokens=["a", "b", "c"])
    np.savez_compressed(files[1], layer_0=layer)
    np.save(files[2], layer)
    np.savez(files[3], weights=layer[None], tokens=np.array([b"a", b"b", b"c"]), attention_mask=np.array([1, 1, 0]))
    headers = [save({"encoder.0": layer}, {"tokens": written}) for written in ('["a", "b", "c"]', "a b c")]
    nested = json.dumps({"attentions": {"layer0": layer.tolist()}, "tokens": ["a", "b", "c"]}).encode()
    contents = [file.getvalue() for file in files] + [*headers, nested, pickle.dumps([1])]
    files_damaged = st.one_of(map(strategies.damaged, contents))
    meant = st.sampled_from(["cross", "decoder", "skip", "sink", "<pad>", 0, 1, -1, [0, 1, 1], [[1, 1, 0]], [True] * 3])
    shapes = st.lists(st.integers(0, 3), max_size=5)
    options = st.dictionaries(st.sampled_from(OPTIONS), st.one_of(meant, strategies.json_values), max_size=3)
    return st.one_of(files_damaged, st.tuples(shapes, st.sampled_from(KINDS), options))


def check(place: Workplace, case) -> None:
    from attnviz.trace import uploads

    if not isinstance(case, bytes):
        _held(*case)
        return
    with sentence():
        uploads.unpack(case, "mine", uploads.Reading(tokens="a b c"))
    with sentence():
        uploads.unpack(case, "mine")


def _held(shape: list[int], kind: str, options: dict) -> None:
    """An array of this shape, alone, as a layer, as a step of `generate`."""
    import numpy as np

    import attnviz

    values = np.full(shape, 1 / max(1, shape[-1] if shape else 1), "float64" if kind == "lists" else kind)
    weights = values.tolist() if kind == "lists" else values
    for held in (weights, [weights], {"blocks.0.attn.hook_pattern": weights}, {"attentions": {"layer0": weights}}):
        with sentence():
            attnviz.from_arrays(held, ["a", "b", "<pad>"], **options)
    generated = {"sequences": np.arange(4)[None], "attentions": [[weights], [weights]]} | options
    with sentence():
        attnviz.from_generate(generated, ["a", "b", "c"], batch=options.get("batch"), padding=options.get("padding"))
