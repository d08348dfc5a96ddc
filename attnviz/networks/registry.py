"""From a mechanism and its options to a network, with or without random initial weights."""

import importlib
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import init
from torch.overrides import TorchFunctionMode

from attnviz import mechanisms, python_file
from attnviz.arguments import shown
from attnviz.attention import Attention
from attnviz.mechanisms import Config, Mechanism
from attnviz.networks.cpu import share

_DECODERS = {"before": "attnviz.networks.decoders:Bahdanau", "after": "attnviz.networks.decoders:Luong"}
_GIVEN = ("vocabulary", "score", "summed")  # parameters of a network that are no options
_DRAWING = {init.uniform_, init.normal_, init.kaiming_uniform_, torch.Tensor.uniform_, torch.Tensor.normal_}
_SIZES = ("query_width", "key_width", "width", "dropout")  # parameters of a score that its network gives


def build(config: Config) -> nn.Module:
    """The untrained model of a config, in training mode.

    ValueError for an unknown option or an impossible value.
    """
    mechanism, allowed = mechanisms.find(config.mechanism), options(config.mechanism)
    if unknown := config.options.keys() - allowed.keys():
        raise ValueError(f"{config.mechanism} has no option {', '.join(sorted(unknown))}; it has {', '.join(allowed)}")
    for name, value in config.options.items():
        if isinstance(value, bool) != (wanted := isinstance(allowed[name], bool)):
            raise ValueError(f"{name} must {'' if wanted else 'not '}be true or false; got {shown(value)}")
    for name in ("layers", "encoder_layers"):
        if (count := config.options.get(name)) is not None and count < 1:
            raise ValueError(f"{name} must be at least 1; got {count}")
    share(config.options.get("attention_dropout", 0.0), "attention_dropout")
    network = _network(mechanism, config)
    if mechanism.start:
        named(mechanism.start)(network)
    return network


def _network(mechanism: Mechanism, config: Config) -> nn.Module:
    if not mechanism.score:
        return _class(mechanism)(config.vocabulary, **config.options)
    own = _parameters(named(mechanism.score), _SIZES)
    of_score = {name: value for name, value in config.options.items() if name in own}
    others = {name: value for name, value in config.options.items() if name not in own}
    score = partial(_score, mechanism, of_score)
    return _class(mechanism)(config.vocabulary, score=score, summed=mechanism.summed, **others)


def _score(mechanism: Mechanism, own: dict, query_width: int, key_width: int, width: int, dropout: float) -> Attention:
    """The score of a mechanism, for queries and keys of these widths. own : its own options."""
    make = named(mechanism.score)
    sizes = dict(query_width=query_width, key_width=key_width, width=width, dropout=dropout)
    wanted = inspect.signature(make).parameters
    try:
        score = make(**{name: value for name, value in sizes.items() if name in wanted}, **own)
        if isinstance(make, type) and torch.get_default_device().type != "meta":  # not when weights follow
            _check_shape(score, mechanism.title, query_width, key_width)
    except ValueError:  # a sentence already
        raise
    except python_file.ANYTHING as error:  # a person's class may raise anything
        raise ValueError(
            f"the score of {mechanism.title} fails: {python_file.where_and_why(error, make.__module__)}"
        ) from None
    return score


@torch.no_grad()
def _check_shape(score: Attention, title: str, query_width: int, key_width: int) -> None:
    """ValueError unless the score has one number per query and key of each sentence."""
    query, keys = torch.ones(2, 3, query_width), torch.ones(2, 5, key_width)
    shape = tuple(score.score(query, score.prepare(keys)).shape)
    if shape != (2, 3, 5):
        raise ValueError(
            f"score() of {title} must return (sentences, queries, keys), for query {(*query.shape,)} and keys "
            f"{(*keys.shape,)} the shape (2, 3, 5); got {shape}"
        )


def options(mechanism: str) -> dict[str, object]:
    """The options of a mechanism's model, with their default values: of its network, then of its score.

    ValueError if both have an option of the same name.
    """
    kind = mechanisms.find(mechanism)
    of_network = _parameters(_class(kind), _GIVEN)
    if not kind.score:
        return of_network
    for name, default in _parameters(named(kind.score), ("dropout",)).items():
        if name in of_network and default is not inspect.Parameter.empty:
            raise ValueError(
                f"the score of {kind.title} has a value of its own for {name}, which is the name of an option of the "
                "decoder too; give that parameter of the score another name"
            )
    return of_network | _parameters(named(kind.score), _SIZES)


def _parameters(made: Callable, given: tuple[str, ...]) -> dict[str, object]:
    """name -> default value of the parameters of a class or a function that are not given."""
    parameters = inspect.signature(made).parameters.values()
    return {
        parameter.name: parameter.default
        for parameter in parameters
        if parameter.name not in given and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    }


def _class(mechanism: Mechanism) -> type[nn.Module]:
    return named(mechanism.network or _DECODERS[mechanism.asks])


def named(value: Callable | str) -> Any:
    """The object that `module:name` names; a value that is not a text is returned unchanged."""
    if not isinstance(value, str):
        return value
    module, _, name = value.partition(":")
    return getattr(importlib.import_module(module), name)


class Unfilled(TorchFunctionMode):
    """In this block (`with Unfilled():`) new parameters are not initialised and must be filled afterwards; random
    initial values would be overwritten. On the device `meta` they also cost a second: there is no fast path for them,
    and the slow one imports torch's compiler.
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        given = kwargs or {}
        if func in _DRAWING:
            return given["tensor"] if "tensor" in given else args[0]
        return func(*args, **given)
