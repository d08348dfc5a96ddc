"""A first pass over a few tokens: does the model return all its attention, and may its tokens look ahead?"""

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from attnviz.models.huggingface.base import HuggingFaceModel
from attnviz.models.huggingface.encoder_decoder import EncoderDecoderModel
from attnviz.models.huggingface.errors import ModelError, read
from attnviz.models.huggingface.single_stack import SingleStackModel
from attnviz.trace import AttentionMap

TOKENS = 4


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
