"""trace_files.py: what is written comes back exactly; a file that is damaged or of something else says so in a
sentence."""

import json
import subprocess
import sys

import numpy as np
import pytest
import synthetic
from safetensors.numpy import load_file, save

import attnviz
from attnviz.__main__ import main
from attnviz.models import checkpoint_files
from attnviz.trace import Trace, files, uploads

TOKENS = ["[CLS]", "naïve", "</script>", "犬", "\ud83d"]  # half a character too


def arrays():
    """Kinds that differ in layers and heads, in an order of their own."""
    rng = np.random.default_rng(3)
    weights = {
        "cross": [synthetic.softmax(rng.normal(size=(3, 2, 5)))],
        "encoder": [synthetic.softmax(rng.normal(size=(heads, 5, 5))) for heads in (1, 4)],
    }
    return attnviz.from_arrays(weights, TOKENS, ["un", "chien"], special=["[CLS]"])


TRACES = [arrays(), synthetic.trace(kinds=("encoder", "decoder", "cross"), heads=2, layers=12, pieces=True)]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "trace.safetensors"
    attnviz.save_trace(TRACES[0], path)
    return path


@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.parametrize("name", ["a.safetensors", "a.json", "A.JSON"])
def test_what_is_saved_comes_back(trace, name, tmp_path):
    attnviz.save_trace(trace, tmp_path / "new" / name)
    assert attnviz.load_trace(str(tmp_path / "new" / name)) == trace
    assert [path.name for path in (tmp_path / "new").iterdir()] == [name]


def test_weights_are_fp32_tensors_named_by_kind_and_layer(file):
    tensors = load_file(file)
    assert set(tensors) == {"cross.0", "encoder.0", "encoder.1"}
    assert all(np.array_equal(tensors[f"{m.kind}.{m.layer}"], m.weights) for m in TRACES[0].maps)
    assert {tensor.dtype for tensor in tensors.values()} == {np.dtype(np.float32)}


def test_no_torch_is_needed(file):
    code = f"import sys, attnviz; attnviz.load_trace({str(file)!r}); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=checkpoint_files.ROOT.parent).returncode == 0


def test_other_endings_are_not_written(tmp_path):
    with pytest.raises(ValueError, match=r"^path must end in \.safetensors or \.json; got 'trace\.pkl'$"):
        attnviz.save_trace(TRACES[0], tmp_path / "trace.pkl")
    assert not list(tmp_path.iterdir())


def test_json_with_a_byte_order_mark(tmp_path):
    (tmp_path / "a.json").write_text(TRACES[1].to_json(), encoding="utf-8-sig")
    assert attnviz.load_trace(tmp_path / "a.json") == TRACES[1]


def beside(**changes) -> bytes:
    """The file, with changes to what stands beside the weights."""
    trace = TRACES[0]
    return save(
        {f"{m.kind}.{m.layer}": m.weights for m in trace.maps},
        {"trace": json.dumps(trace.to_dict(weights=False) | changes)},
    )


WHOLE = files.pack(TRACES[0])
HEADER = WHOLE[: 8 + int.from_bytes(WHOLE[:8], "little")]


@pytest.mark.parametrize(
    "content, wanted",
    [
        (b"", "the file x is empty"),
        (b"PK\x03\x04 a zip \xff", "it is neither safetensors nor a JSON object in UTF-8"),
        (b"\x80\x05}q\x00.", "it is neither safetensors nor a JSON object in UTF-8"),  # a pickle
        (b"[1, 2]", "it is neither safetensors nor a JSON object in UTF-8"),
        (b'{"a": 1}', "trace must have the fields model, mechanism, text"),
        (b'{"a": ', "trace must be JSON; "),
        (b'{"a":' * 5000, "trace must be JSON; "),
        (json.dumps({f"key {i}": 0 for i in range(9999)}).encode(), "trace must have the fields model"),
        (WHOLE[:-1], "its safetensors data are damaged or incomplete"),
        (HEADER, "its safetensors data are damaged or incomplete"),
        (WHOLE[:20], "its safetensors data are damaged or incomplete"),
        (b"\xff" * 4 + bytes(4) + b"{}", "its safetensors data are damaged or incomplete"),
        (
            save({"layer.weight": np.ones(3, np.float32)}),
            "its weights are not those of a trace; attnviz.save_trace() writes traces",
        ),
        (save({}, {"trace": "{"}), "the metadata beside its weights must be JSON; "),
        (save({}, {"trace": "[]"}), "the metadata beside its weights must be an object with a list of maps"),
        (beside(maps=3), "the metadata beside its weights must be an object with a list of maps"),
        (
            beside(maps=[{"kind": "encoder", "layer": 7}]),
            "the file must hold weights for each map; got none for encoder.7",
        ),
        (beside(maps=[["x"]]), "the file must hold weights for each map; got none for ['x']"),
        (
            beside(maps=[{"kind": "encoder", "layer": 0}] * 2),
            "maps must differ in kind or layer; got the encoder map of layer 0 twice",
        ),
        (beside(source=[]), "source must hold at least one token, if only <eos>; got none"),
        (
            beside(source=TRACES[0].to_dict()["source"][:3]),
            "weights of the cross map of layer 0 must have 2 queries and 3 keys",
        ),
        (beside(text=5), "text must be text; got 5"),
        (beside(model=None), "model must be text; got None"),
        (
            beside(source=[{"text": 5, "start": 0, "end": 0, "special": True}]),
            "source token 0 must have a text, the index of its word or none",
        ),
        (
            beside(source=[{"text": "<eos>", "start": 0, "end": 0, "special": 1}]),
            "special of source token 0 must be true or false; got 1",
        ),
        (beside(forced=0), "forced of the trace must be true or false; got 0"),
        (beside(start={"text": [], "start": 0, "end": 0}), "the start token and the alternatives must have texts"),
        (
            beside(maps=[{"kind": "encoder", "layer": 0}]).replace(TRACES[0].maps[1].weights.tobytes(), bytes(100)),
            "weights of the encoder map of layer 0 must sum to 1 over the keys of every row; got 0.0000 in head 0, "
            "query 0",
        ),
    ],
)
def test_a_file_that_holds_no_trace_says_so(content, wanted, tmp_path):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(ValueError) as error:
        attnviz.load_trace(tmp_path / "x")
    message = str(error.value)
    assert message == wanted or message.startswith(f"the file x holds no valid trace: {wanted}")
    assert len(message) < 400 and "\n" not in message


@pytest.mark.parametrize("dtype, size", [("BF16", 2), ("I64", 8), ("F8_E4M3", 1), ("BOOL", 1)])
def test_weights_of_other_numbers(dtype, size):
    """A header that names another type, over as many bytes: refused, or read as the numbers that they are."""
    listed = {
        "encoder.0": {"dtype": dtype, "shape": [1, 2, 2], "data_offsets": [0, 4 * size]},
        "__metadata__": {
            "trace": json.dumps(TRACES[0].to_dict(weights=False) | {"maps": [{"kind": "encoder", "layer": 0}]})
        },
    }
    header = json.dumps(listed).encode()
    with pytest.raises(ValueError, match="^the file x holds no valid trace: "):
        files.unpack(len(header).to_bytes(8, "little") + header + bytes(4 * size), "x")


def test_no_file(tmp_path):
    with pytest.raises(ValueError, match="^cannot read .*nothing: No such file or directory$"):
        attnviz.load_trace(tmp_path / "nothing")


def test_on_the_command_line(root, tmp_path, capsys):
    command = ["trace", "The black dog runs.", "--model", "en-fr/transformer", "--root", str(root), "--save"]
    assert main([*command, str(tmp_path / "t.safetensors")]) == 0 and capsys.readouterr().out == ""
    loaded = attnviz.load_trace(tmp_path / "t.safetensors")
    assert loaded == attnviz.load("en-fr/transformer", root).trace("The black dog runs.") and isinstance(loaded, Trace)
    assert (
        main([*command, str(tmp_path / "t.npz")]) == 2
        and "path must end in .safetensors or .json" in capsys.readouterr().err
    )


@pytest.mark.parametrize("ending", ["safetensors", "json"])
def test_what_is_saved_can_be_read_however_large(ending, tmp_path):
    """The limits of the page are not those of a file of one's own."""
    words = [f"w{place}" for place in range(files.TOKENS + 1)]
    weights = np.zeros((1, 1, len(words)), np.float32)
    weights[0, 0, 3] = 1
    trace = attnviz.from_arrays([weights], words, ["x"])
    attnviz.save_trace(trace, tmp_path / f"long.{ending}")
    assert attnviz.load_trace(tmp_path / f"long.{ending}") == trace
    with pytest.raises(ValueError, match="source has 4,097 entries, and at most 4,096 are read"):
        uploads.unpack((tmp_path / f"long.{ending}").read_bytes(), "long")


def test_a_trace_too_large_to_be_read_again_is_not_saved(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LARGEST", 500)
    with pytest.raises(
        ValueError, match="^the trace would take .* bytes, and at most 500 are read again; save it as .s"
    ):
        attnviz.save_trace(TRACES[1], tmp_path / "a.json")
    assert not (tmp_path / "a.json").exists()
