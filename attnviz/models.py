"""The registry: a mechanism's name to the class that implements it, and its settings to a model."""

from torch import nn

from attnviz.mechanisms import Config
from attnviz.recurrent import Bahdanau, LuongGeneral
from attnviz.transformer import Transformer

CLASSES = {"bahdanau": Bahdanau, "luong-general": LuongGeneral, "transformer": Transformer}


def build(config: Config) -> nn.Module:
    """The untrained model of a config, in training mode."""
    return CLASSES[config.mechanism](config.vocabulary, **config.options)
