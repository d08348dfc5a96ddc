"""Models for the transformers library, from a folder or from the Hugging Face hub, which everybody can fill.

Nothing that comes with a model is run: its own code is never loaded, and its weights are read from safetensors only.
"""

import contextlib
import os.path
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import nn

from attnviz.models.huggingface.models import LONGEST, Reader, Writer

REQUIREMENT = "transformers>=5.23,<6"
FILES = ("*.json", "*.safetensors", "*.txt", "*.model", "*.spm")  # of the hub's: no code, no pickles
VOCABULARIES = ("tokenizer.json", "vocab.*", "*.model", "*.spm", "*.bpe.*")
SAFE = {"trust_remote_code": False, "local_files_only": True}  # wherever the transformers library reads a folder
READS = {"encoder": "attentions"}
WRITES = {"cross": "cross_attentions", "encoder": "encoder_attentions", "decoder": "decoder_attentions"}
HEADS = {
    "ForMaskedLM": "AutoModelForMaskedLM",
    "ForCausalLM": "AutoModelForCausalLM",
    "LMHeadModel": "AutoModelForCausalLM",
}
PROBE = 4  # tokens of the text that shows how a model attends


class ModelError(ValueError):
    """A model that cannot be shown; the message says why and, where there is a way, what to do."""


def load(name: str) -> Reader | Writer:
    """The model in the folder `name`, else that of this name on the hub (once fetched it is read without a network).

    Any that reads text and returns its attention: encoders, decoders, and encoders with decoders. Raises ModelError.
    """
    if not name.strip():
        raise ModelError("hf: must be followed by the folder of a model, or by its name on the Hugging Face hub")
    library, known = _library(), f"hf:{name}"
    folder = _folder(name)
    with _quiet(library):
        config = _read(known, "its config.json", lambda: library.AutoConfig.from_pretrained(folder, **SAFE))
        tokenizer = _tokenizer(known, library, folder)
        model = _model(known, library, folder, config)
    if len(tokenizer) > (
        most := _read(known, "its table of pieces", lambda: model.get_input_embeddings().weight.shape[0])
    ):
        raise ModelError(
            f"{known}: the model knows {most} pieces and the tokenizer {len(tokenizer)}; they do not belong together"
        )
    cls, kinds = (Writer, WRITES) if config.is_encoder_decoder else (Reader, READS)
    return _probed(cls(known, config.model_type, model, tokenizer, kinds, _limit(model, tokenizer)))


def _library() -> ModuleType:
    """transformers, imported when it is needed: it takes seconds."""
    try:
        import transformers
    except ImportError:
        raise ModelError(
            f'models of the Hugging Face hub need the transformers library: pip install "{REQUIREMENT}"'
        ) from None
    if not (5, 23) <= tuple(map(int, transformers.__version__.split(".")[:2])) < (6,):
        raise ModelError(
            f"models of the Hugging Face hub need another version of the transformers library than "
            f'{transformers.__version__}: pip install "{REQUIREMENT}"'
        )
    return transformers


def _folder(name: str) -> Path:
    """The folder of a model, fetched if need be, once it holds what can be read here."""
    folder = Path(os.path.expanduser(name))
    if not os.path.isdir(folder):  # False, where Path.is_dir() raises, for what no file can be called
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

        try:
            folder = Path(snapshot_download(name, allow_patterns=FILES, ignore_patterns=["*/*"]))
        except HFValidationError:
            raise ModelError(
                f"hf:{name}: no folder of that name, and no name that a model on the Hugging Face hub could have"
            ) from None
        except LocalEntryNotFoundError:
            raise ModelError(
                f"hf:{name}: no folder of that name, and the Hugging Face hub cannot be reached; check the path, or the "
                "connection (a model that was fetched once needs none)"
            ) from None
        except (OSError, ValueError) as error:
            raise ModelError(
                f"hf:{name}: no folder of that name, and none from the Hugging Face hub: {_line(error)}"
            ) from None
    if not (folder / "config.json").is_file():
        raise ModelError(f"hf:{name}: config.json is missing; a folder must be as save_pretrained() writes it")
    if not any(folder.glob("*.safetensors")):
        raise ModelError(
            f"hf:{name}: weights are read from safetensors only, and there are none; "
            "save_pretrained() of the transformers library writes them"
        )
    if (folder / "adapter_config.json").is_file():
        raise ModelError(f"hf:{name}: an adapter is not shown by itself; merge it into its model and save that")
    return folder


@contextlib.contextmanager
def _quiet(library: ModuleType) -> Iterator[None]:
    """Without the reports and progress bars of the library, for it has one line only to say here: its error."""
    log = library.utils.logging
    before, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity(log.CRITICAL)
    log.disable_progress_bar()
    try:
        yield
    finally:
        log.set_verbosity(before)
        if bars:
            log.enable_progress_bar()


def _read(known: str, what: str, reader: Callable[[], Any]) -> Any:
    try:
        return reader()
    except Exception as error:  # the library and those below it raise errors of many kinds, and plain Exception
        if "trust_remote_code" in str(error):
            raise ModelError(
                f"{known}: it needs code of its own, which is never run here; only models that the transformers "
                "library knows can be shown"
            ) from None
        if "ignore_mismatched_sizes" in str(error):
            raise ModelError(
                f"{known}: its config.json and its weights disagree on the sizes of the model; they do not belong together"
            ) from None
        if unknown := re.search(r"model type `([^`]+)`", str(error)):
            raise ModelError(
                f"{known}: the transformers library here knows no models of type {unknown[1]}; a newer one may"
            ) from None
        raise ModelError(f"{known}: {what} cannot be read: {_line(error)}") from None


def _tokenizer(known: str, library: ModuleType, folder: Path) -> Any:
    missing = ModelError(
        f"{known}: its tokenizer is missing; save it beside the model: tokenizer.save_pretrained(folder)"
    )
    if not any(any(folder.glob(pattern)) for pattern in VOCABULARIES):
        raise missing
    tokenizer = _read(known, "its tokenizer", lambda: library.AutoTokenizer.from_pretrained(folder, **SAFE))
    names = {"tokenizer.json", *tokenizer.vocab_files_names.values()} - {"tokenizer_config.json"}
    if not any((folder / name).is_file() for name in names):  # the library has made an empty one then
        raise missing
    return tokenizer


def _model(known: str, library: ModuleType, folder: Path, config: Any) -> nn.Module:
    """The model in evaluation mode, fp32, every weight that attention depends on from its files; with its head for the next
    or the masked token, when it was saved with a whole one."""
    config._attn_implementation = "eager"  # a config.json may name another, and has the last word if it is not told so
    headed = next((kind for end, kind in HEADS.items() if f"{end}'" in str(config.architectures)), None)
    kinds = (
        ["AutoModelForSeq2SeqLM"] if config.is_encoder_decoder else [headed, "AutoModel"] if headed else ["AutoModel"]
    )
    config.use_cache = False  # of what a decoder computed: each text is read once
    for kind in kinds:
        if kind != kinds[-1] and type(config) not in getattr(library, kind)._model_mapping:
            continue  # a family that calls another head so
        model, report = _read(
            known,
            "the model",
            lambda: getattr(library, kind).from_pretrained(
                folder, config=config, use_safetensors=True, dtype=torch.float32, output_loading_info=True, **SAFE
            ),
        )
        _whole(known, model, report["unexpected_keys"])
        missing = sorted(key for key in report["missing_keys"] if "pooler" not in key)  # behind the last attention
        if not missing:
            return model.eval().requires_grad_(False)
    raise ModelError(
        f"{known}: its files lack {len(missing)} weights that it needs, {missing[0]} among them; what it "
        "attended to would be chance"
    )


def _whole(known: str, model: nn.Module, left: Iterable[str]) -> None:
    """Raise ModelError if what was left unread in the files is of further layers of the same make."""
    ours = {re.sub(r"\d+", "#", name) for name in model.state_dict()}
    if more := sorted(name for name in left if re.search(r"\d", name) and re.sub(r"\d+", "#", name) in ours):
        raise ModelError(
            f"{known}: its files hold more layers than its config.json says, {more[0]} among them; they do not belong together"
        )


def _limit(model: nn.Module, tokenizer: Any) -> int:
    """Tokens that a model can be shown: its own limit, as its config, its positions and its tokenizer have it, or ours."""
    tables = [
        module
        for name, module in model.named_modules()
        if isinstance(module, nn.Embedding) and ("position" in name or "wpe" in name)
    ]
    kept = [
        getattr(table, "offset", 0) + (0 if table.padding_idx is None else table.padding_idx + 1) for table in tables
    ]
    sizes = [table.num_embeddings - reserved for table, reserved in zip(tables, kept)]
    claimed = (
        *(getattr(model.config, name, None) for name in ("max_position_embeddings", "max_seq_len")),
        tokenizer.model_max_length,
        LONGEST,
    )
    return int(min(size for size in (*sizes, *claimed) if size and size > 0))


def _probed(found: Reader | Writer) -> Reader | Writer:
    """The model, once it has shown on a few tokens that all its attention can be read, and whether it looks ahead."""
    if isinstance(found, Writer) and found.start is None:
        raise ModelError(
            f"{found.name}: its config does not say which token its decoder starts with (decoder_start_token_id)"
        )
    ids = tuple(range(PROBE))
    more = {"decoder_input_ids": torch.tensor([ids])} if isinstance(found, Writer) else {}
    output = _read(found.name, "attention over a text", lambda: found.run(ids, output_hidden_states=True, **more))
    if not hasattr(output, "get"):
        raise ModelError(f"{found.name} cannot be shown: it does not return its attention by name")
    for field in found.kinds.values():
        stack = "decoder_" if field == "cross_attentions" else field.removesuffix("attentions")
        layers = len(output.get(f"{stack}hidden_states") or ()) - 1
        read = sum(weights is not None for weights in output.get(field) or ())
        if not read or read != layers:
            raise ModelError(
                f"{found.name}: {read} of its {layers} layers return {field.replace('_', ' ')}; only a model in which "
                "all do can be shown"
            )
    try:
        maps = found.maps(output)
    except ValueError as error:
        raise ModelError(f"{found.name} cannot be shown: {error}") from None
    except (AttributeError, IndexError, KeyError, TypeError):  # what should be a layer is something else
        raise ModelError(
            f"{found.name} cannot be shown: what it returns as attention is not one array a layer"
        ) from None
    if wrong := next((one for one in maps if one.weights.shape[1:] != (PROBE, PROBE)), None):
        raise ModelError(f"{found.name} cannot be shown: {wrong.name} is {wrong.weights.shape[1:]} for {PROBE} tokens")
    if isinstance(found, Reader) and not any(np.triu(one.weights, 1).any() for one in maps):  # it does not look ahead
        found = replace(found, kinds={"decoder": "attentions"})
    return replace(
        found,
        counts={kind: tuple(weights.shape[1] for weights in output[field]) for kind, field in found.kinds.items()},
    )


def _line(error: Exception) -> str:
    """An error in one line of at most 200 characters."""
    text = f"{error} is missing in it" if isinstance(error, KeyError) else str(error)
    text = " ".join(text.split()).rstrip(".") or type(error).__name__
    return text if len(text) <= 200 else f"{text[:199]}…"
