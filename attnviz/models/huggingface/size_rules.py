"""Whether the weights beside a config can be those of the model that it describes; found without making any."""

import contextlib
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_module_registration_hook

from attnviz.models.checks import weights_header
from attnviz.models.huggingface.errors import ModelError, read

SPARE = 2**24  # numbers that a model may have beside those that its files hold, of which each may be PACKED in one
PACKED = 16
PARTS, PARTS_A_TENSOR = 2_000, 20  # modules that are built: of any model, and for each tensor of its files


def check(name: str, library: ModuleType, config: Any, kinds: list[str], shapes: weights_header.Shapes) -> None:
    """ModelError for a config that describes far more than the files hold: built, it would fill the memory.

    name : of the model. kinds : the classes of the library that may load it.
    """
    classes = [kind for kind in ("AutoModel", *kinds) if type(config) in getattr(library, kind)._model_mapping]
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
    """A number in a config can ask for modules without end, whatever it is called: ValueError after `most` of them."""
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
