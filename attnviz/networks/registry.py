"""The registry: a mechanism's name to the class that implements it, and its settings to a model."""

import inspect

from torch import nn

from attnviz.arguments import shown
from attnviz.mechanisms import Config
from attnviz.networks.classifier import SelfAttention
from attnviz.networks.decoder_only import DecoderOnly
from attnviz.networks.dropout import share
from attnviz.networks.rnn.luong import LuongConcat, LuongDot, LuongGeneral, LuongLocal, ScaledDotRNN
from attnviz.networks.rnn.recurrent import Bahdanau, FixedContext
from attnviz.networks.transformer import Transformer

CLASSES = {
    "fixed-context": FixedContext,
    "bahdanau": Bahdanau,
    "luong-dot": LuongDot,
    "luong-general": LuongGeneral,
    "luong-concat": LuongConcat,
    "luong-local": LuongLocal,
    "scaled-dot": ScaledDotRNN,
    "transformer": Transformer,
    "self-attention": SelfAttention,
    "writer": DecoderOnly,
}


def build(config: Config) -> nn.Module:
    """The untrained model of a config, in training mode.

    ValueError for an option that it does not have, or a value that is not possible.
    """
    kind, allowed = CLASSES[config.mechanism], options(config.mechanism)
    if unknown := config.options.keys() - allowed.keys():
        raise ValueError(f"{config.mechanism} has no option {', '.join(sorted(unknown))}; it has {', '.join(allowed)}")
    for name, value in config.options.items():
        if isinstance(value, bool) != (wanted := isinstance(allowed[name], bool)):
            raise ValueError(f"{name} must {'' if wanted else 'not '}be true or false; got {shown(value)}")
    for name in ("layers", "encoder_layers"):
        if (count := config.options.get(name)) is not None and count < 1:
            raise ValueError(f"{name} must be at least 1; got {count}")
    share(config.options.get("attention_dropout", 0.0), "attention_dropout")
    return kind(config.vocabulary, **config.options)


def options(mechanism: str) -> dict[str, object]:
    """The options of a mechanism's model, with their default values."""
    parameters = inspect.signature(CLASSES[mechanism]).parameters.values()
    return {parameter.name: parameter.default for parameter in parameters if parameter.name != "vocabulary"}
