"""The folder of a Hugging Face model. `folder` finds it on this machine or downloads it.

The rest checks its files before the transformers library reads any of them: each file, and whether the weights can be
those of the model that the config describes.
"""

import contextlib
import json
import os.path
import re
import shutil
import threading
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_module_registration_hook

from attnviz import storage
from attnviz.arguments import shown
from attnviz.data import tokenizer_rules
from attnviz.models import weights_header
from attnviz.models.huggingface import FileError, ModelError, one_line, read
from attnviz.models.names import ENDINGS, HUGGING_FACE
from attnviz.storage import folders

JSON, VOCABULARY = 64 * 2**20, 256 * 2**20  # bytes of a file
READ_TEXT = ("AutoModelForMaskedLM", "AutoModelForSeq2SeqLM")  # some of these read other things too
READ_OTHER = {
    "speech": ("AutoModelForSpeechSeq2Seq", "AutoModelForCTC", "AutoModelForAudioClassification"),
    "images": (
        "AutoModelForImageClassification",
        "AutoModelForZeroShotImageClassification",
        "AutoModelForMaskGeneration",
        "AutoModelForObjectDetection",
        "AutoModelForSemanticSegmentation",
        "AutoModelForDepthEstimation",
        "AutoModelForVideoClassification",
    ),
    "series of numbers": ("AutoModelForTimeSeriesPrediction",),
}
QUERIES = {  # a name in a config -> what its attention goes out from, in place of the tokens of a text
    "num_latents": "latent vectors that read the text",
    "patcher_config": "patches of a text, whose number depends on the text",
    "canvas_length": "places that it fills, all at once",
}
ELSEWHERE = (
    "run it with the transformers library and output_attentions=True, and give its weights to attnviz.from_arrays, or "
    "the output of generate to attnviz.from_generate"
)
TOKENIZER_FILES = ("*.json", "*.txt", "*.model", "*.spm", "*.bpe", "*.tiktoken", "*.vocab")
COMPILED = ("*.model", "*.spm", "*.bpe", "*.tiktoken")
LAYERS, COUNT, WHOLE = 512, 4096, 2**31  # of the numbers in a config
_NOT_SIZES = re.compile(r"_ids?$|theta|seed|^max_|_max_|length$|^n_positions$|^n_ctx$|token|version|timestamp")
_LAYERS = re.compile(r"layers?$|^depths?$")
_COUNTS = re.compile(r"heads?$|experts|blocks?$|groups?$|buckets?$|labels$|types$|window|chunk|kernel|stride|hash")
_IS_A_LENGTH = re.compile(r"length$|^max_")  # of a text: nothing is made for it
EXTRA = 1_000  # pieces that a tokenizer may always add to its vocabulary
_NAMES_A_FILE = re.compile(r"_files?$|^auto_map$|^name_or_path$|^chat_template")
SPARE = 2**24  # numbers that a model may have beside those that its files hold, of which each may be PACKED in one
PACKED = 16
PARTS, PARTS_A_TENSOR = 2_000, 20  # modules that are built: of any model, and for each tensor of its files


def check(folder: Path) -> weights_header.Shapes:
    """Check all files and the numbers of config.json -> the shapes of the weights. Raises FileError."""
    check_files(folder)
    if (generation := folder / "generation_config.json").exists():
        _json(generation)
    return check_config(folder)


def check_files(folder: Path) -> None:
    """Check that every file is an ordinary one and not too large. Raises FileError."""
    for path in sorted(folder.iterdir()):
        if path.is_dir() or not any(fnmatch(path.name, pattern) for pattern in (*TOKENIZER_FILES, "*.safetensors")):
            continue
        try:
            size = storage.check_file(path)
        except OSError as error:
            raise FileError(f"its {path.name} cannot be read: {error.strerror}") from None
        most = JSON if path.suffix == ".json" else VOCABULARY
        if path.suffix != ".safetensors" and size > most:
            raise FileError(f"its {path.name} is larger than {most // 2**20} MiB, and so is not read")


def check_config(folder: Path) -> weights_header.Shapes:
    """Check that the numbers of config.json can belong to the weights -> the shapes of the weights. Raises
    FileError."""
    content = _json(folder / "config.json")
    try:
        shapes = weights_header.in_folder(folder)
    except (weights_header.HeaderError, OSError) as error:
        raise FileError(f"the model cannot be read: {getattr(error, 'strerror', None) or error}") from None
    _check_numbers(content, len(shapes), 8)
    return shapes


def rows(shapes: weights_header.Shapes) -> int:
    """The most rows that the embedding can have: an axis of one of the weights."""
    return max((axis for shape in shapes.values() for axis in shape), default=0)


@contextlib.contextmanager
def tokenizer_files(folder: Path, rows: int) -> Iterator[Path]:
    """A folder with safe copies of the tokenizer's files. Raises FileError, TokenizerError.

    Its tokenizer.json is checked and has no padding; its settings have no paths to other files. rows : the most rows of
    the embedding; every piece id is below it.
    """
    with folders.TemporaryFolder() as copy:
        for path in sorted(folder.iterdir()):
            if path.is_file() and any(fnmatch(path.name, pattern) for pattern in TOKENIZER_FILES):
                _copy(path, Path(copy) / path.name, rows)
        yield Path(copy)


def _copy(path: Path, to: Path, rows: int) -> None:
    if path.name.endswith(".index.json") or path.name == "generation_config.json":
        return  # of the model
    if path.name == "tokenizer.json":
        content = _json(path, "tokenizer")
        if "model" in content:  # else it is no tokenizer, and the library says what is missing
            content, _ = tokenizer_rules.check(content, rows)
        to.write_text(json.dumps(content), encoding="utf-8")
    elif path.name == "tokenizer_config.json":
        settings = _settings(_json(path))
        _check_counts(path.name, settings, rows)
        numbered = settings.get("added_tokens_decoder", {})
        tokenizer_rules.check_numbers(map(_whole, numbered if isinstance(numbered, dict) else ()), rows)
        to.write_text(json.dumps(settings), encoding="utf-8")
    else:
        _check_vocabulary(path, rows)
        shutil.copyfile(path, to)


def _whole(text: str) -> int | str:
    return int(text) if text.isdecimal() and len(text) < 20 else text


def _check_vocabulary(path: Path, rows: int) -> None:
    """FileError for a list of pieces with too many entries, which take far more memory than in the file. TokenizerError
    for a piece id without a row in the embedding."""
    if path.suffix == ".json":
        content = _json(path)
        entries = len(content)
        if content and all(type(value) is int for value in content.values()):  # pieces and their numbers
            tokenizer_rules.check_numbers(content.values(), rows)
        if path.name != "config.json":  # it is the model's: its numbers have been checked, and some name no piece
            _check_counts(path.name, content, rows)
    elif path.suffix in (".txt", ".vocab", ".bpe", ".tiktoken"):
        with path.open("rb") as file:
            entries = sum(block.count(b"\n") for block in iter(lambda: file.read(2**20), b""))
    else:
        return
    if entries > tokenizer_rules.PIECES:
        raise FileError(f"its {path.name} has {entries:,} entries, and at most {tokenizer_rules.PIECES:,} are read")


def _check_counts(name: str, settings: dict, rows: int) -> None:
    """FileError for more pieces of a kind, such as `extra_ids`, than the embedding has rows, because the library
    creates them all. name : of the file."""
    for key, value in settings.items():
        if isinstance(value, int) and value > max(rows, EXTRA) and not _IS_A_LENGTH.search(key):
            raise FileError(f"its {name} says {key[:80]} = {shown(value)}, and its embedding has at most {rows:,} rows")


def _settings(content: dict) -> dict:
    """The settings of a tokenizer without paths; a limit of length below 1 is left out."""
    safe = {key: value for key, value in content.items() if not _NAMES_A_FILE.search(key)}
    longest = safe.get("model_max_length")
    if isinstance(longest, bool) or not isinstance(longest, int | float) or not longest >= 1:
        safe.pop("model_max_length", None)
    return safe


def _json(path: Path, name: str = "") -> dict:
    name = name or path.name
    try:
        content = storage.parse_json(storage.read(path, JSON))
    except OSError as error:
        raise FileError(f"its {name} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise FileError(f"its {name} cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise FileError(f"its {name} cannot be read: it must be a JSON object; got {type(content).__name__}")
    return content


def _check_numbers(values: Mapping[str, object] | list, tensors: int, depth: int, key: str = "") -> None:
    """FileError for a number that is too large for a model with this number of tensors."""
    if depth == 0:
        raise FileError("its config.json is nested too deeply")
    named = values.items() if isinstance(values, Mapping) else ((key, value) for value in values)
    for name, value in named:
        if isinstance(value, Mapping | list):
            _check_numbers(value, tensors, depth - 1, name)
        elif isinstance(value, int) and not isinstance(value, bool):
            most = _most(name, tensors)
            if abs(value) > most:
                shown = f"{value:,}" if abs(value) < 10**15 else "a number of more than 15 digits"
                raise FileError(
                    f"config.json says {name[:80]} = {shown}, and a model with its weights has at most {most:,}"
                )


def _most(name: str, tensors: int) -> int:
    if _NOT_SIZES.search(name):
        return 2**63
    if _LAYERS.search(name):
        return min(LAYERS, tensors)
    if name in ("sliding_window", "max_window_layers") or name.endswith("chunk_size"):  # nothing is made for them
        return 2**20
    return COUNT if _COUNTS.search(name) else WHOLE


def check_size(name: str, library: ModuleType, config: Any, kinds: list[str], shapes: weights_header.Shapes) -> None:
    """ModelError for a config that describes far more weights than the files hold; building it would fill the memory.

    name : of the model. kinds : the classes of the library that may load it.
    """
    classes = [kind for kind in (*kinds, "AutoModel") if type(config) in getattr(library, kind)._model_mapping]
    if not classes:
        return

    def described() -> int:
        with torch.device("meta"), _parts_limited(PARTS + PARTS_A_TENSOR * len(shapes)):  # shapes without numbers
            model = getattr(library, classes[0]).from_config(config)
        return sum(tensor.numel() for tensor in (*model.parameters(), *model.buffers()))

    promised, held = read(name, "the model", described), weights_header.numbers(shapes)
    if promised > PACKED * held + SPARE:
        raise ModelError(
            f"{name}: its config.json describes a model of {promised:,} numbers and its files hold {held:,}; they do "
            "not belong together"
        )


@contextlib.contextmanager
def _parts_limited(most: int) -> Iterator[None]:
    """In this block, building more than `most` modules raises ValueError, because any number in a config may demand
    endless modules."""
    ours, built = threading.get_ident(), 0

    def count(module: nn.Module, name: str, part: nn.Module | None) -> None:
        nonlocal built
        built += threading.get_ident() == ours
        if built > most:
            raise ValueError(f"its config.json describes more than {most:,} parts, and its files hold far fewer")

    hook = register_module_module_registration_hook(count)
    try:
        yield
    finally:
        hook.remove()


FILES = tuple(f"*.{ending}" for ending in ENDINGS)  # what is downloaded


def folder(name: str) -> Path:
    """The folder of a model, downloaded if necessary. ModelError when a file that is needed is missing."""
    path = Path(os.path.expanduser(name))
    if not os.path.isdir(path):  # Path.is_dir() raises for a name that no file can have
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

        try:
            path = Path(snapshot_download(name, allow_patterns=list(FILES), ignore_patterns=["*/*"]))
        except HFValidationError:
            raise ModelError(
                f"{HUGGING_FACE}{name:.80}: there is no such folder, and this cannot be the name of a model on the "
                "Hugging Face hub"
            ) from None
        except LocalEntryNotFoundError:
            raise ModelError(
                f"{HUGGING_FACE}{name:.80}: there is no such folder, and the Hugging Face hub cannot be reached; check "
                "the path, or the connection (a model that was downloaded once needs none)"
            ) from None
        except (OSError, ValueError) as error:
            raise ModelError(
                f"{HUGGING_FACE}{name:.80}: there is no such folder, and the Hugging Face hub has no such model: "
                f"{one_line(error)}"
            ) from None
    if not (path / "config.json").is_file():
        raise ModelError(
            f"{HUGGING_FACE}{name}: config.json is missing; a folder must be as save_pretrained() writes it"
        )
    if not any(path.glob("*.safetensors")):
        raise ModelError(
            f"{HUGGING_FACE}{name}: weights are read from safetensors only, and this model has none; save_pretrained() "
            "of the transformers library writes them"
        )
    if (path / "adapter_config.json").is_file():
        raise ModelError(
            f"{HUGGING_FACE}{name}: an adapter cannot be shown alone; merge it into its model and save that"
        )
    return path


def check_reads_text(name: str, library: ModuleType, config: Any) -> None:
    """ModelError for a model that reads speech or images, by the classes of the library that take its config."""
    if queries := next((words for key, words in QUERIES.items() if hasattr(config, key)), ""):
        raise ModelError(f"{name} cannot be shown: its attention goes out from {queries}, and not from tokens")
    if config.model_type.endswith("_assistant"):
        raise ModelError(
            f"{name} cannot be shown alone: it reads the keys and values of the larger model that it drafts for"
        )
    if any(type(config) in getattr(library, kind)._model_mapping for kind in READ_TEXT):
        return
    others, texts = dict(READ_OTHER), library.AutoModelForSeq2SeqLM._model_mapping
    if config.is_encoder_decoder and not any(type(part) in texts for part in vars(config).values()):  # only of images
        others["images"] = (*others["images"], "AutoModelForImageTextToText")
    for read_instead, kinds in others.items():
        if any(type(config) in getattr(library, kind)._model_mapping for kind in kinds):
            raise ModelError(f"{name}: a model of type {config.model_type} reads {read_instead}, not text; {ELSEWHERE}")
