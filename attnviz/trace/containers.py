"""Containers of arrays, read without importing their libraries: tensors, files, caches of hooks.

Nothing here runs code from a file: `.npz` is read without pickle, and a pickle is refused.
"""

import io
import json
import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from tokenize import TokenError

import numpy as np

from attnviz import arguments, storage
from attnviz.trace import files
from attnviz.trace.token import KINDS

FILES = (".npz", ".npy", ".safetensors", ".json")
NUMBERS = 2**28  # of all arrays in a file, unpacked
_PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".bin", ".ckpt", ".joblib")
_KIND_IN_NAME = {
    "cross": re.compile(r"cross|encdec|enc_dec|encoder_attn|encoder_decoder", re.I),
    "decoder": re.compile(r"decoder", re.I),
    "encoder": re.compile(r"encoder", re.I),
}
# beside scores, values and more, as TransformerLens keeps them
_PATTERN = re.compile(r"hook_pattern$|attn_weights$|attention_weights$")
_HOOK = re.compile(r"^blocks\.\d+\.(.*\.)?hook_\w+$")
_DEEP = 8  # names in names
_TEXTS = ("tokens", "target", "special", "kind", "padding", "word_ids")
_MASK = "attention_mask"
_OUTPUT = "sequences", "logits", "last_hidden_state", "loss"  # fields of an output of the transformers library
_FLOAT8 = {"F8_E4M3": (3, 7), "F8_E5M2": (2, 15)}  # bits of the fraction, bias of the exponent


def is_named(weights) -> bool:
    """Is it a mapping from names to arrays, or an equivalent (a TransformerLens cache, an NpzFile)? A pandas table is
    an array."""
    reads_as_one = hasattr(weights, "keys") and hasattr(weights, "__getitem__") and not hasattr(weights, "__array__")
    return isinstance(weights, Mapping) or reads_as_one


def numbers(value) -> np.ndarray:
    """`array` of a tensor. ValueError for anything else."""
    if (result := array(value)) is None:
        raise ValueError(f"a tensor is needed here; got {arguments.shown(value)}")
    return result


def array(value) -> np.ndarray | None:
    """A tensor of any library as a NumPy array; None for anything else. bfloat16 and float8 become float32."""
    if isinstance(value, np.ndarray):
        return _wide(value)
    if hasattr(value, "detach"):  # torch
        if getattr(value, "is_meta", False):
            raise ValueError("a tensor on the device meta has no numbers; give one that was computed")
        tensor = value.detach().cpu()
        tensor = tensor.to_dense() if getattr(tensor, "is_sparse", False) else tensor
        tensor = tensor.dequantize() if getattr(tensor, "is_quantized", False) else tensor
        return np.asarray(tensor.double() if str(tensor.dtype) == "torch.float64" else tensor.float())
    if hasattr(value, "nnz") and callable(getattr(value, "toarray", None)):  # sparse, of SciPy
        return np.asarray(value.toarray())
    try:
        if callable(getattr(value, "numpy", None)):  # TensorFlow, Keras
            return _wide(np.asarray(value.numpy()))
        if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):  # JAX, MLX
            return _wide(np.asarray(value))
    except (TypeError, ValueError, RuntimeError, AttributeError) as error:  # NotImplementedError is a RuntimeError
        raise ValueError(
            f"an array of type {type(value).__name__} has no numbers: it is symbolic, was deleted, or is traced by "
            "jit, grad or tf.function; give one that was computed, outside of them"
        ) from error
    return _wide(np.from_dlpack(value)) if hasattr(value, "__dlpack__") else None


def dtype(value) -> str:
    """The name of the number type of a tensor, such as `bfloat16`; "" for lists."""
    return str(getattr(value, "dtype", "")).removeprefix("torch.").removeprefix("<dtype: '").removesuffix("'>")


def _wide(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float32) if values.dtype.kind == "V" else values  # bfloat16 and float8 of ml_dtypes


def layers_by_name(names: Mapping, kind: str | None) -> dict:
    """Arrays by name -> kind -> layers, in the order of the numbers in their names; None for a missing number.

    `encoder`, `decoder` and `cross` are kinds. In other names a kind may be a part, as in `decoder_attentions.0`, and a
    number is the layer, as in `blocks.0.attn.hook_pattern`. `kind` is that of names without one.
    Names in names are joined, as Flax keeps them. A cache of hooks must hold the weights.
    """
    names = _flat(names)
    keys = {str(key): key for key in names.keys()}  # noqa: SIM118 (ActivationCache and the like)
    if fields := sorted(key for key in keys if key.endswith("attentions")):
        if any(key in keys for key in _OUTPUT) and not any(re.search(r"\d", key) for key in fields):
            raise ValueError(_of_output(keys, [field for field in fields if names[field]]))
    if keys and set(keys) <= set(KINDS):
        return {name: names[key] for name, key in keys.items()}
    chosen = [key for key in keys if _PATTERN.search(key)] or keys
    if chosen is keys and any(_HOOK.search(key) for key in keys):
        raise ValueError(
            f"no name ends with hook_pattern, which holds the weights; got {arguments.listed([*keys][:5])}; run the "
            "model again and keep it in the cache"
        )
    result: dict = {}
    for key in chosen:
        own = next((kind for kind, words in _KIND_IN_NAME.items() if words.search(key)), kind)
        numbers = re.findall(r"\d+", key)
        layer = int(numbers[0]) if numbers else None
        if layer is not None and layer >= files.LAYERS:
            raise ValueError(f"layers are counted from 0 to {files.LAYERS - 1}; got {key!r:.80}")
        if isinstance(inner := names[keys[key]], Mapping):
            raise ValueError(f"{key!r:.80} has names in names more than {_DEEP} times; give the dict of the layers")
        if layer in result.setdefault(own, {}):
            raise ValueError(f"each name must hold one layer; got {key!r:.80} beside another of layer {layer}")
        result[own][layer] = inner[0] if _sown(inner) else inner
    return {kind: _in_order(layers) for kind, layers in result.items()}


def _flat(names: Mapping) -> Mapping:
    """Names in names as `outer/inner`, up to _DEEP times."""
    for _ in range(_DEEP):
        parts = {key: names[key] for key in names.keys()}  # noqa: SIM118
        if not any(isinstance(part, Mapping) for part in parts.values()):
            break
        names = {}
        for key, part in parts.items():
            names |= (
                {f"{key}/{name}": inner for name, inner in part.items()} if isinstance(part, Mapping) else {key: part}
            )
    return names


def _sown(part) -> bool:
    """Is it a list of one array, as Flax keeps what a module sows?"""
    return isinstance(part, list | tuple) and len(part) == 1 and len(getattr(part[0], "shape", ())) > 1


def _of_output(keys: Mapping, fields: list[str]) -> str:
    """What to do with the whole output of a model of the transformers library."""
    if "sequences" in keys:
        return "this is what generate returns; use attnviz.from_generate(output, tokens)"
    kinds = " or ".join(f"output.{field}" for field in fields)
    return f"this is the whole output of a model; give its attention alone, {kinds or 'which it does not hold'}"


def _in_order(layers: dict):
    if set(layers) == {None}:
        return layers[None]
    if None in layers:
        raise ValueError("the names of weights must all have the number of a layer, or be kinds; got both")
    first = min(layers) if min(layers) <= 1 else 0
    return [layers.get(number) for number in range(first, max(layers) + 1)]


def read_file(path: str | Path) -> dict:
    """The arrays in a file by name, and its tokens if it has any. ValueError if it cannot be read."""
    path = arguments.path("weights", path)
    if path.suffix.lower() in _PICKLES:
        raise ValueError(
            f"{path.name} may be a pickle, which runs code when it is read, so it is not opened; save the weights as "
            ".npz (np.savez) or .safetensors"
        )
    return unpack(files.read(path), path.name)


def unpack(content: bytes, name: str, most: int = NUMBERS) -> dict:
    """`read_file` for the content of a file. name : for errors. most : limit on the numbers in all arrays."""
    try:
        if content[:2] == b"PK":
            return _npz(content, most)
        if content[:6] == b"\x93NUMPY":
            return {"weights": _npy(io.BytesIO(content))}
        if content[4:9] == b"\0\0\0\0{":
            return _safetensors(content)
        if content[:1] == b"\x80":
            raise ValueError("it is a pickle, which runs code when it is read; save it as .npz or .safetensors")
        values = storage.parse_json(content)
        return values if isinstance(values, dict) else {"weights": values}
    except ValueError as error:
        raise ValueError(f"the file {name} holds no weights that can be read: {error}") from None


def _npz(content: bytes, most: int) -> dict:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            if any(member.filename.endswith(".pkl") for member in members):  # as torch.save writes
                raise ValueError("it holds a pickle, which runs code when it is read; save it as .npz or .safetensors")
            if len(members) > files.LAYERS or sum(member.file_size for member in members) > 8 * most:
                raise ValueError("it unpacks to more than is read")
            arrays, room = {}, 8 * most
            for member in members:
                with archive.open(member) as file:  # a size that a header claims may be false
                    data = file.read(room + 1)
                room -= len(data)
                if room < 0:
                    raise ValueError("it unpacks to more than is read")
                arrays[member.filename.removesuffix(".npy")] = _npy(io.BytesIO(data))
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError):
        raise ValueError("its zip archive is damaged, encrypted, or packed in a way that is not read") from None
    return {key: _words(value) if value.dtype.kind in "SU" else value for key, value in arrays.items()}


def _words(values: np.ndarray) -> list:
    try:
        return (np.char.decode(values, "utf-8") if values.dtype.kind == "S" else values).tolist()
    except UnicodeError:
        raise ValueError("its texts are not UTF-8") from None


def _npy(file: io.BytesIO) -> np.ndarray:
    """One array. NumPy limits the text of its header; the promised data must be in the file."""
    try:
        version = np.lib.format.read_magic(file)
        reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, kind = reader(file)
        if kind.hasobject:
            raise ValueError("an array of objects is a pickle, which runs code when it is read")
        if int(np.prod(shape, dtype=object)) * kind.itemsize > len(file.getbuffer()):
            raise ValueError("an array in it is cut short")
        file.seek(0)
        return np.load(file, allow_pickle=False)
    except (SyntaxError, TokenError, TypeError, KeyError, EOFError, OverflowError, MemoryError, UnicodeError):
        raise ValueError("an array in it is damaged") from None


def _safetensors(content: bytes) -> dict:
    from safetensors import SafetensorError, deserialize

    try:
        tensors = dict(deserialize(content))
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    except (SafetensorError, ValueError, RecursionError):
        raise ValueError("its safetensors data are damaged or incomplete") from None
    written = header.get("__metadata__") or {}
    texts = {name: _listed(written[name]) for name in _TEXTS[:3] if name in written}
    return {name: _tensor(entry) for name, entry in tensors.items()} | texts


def _listed(text: str) -> object:
    """Texts as JSON, or with spaces between them."""
    try:
        return storage.parse_json(text)
    except ValueError:
        return text.split()


def _tensor(entry: Mapping) -> np.ndarray:
    kind, data = entry["dtype"], entry["data"]
    if kind == "BF16":
        values = (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
    elif kind in _FLOAT8:
        values = _float8(*_FLOAT8[kind])[np.frombuffer(data, "u1")]
    else:
        named = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "U8": "u1", "I64": "<i8", "I32": "<i4", "BOOL": "?"}
        if kind not in named:
            raise ValueError(f"its numbers are {kind}, which is not read; save them as float32")
        values = np.frombuffer(data, named[kind])
    return values.reshape(entry["shape"])


def _float8(fraction: int, bias: int) -> np.ndarray:
    """The value of each byte; Micikevicius et al. 2022, table 1. Infinity and NaN are NaN."""
    codes = np.arange(256)
    exponent, part = (codes & 127) >> fraction, (codes & ((1 << fraction) - 1)) / (1 << fraction)
    values = np.where(exponent > 0, (1 + part) * 2.0 ** (exponent - bias), part * 2.0 ** (1 - bias))
    most = codes & 127 if fraction == 3 else exponent
    values[most == (127 if fraction == 3 else 31)] = np.nan
    return np.where(codes > 127, -values, values).astype(np.float32)


def texts_of(named: dict) -> tuple[dict, dict]:
    """The arrays of a file, and its other entries (`tokens`, `target`, …). A mask names its padding."""
    texts = {name: named[name] for name in _TEXTS if name in named}
    if _MASK in named:
        texts.setdefault("padding", named[_MASK])
    arrays = {name: value for name, value in named.items() if name not in texts and name != _MASK}
    if set(arrays) == {"weights"}:
        arrays = arrays["weights"]
    return arrays, texts
