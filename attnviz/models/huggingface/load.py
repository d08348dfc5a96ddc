"""Models of the transformers library, from a folder or from the Hugging Face hub. Anybody can upload to the hub, so
nothing that comes with a model is run: its own code is never loaded, and its weights are read from safetensors only.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import nn

from attnviz.models.huggingface import (
    LIBRARY_ERRORS,
    ModelError,
    folder_rules,
    naming,
    quiet,
    read,
    why_no_weights,
    why_rows_lack,
)
from attnviz.models.huggingface.base import MOST_TOKENS, HuggingFaceModel, Place
from attnviz.models.huggingface.encoder_decoder import EncoderDecoderModel
from attnviz.models.huggingface.single_stack import SingleStackModel
from attnviz.models.huggingface.tokenization import SAFE, load_tokenizer, produced_language
from attnviz.models.huggingface.writing import WritingModel
from attnviz.models.names import HUGGING_FACE, HuggingFaceName
from attnviz.trace import AttentionMap

REQUIREMENT = "transformers>=5.15,<6"
SINGLE_STACK_FIELDS = {"encoder": "attentions"}  # kind of map -> field of the output
ENCODER_DECODER_FIELDS = {"cross": "cross_attentions", "encoder": "encoder_attentions", "decoder": "decoder_attentions"}
LANGUAGE_MODELS = (  # with a head; speech and text are read by those of the last two
    "AutoModelForMaskedLM",
    "AutoModelForCausalLM",
    "AutoModelForImageTextToText",
    "AutoModelForMultimodalLM",
    "AutoModelForSeq2SeqLM",
)
TOKENS = 8
_NO_WEIGHTS = re.compile("linear|mamba|conv|recurrent|mlp|moe$|ssm|rwkv|delta|lightning")  # in types of layers
_LINEAR = {  # part of a type of layers -> its name for readers
    "linear": "linear attention",
    "mamba": "a state-space model (Mamba), which is linear",
    "conv": "a convolution",
    "recurrent": "a linear recurrence",
    "mlp": "a feed-forward network",
    "moe": "a feed-forward network of experts",
}


def load(name: str) -> HuggingFaceModel:
    """The model in the folder `name`, else the model of this name on the hub (downloaded once, then read without a
    network).

    It may be any encoder, decoder or encoder-decoder that reads text and returns its attention. Raises ModelError.
    """
    if not name.strip():
        raise ModelError(
            f"{HUGGING_FACE} must be followed by the folder of a model, or by its name on the Hugging Face hub"
        )
    parsed = HuggingFaceName(name)
    library, full_name = _library(), f"{HUGGING_FACE}{parsed.place}"
    folder = folder_rules.folder(parsed.place)
    with quiet(library), naming(full_name):
        shapes = folder_rules.check(folder)
        config = read(full_name, "its config.json", lambda: library.AutoConfig.from_pretrained(folder, **SAFE))
        folder_rules.check_reads_text(full_name, library, config)
        _show_weights(config)
        tokenizer = load_tokenizer(full_name, library, folder, folder_rules.rows(shapes))
        folder_rules.check_size(full_name, library, config, _classes(config), shapes)
        model = _model(full_name, library, folder, config)
    _check_pieces(full_name, model, tokenizer)
    kind: type[EncoderDecoderModel] | type[SingleStackModel]
    if config.is_encoder_decoder:
        kind, fields = EncoderDecoderModel, ENCODER_DECODER_FIELDS
    else:
        kind, fields = SingleStackModel, SINGLE_STACK_FIELDS
    _choose_language(model)
    ready = probe(kind(full_name, config.model_type, model, tokenizer, fields, MOST_TOKENS))
    if parsed.prefix or any(parsed.languages) or (isinstance(ready, EncoderDecoderModel) and ready.languages):
        return _chosen(ready, parsed)
    if isinstance(ready, EncoderDecoderModel):
        return ready.producing(produced_language(tokenizer))
    if isinstance(ready, SingleStackModel) and ready.causal and ready.predicts:
        writer = WritingModel(**vars(ready))
        return writer if writer.keeps_cache else ready
    return ready


def _check_pieces(name: str, model: Any, tokenizer: Any) -> None:
    """ModelError unless the model reads pieces of text, all those of the tokenizer."""
    try:
        pieces = model.get_input_embeddings().weight.shape[0]
    except LIBRARY_ERRORS:
        raise ModelError(
            f"{name}: a model of type {model.config.model_type} has no table of pieces of text, so it reads something "
            f"else; {folder_rules.ELSEWHERE}"
        ) from None
    if len(tokenizer) > pieces:
        raise ModelError(
            f"{name}: the model knows {pieces} pieces and the tokenizer {len(tokenizer)}; they do not belong together"
        )


def _chosen(model: HuggingFaceModel, parsed: HuggingFaceName) -> HuggingFaceModel:
    """The model with a prefix, or for two languages; its traces note that they can be chosen. Raises ModelError."""
    if not isinstance(model, EncoderDecoderModel):
        what = "prefix; type it before the text" if parsed.prefix else "languages"
        raise ModelError(f"{model.name}: it does not translate, so it takes no {what}")
    if parsed.prefix:
        return model.after(parsed.prefix)
    source, target = parsed.languages
    if not source and not target:
        read, codes = model.tokenizer.src_lang, model.languages
        note = f"No target language was chosen; the text was read as {read}. Put #{read}:{codes[-1]} behind the name "
        return replace(model, notes=(*model.notes, f"{note}of the model to choose both."))
    try:
        return model.between(source, target)
    except ValueError as error:
        raise ModelError(f"{model.name}: {error}") from None


def _choose_language(network: Any) -> None:
    """Choose the first language of a model with modules per language and no default (X-MOD)."""
    if hasattr(network, "set_default_language") and not network.config.default_language:
        network.set_default_language(network.config.languages[0])


def _show_weights(config: Any) -> None:
    """Set eager attention over all keys, which alone returns the weights, even if config.json has another setting. For
    BigBird this equals its block attention up to 704 tokens, where the library uses all keys too."""
    config._attn_implementation = "eager"
    if getattr(config, "attention_type", None) == "block_sparse":
        config.attention_type = "original_full"


def _library() -> ModuleType:
    """transformers, imported only when it is needed, because it takes seconds."""
    try:
        import transformers
    except ImportError:
        raise ModelError(
            f'models of the Hugging Face hub need the transformers library: pip install "{REQUIREMENT}"'
        ) from None
    if not (5, 15) <= tuple(map(int, transformers.__version__.split(".")[:2])) < (6,):
        raise ModelError(
            f"models of the Hugging Face hub need another version of the transformers library than "
            f'{transformers.__version__}: pip install "{REQUIREMENT}"'
        )
    return transformers


def _model(name: str, library: ModuleType, folder: Path, config: Any) -> Any:
    """The model in evaluation mode, fp32, with its language-model head if the files contain it completely.

    ModelError when the files lack a weight that attention depends on.
    """
    config.use_cache = False  # no key/value cache: each text is read once
    for kind in _classes(config):
        model, report = read(
            name,
            "the model",
            lambda: getattr(library, kind).from_pretrained(
                folder, config=config, use_safetensors=True, dtype=torch.float32, output_loading_info=True, **SAFE
            ),
        )
        _check_complete(name, model, report["unexpected_keys"])
        missing = sorted(key for key in report["missing_keys"] if "pooler" not in key)  # after the last attention
        if not missing:
            return model.eval().requires_grad_(False)
    raise ModelError(
        f"{name}: its files lack {len(missing)} weights that it needs, such as {missing[0]}; its attention would be "
        "random"
    )


def _classes(config: Any) -> list[str]:
    """The classes of the library that may load the model, the best first."""
    if config.is_encoder_decoder:
        of_images = type(config) in _library().AutoModelForImageTextToText._model_mapping
        return ["AutoModelForImageTextToText" if of_images else "AutoModelForSeq2SeqLM"]
    heads = [kind for kind in LANGUAGE_MODELS if _names_class(config, kind)]
    bare = type(config) in _library().AutoModel._model_mapping  # some parts of models have no class without a head
    return [*heads, "AutoModel"] if bare or not heads else heads


def _names_class(config: Any, kind: str) -> bool:
    """Does the config name the class that `kind` of the library loads for it?"""
    mapping = getattr(_library(), kind)._model_mapping
    return type(config) in mapping and getattr(mapping[type(config)], "__name__", "") in (config.architectures or ())


def _check_complete(name: str, model: nn.Module, left: Iterable[str]) -> None:
    """ModelError when the files have more layers of the same kind. left : weights in the files that were not read."""
    ours = {re.sub(r"\d+", "#", key) for key in model.state_dict()}
    if more := sorted(key for key in left if re.search(r"\d", key) and re.sub(r"\d+", "#", key) in ours):
        raise ModelError(
            f"{name}: its files hold more layers than its config.json says, such as {more[0]}; they do not belong "
            "together"
        )


def _context(model: HuggingFaceModel) -> int:
    """Tokens of the longest text: the smallest limit of its config, its position embeddings and its tokenizer.
    Limits of a part that reads images do not count."""
    network, tokenizer = model.model, model.tokenizer
    tables = [
        module
        for name, module in network.named_modules()
        if isinstance(module, nn.Embedding) and ("position" in name or "wpe" in name) and _reads_text(name, model.used)
    ]
    reserved = [
        getattr(table, "offset", 0) + (0 if table.padding_idx is None else table.padding_idx + 1) for table in tables
    ]
    sizes = [table.num_embeddings - count for table, count in zip(tables, reserved)]
    claimed = (
        *(getattr(network.config.get_text_config(), name, None) for name in ("max_position_embeddings", "max_seq_len")),
        tokenizer.model_max_length,
    )
    numbers = (size for size in (*sizes, *claimed) if isinstance(size, int | float) and not isinstance(size, bool))
    return int(min(size for size in numbers if size > 0))


def _reads_text(path: str, used: frozenset[str]) -> bool:
    """Does an embedding table belong to a module that read the text? Some tables are read without being called."""
    return path in used or path.rpartition(".")[0] in used


def probe(model: HuggingFaceModel) -> HuggingFaceModel:
    """The model with its heads counted, its limit found, and its one stack named `decoder` when no token sees a later
    one.

    ModelError when none of its attention can be read.
    """
    watched = _Watched(model.model)
    with watched:
        output = _output(model)
    sinks = any("sink" in name for name, _ in model.model.named_parameters())
    model = replace(model, used=frozenset(watched.called), notes=model.family_notes, sinks=sinks)
    for kind in model.fields:
        places, note = _places(model, kind, output, watched)
        model = replace(model, places=model.places | places, notes=tuple(dict.fromkeys((*model.notes, *note))))
    maps = _maps(model, output)
    if isinstance(model, SingleStackModel) and not any(np.triu(m.keys, 1).any() for m in maps):
        places = {"decoder": model.places["encoder"]} if model.places else {}
        model = replace(model, fields={"decoder": "attentions"}, places=places)
    counts = {kind: tuple(layer.shape[1] for _, layer in model.attending(kind, output)) for kind in model.fields}
    context = _context(model)
    return replace(model, head_counts=counts, context=context, limit=min(context, MOST_TOKENS))


class _Watched:
    """While the network runs in this block: which modules are called, and in which layer each tensor is made.

    called : paths of modules. layers : id of a tensor that a module returned -> number of the layer.
    """

    def __init__(self, network: nn.Module) -> None:
        self.called: set[str] = set()
        self.layers: dict[int, int] = {}
        self._network, self._layer, self._hooks, self._made = network, -1, [], []

    def __enter__(self) -> "_Watched":
        for path, module in self._network.named_modules():
            before = re.fullmatch(r"\D*\.(\d+)", path)  # a layer: the first number of a path, and its end
            self._hooks.append(module.register_forward_pre_hook(partial(self._begin, path, before and int(before[1]))))
            self._hooks.append(module.register_forward_hook(self._end))
        return self

    def __exit__(self, *error: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def _begin(self, path: str, layer: int | None, module: nn.Module, inputs: tuple) -> None:
        self.called.add(path)
        self._layer = self._layer if layer is None else layer

    def _end(self, module: nn.Module, inputs: tuple, outputs: object) -> None:
        for tensor in outputs if isinstance(outputs, tuple) else ():
            if isinstance(tensor, torch.Tensor) and tensor.ndim == 4:
                self._made.append(tensor)  # else its id is used again
                self.layers.setdefault(id(tensor), self._layer)


def _output(model: HuggingFaceModel) -> Any:
    """The output of the model for a few tokens."""
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
    what = "attention over a text"
    if getattr(model.model.config, "vision_config", None):
        what += " alone, without an image,"
    output = read(model.name, what, lambda: model.run(ids, (), output_hidden_states=True, **more))
    if not hasattr(output, "get"):
        raise ModelError(f"{model.name} cannot be shown: it does not return its attention by name")
    return output


def _places(
    model: HuggingFaceModel, kind: str, output: Any, watched: _Watched
) -> tuple[dict[str, tuple[Place, ...]], tuple[str, ...]]:
    """The places of a kind's weights in the output, unless all layers attend; and sentences on layers that do not
    attend. ModelError if no layer attends, or if it is unknown which do."""
    name = model.fields[kind]
    stack = "decoder_" if name == "cross_attentions" else name.removesuffix("attentions")
    layers, entries = len(output.get(f"{stack}hidden_states") or ()) - 1, output.get(name) or ()
    types = _layer_types(model.model.config)
    others = {number for number, of_layer in enumerate(types) if _NO_WEIGHTS.search(of_layer)}
    returned = [entry for entry, weights in enumerate(entries) if weights is not None]
    if len(entries) == layers == len(types):  # layers without weights may return something else
        returned = [entry for entry in returned if entry not in others]
    if len(returned) == layers:
        return {}, ()
    if len(returned) == len(entries) == 2 * layers > 0:
        return {}, (f"Each of its {layers} layers attends twice: maps 1 and 2 are of the first layer, and so on.",)
    whole = len(entries) == layers
    numbers = returned if whole else [watched.layers.get(id(entries[entry]), -1) for entry in returned]
    if not returned:
        raise ModelError(
            f"{model.name}: none of its {layers} layers returns {name.replace('_', ' ')}: it has no weights to show"
        )
    if numbers != sorted(set(numbers)) or numbers[0] < 0:
        _check_lengths(model.name, name, [tuple(entries[entry].shape) for entry in returned])
        raise ModelError(
            f"{model.name}: {len(returned)} of its {layers} layers return {name.replace('_', ' ')}, and which ones is "
            "not known"
        )
    places = tuple(Place(number, entry) for number, entry in zip(numbers, returned))
    return {kind: places}, _without_weights(set(range(max(layers, numbers[-1] + 1))) - set(numbers), types)


def _check_lengths(model_name: str, name: str, shapes: list[tuple[int, ...]]) -> None:
    """ModelError for attention over other tokens than those of the text."""
    for number, shape in enumerate(shapes):
        queries, keys = shape[-2:]
        if (queries, keys) != (TOKENS, TOKENS):
            why = "it pools or divides its tokens"
            if queries > TOKENS:  # as of a model that fills a canvas
                why = "it attends from other places than the tokens of the text"
            raise ModelError(
                f"{model_name} cannot be shown: {why}, so that its {name.replace('_', ' ')} of number {number + 1} "
                f"have {queries} queries and {keys} keys for {TOKENS} tokens"
            )


def _layer_types(config: Any) -> list[str]:
    """The type of each layer from the config of a hybrid model; [] for others."""
    text = config.get_text_config()
    lists = (getattr(text, name, None) for name in ("layer_types", "layers_block_type", "block_types"))
    return next((list(map(str, types)) for types in lists if isinstance(types, list | tuple) and types), [])


def _without_weights(numbers: set[int], types: list[str]) -> tuple[str, ...]:
    """A sentence for each type of layers that have no attention weights."""
    named = {number: types[number] if len(types) > number else "" for number in sorted(numbers)}
    sentences = []
    for of_layer in dict.fromkeys(named.values()):
        own = [number for number, other in named.items() if other == of_layer]
        starts = [number for number in own if number - 1 not in own]
        ends = [number for number in own if number + 1 not in own]
        runs = [f"{a + 1}" if a == b else f"{a + 1}–{b + 1}" for a, b in zip(starts, ends)]
        words = f"{'Layers' if len(own) > 1 else 'Layer'} {', '.join(runs)}"
        linear = next((word for part, word in _LINEAR.items() if part in of_layer), "")
        sentences.append(f"{words}: {linear or of_layer.replace('_', ' ') or 'another kind of layer'}, no weights.")
    return tuple(sentences)


def _maps(model: HuggingFaceModel, output: Any) -> tuple[AttentionMap, ...]:
    """The attention over the few tokens. ModelError unless it is one (heads, TOKENS, TOKENS) array a layer."""
    entries = [weights for kind in model.fields for _, weights in model.attending(kind, output)]
    if reason := next(filter(None, map(why_no_weights, entries)), ""):
        raise ModelError(f"{model.name} cannot be shown: {reason}")
    try:
        maps = model.maps(output)
    except ValueError as error:
        sums = {kind: [layer.sum(-1) for _, layer in model.attending(kind, output)] for kind in model.fields}
        raise ModelError(f"{model.name} cannot be shown: {why_rows_lack(sums) or error}") from None
    _check_lengths(model.name, "attentions", [m.keys.shape for m in maps])
    return maps
