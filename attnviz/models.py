"""The registry: a mechanism's name to the class that implements it, and its settings to a model."""

from torch import nn

from attnviz.classifier import SelfAttention
from attnviz.luong import LuongConcat, LuongDot, LuongGeneral, LuongLocal, ScaledDotRNN
from attnviz.mechanisms import Config
from attnviz.recurrent import Bahdanau, FixedContext
from attnviz.transformer import Transformer

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
}


def build(config: Config) -> nn.Module:
    """The untrained model of a config, in training mode."""
    return CLASSES[config.mechanism](config.vocabulary, **config.options)
