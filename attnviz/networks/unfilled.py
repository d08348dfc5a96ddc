"""Models whose parameters are read from a file are built without drawing random numbers for them first."""

import torch
from torch.nn import init
from torch.overrides import TorchFunctionMode

_DRAWING = {init.uniform_, init.normal_, init.kaiming_uniform_, torch.Tensor.uniform_, torch.Tensor.normal_}


class Unfilled(TorchFunctionMode):
    """Within it (`with Unfilled():`) parameters keep what their memory holds, so each must be given its numbers next.

    The random numbers would be thrown away. On the device `meta` they also cost a second: there is no fast path for
    them, and the slow one imports torch's compiler.
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        given = kwargs or {}
        if func in _DRAWING:
            return given["tensor"] if "tensor" in given else args[0]
        return func(*args, **given)
