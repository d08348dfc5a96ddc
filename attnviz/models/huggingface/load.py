"""Models of the transformers library, from a folder or from the Hugging Face hub. Anybody can upload to the hub, so
nothing that comes with a model is run: its own code is never loaded, and its weights are read from safetensors only.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import nn

from attnviz.models.huggingface import folder_rules
from attnviz.models.huggingface.base import MOST_TOKENS, HuggingFaceModel
from attnviz.models.huggingface.encoder_decoder import EncoderDecoderModel
from attnviz.models.huggingface.errors import ModelError, naming, read
from attnviz.models.huggingface.single_stack import SingleStackModel
from attnviz.models.huggingface.tokenization import SAFE, load_tokenizer
from attnviz.models.huggingface.writing import WritingModel
from attnviz.models.names import HUGGING_FACE, HuggingFaceName
from attnviz.trace import AttentionMap

REQUIREMENT = "transformers>=5.23,<6"
SINGLE_STACK_FIELDS = {"encoder": "attentions"}  # kind of map -> field of the output
ENCODER_DECODER_FIELDS = {
    "cross": "cross_attentions",
    "encoder": "encoder_attentions",
    "decoder": "decoder_attentions",
}
LANGUAGE_MODEL_HEADS = {  # how the name of an architecture ends -> the class that loads it with its head
    "ForMaskedLM": "AutoModelForMaskedLM",
    "ForCausalLM": "AutoModelForCausalLM",
    "LMHeadModel": "AutoModelForCausalLM",
}
READ_TEXT = ("AutoModelForMaskedLM", "AutoModelForSeq2SeqLM")  # some of these read other things too
READ_OTHER = {
    "speech": ("AutoModelForSpeechSeq2Seq", "AutoModelForCTC", "AutoModelForAudioClassification"),
    "images": ("AutoModelForImageClassification", "AutoModelForZeroShotImageClassification"),
}
TOKENS = 4


def load(name: str) -> HuggingFaceModel:
    """The model in the folder `name`, else the model of this name on the hub (downloaded once, then read without a
    network).

    Any that reads text and returns its attention: encoders, decoders, and encoder-decoder models. Raises ModelError.
    """
    if not name.strip():
        raise ModelError(
            f"{HUGGING_FACE} must be followed by the folder of a model, or by its name on the Hugging Face hub"
        )
    library, full_name = _library(), str(HuggingFaceName(name))
    folder = folder_rules.folder(name)
    with _quiet(library), naming(full_name):
        shapes = folder_rules.check(folder)
        config = read(full_name, "its config.json", lambda: library.AutoConfig.from_pretrained(folder, **SAFE))
        _check_reads_text(full_name, library, config)
        config._attn_implementation = "eager"  # whatever config.json says: only this way returns the weights
        tokenizer = load_tokenizer(full_name, library, folder, folder_rules.rows(shapes))
        folder_rules.check_size(full_name, library, config, _classes(config), shapes)
        model = _model(full_name, library, folder, config)
    pieces = read(full_name, "its table of pieces", lambda: model.get_input_embeddings().weight.shape[0])
    if len(tokenizer) > pieces:
        raise ModelError(
            f"{full_name}: the model knows {pieces} pieces and the tokenizer {len(tokenizer)}; they do not belong "
            "together"
        )
    kind: type[EncoderDecoderModel] | type[SingleStackModel]
    if config.is_encoder_decoder:
        kind, fields = EncoderDecoderModel, ENCODER_DECODER_FIELDS
    else:
        kind, fields = SingleStackModel, SINGLE_STACK_FIELDS
    context = _context(model, tokenizer)
    limit = min(context, MOST_TOKENS)
    ready = probe(kind(full_name, config.model_type, model, tokenizer, fields, limit, context=context))
    writes = isinstance(ready, SingleStackModel) and ready.causal and ready.predicts
    return WritingModel(**vars(ready)) if writes else ready


def _check_reads_text(name: str, library: ModuleType, config: Any) -> None:
    """ModelError for a model that reads speech or images, by the classes of the library that take its config."""
    if any(type(config) in getattr(library, kind)._model_mapping for kind in READ_TEXT):
        return
    for read_instead, kinds in READ_OTHER.items():
        if any(type(config) in getattr(library, kind)._model_mapping for kind in kinds):
            raise ModelError(
                f"{name}: a model of type {config.model_type} reads {read_instead}, not text; run it with the "
                "transformers library and output_attentions=True, and give its weights to attnviz.from_arrays, or the "
                "output of generate to attnviz.from_generate"
            )


def _library() -> ModuleType:
    """transformers, imported only when it is needed, because it takes seconds."""
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


@contextlib.contextmanager
def _quiet(library: ModuleType) -> Iterator[None]:
    """Silences the reports and progress bars of the library; its errors are raised."""
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


def _model(name: str, library: ModuleType, folder: Path, config: Any) -> Any:
    """The model in evaluation mode, fp32, with its language-model head when the files have all of it.

    ModelError when the files lack a weight that attention depends on.
    """
    config.use_cache = False  # no key/value cache: each text is read once
    kinds = _classes(config)
    for kind in kinds:
        if kind != kinds[-1] and type(config) not in getattr(library, kind)._model_mapping:
            continue  # a family whose architecture has such a name, but another head
        model, report = read(
            name,
            "the model",
            lambda: getattr(library, kind).from_pretrained(
                folder, config=config, use_safetensors=True, dtype=torch.float32, output_loading_info=True, **SAFE
            ),
        )
        _check_complete(name, model, report["unexpected_keys"])
        missing = sorted(
            key for key in report["missing_keys"] if "pooler" not in key
        )  # it comes after the last attention
        if not missing:
            return model.eval().requires_grad_(False)
    raise ModelError(
        f"{name}: its files lack {len(missing)} weights that it needs, such as {missing[0]}; its attention would be "
        "random"
    )


def _classes(config: Any) -> list[str]:
    """The classes of the library that may load the model, the best first."""
    if config.is_encoder_decoder:
        return ["AutoModelForSeq2SeqLM"]
    named = str(config.architectures)
    heads = [kind for end, kind in LANGUAGE_MODEL_HEADS.items() if f"{end}'" in named]
    return [*heads[:1], "AutoModel"]


def _check_complete(name: str, model: nn.Module, left: Iterable[str]) -> None:
    """ModelError when the files have more layers of the same kind. left : weights in the files that were not read."""
    ours = {re.sub(r"\d+", "#", key) for key in model.state_dict()}
    if more := sorted(key for key in left if re.search(r"\d", key) and re.sub(r"\d+", "#", key) in ours):
        raise ModelError(
            f"{name}: its files hold more layers than its config.json says, such as {more[0]}; they do not belong "
            "together"
        )


def _context(model: nn.Module, tokenizer: Any) -> int:
    """Tokens of the longest text that it reads: the smallest limit of its config, its position embeddings and its
    tokenizer."""
    tables = [
        module
        for name, module in model.named_modules()
        if isinstance(module, nn.Embedding) and ("position" in name or "wpe" in name)
    ]
    reserved = [
        getattr(table, "offset", 0) + (0 if table.padding_idx is None else table.padding_idx + 1) for table in tables
    ]
    sizes = [table.num_embeddings - count for table, count in zip(tables, reserved)]
    claimed = (
        *(getattr(model.config, name, None) for name in ("max_position_embeddings", "max_seq_len")),
        tokenizer.model_max_length,
    )
    numbers = (size for size in (*sizes, *claimed) if isinstance(size, int | float) and not isinstance(size, bool))
    return int(min(size for size in numbers if size > 0))


def probe(model: HuggingFaceModel) -> HuggingFaceModel:
    """The model with its heads counted, and its one stack named `decoder` when no token sees a later one.

    ModelError when some of its attention cannot be read.
    """
    output = _output(model)
    for name in model.fields.values():
        _check_layers(model.name, name, output)
    maps = _maps(model, output)
    if isinstance(model, SingleStackModel) and not any(np.triu(m.weights, 1).any() for m in maps):
        model = replace(model, fields={"decoder": "attentions"})
    counts = {kind: tuple(layer.shape[1] for layer in output[name]) for kind, name in model.fields.items()}
    return replace(model, head_counts=counts)


def _output(model: HuggingFaceModel) -> Any:
    """What the model returns for a few tokens."""
    ids, more = tuple(range(TOKENS)), {}
    if isinstance(model, EncoderDecoderModel):
        if model.start is None:
            raise ModelError(
                f"{model.name}: its config does not say which token its decoder starts with (decoder_start_token_id)"
            )
        if type(model.start) is not int or not 0 <= model.start < len(model.tokenizer):
            raise ModelError(
                f"{model.name}: decoder_start_token_id must be the number of one of its {len(model.tokenizer)} tokens; "
                f"got {model.start!r:.80}"
            )
        more = {"decoder_input_ids": torch.tensor([ids])}
    output = read(model.name, "attention over a text", lambda: model.run(ids, output_hidden_states=True, **more))
    if not hasattr(output, "get"):
        raise ModelError(f"{model.name} cannot be shown: it does not return its attention by name")
    return output


def _check_layers(model_name: str, name: str, output: Any) -> None:
    """ModelError unless every layer returns its attention in the field `name` of the output."""
    stack = "decoder_" if name == "cross_attentions" else name.removesuffix("attentions")
    layers = len(output.get(f"{stack}hidden_states") or ()) - 1
    returned = sum(weights is not None for weights in output.get(name) or ())
    if not returned or returned != layers:
        raise ModelError(
            f"{model_name}: {returned} of its {layers} layers return {name.replace('_', ' ')}; only a model in which "
            "all do can be shown"
        )


def _maps(model: HuggingFaceModel, output: Any) -> tuple[AttentionMap, ...]:
    """The attention over the few tokens. ModelError unless it is one (heads, TOKENS, TOKENS) array a layer."""
    try:
        maps = model.maps(output)
    except ValueError as error:
        raise ModelError(f"{model.name} cannot be shown: {error}") from None
    except (AttributeError, IndexError, KeyError, TypeError):  # a layer that is no tensor
        raise ModelError(f"{model.name} cannot be shown: its attention is not one array for each layer") from None
    if wrong := next((m for m in maps if m.weights.shape[1:] != (TOKENS, TOKENS)), None):
        raise ModelError(f"{model.name} cannot be shown: {wrong.name} is {wrong.weights.shape[1:]} for {TOKENS} tokens")
    return maps
