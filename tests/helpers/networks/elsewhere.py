"""A device that is not there: it has the numbers of the CPU, and refuses to compute with tensors of two devices, as a
GPU does.

Within `Elsewhere()` the device is called "meta". So what runs on a GPU can be seen to leave nothing behind on the CPU,
without one; its own kernels, their speed and several processes on it are not seen.
"""

import contextlib

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

NAME = "meta"
aten = torch.ops.aten
# The lengths and batch sizes of packed sequences are on the CPU, whatever the device.
PACKING = (aten._pack_padded_sequence.default, aten._pad_packed_sequence.default)
MIXED = (aten.copy_.default, *PACKING, aten.gru.data, aten.lstm.data)


class There(torch.Tensor):
    """A tensor there; `raw` holds its numbers."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, raw):
        with torch.inference_mode(False), torch.no_grad():
            return torch.Tensor._make_wrapper_subclass(
                cls, raw.shape, strides=raw.stride(), storage_offset=raw.storage_offset(), dtype=raw.dtype, device=NAME
            )

    def __init__(self, raw):
        self.raw = raw

    @classmethod
    def __torch_dispatch__(cls, op, types, args=(), kwargs=None):
        return compute(op, args, kwargs or {})


class _Operations(TorchDispatchMode):
    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        return compute(op, args, kwargs or {})


class _Constants(TorchFunctionMode):
    """`torch.tensor` makes its numbers on the CPU, and `tolist` reads them there, out of sight."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function is torch.tensor and kwargs.get("device") is not None:
            return function(*args, **{**kwargs, "device": None}).to(kwargs["device"])
        if function is torch.Tensor.tolist and isinstance(args[0], There):
            return args[0].cpu().tolist()
        return function(*args, **kwargs)


@contextlib.contextmanager
def Elsewhere():
    overwrite = torch.__future__.get_overwrite_module_params_on_conversion()
    torch.__future__.set_overwrite_module_params_on_conversion(
        True
    )  # a new parameter, rather than the old one with other numbers
    try:
        with _Constants(), _Operations():
            yield NAME
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(overwrite)


def compute(op, args, kwargs):
    """The operation on the raw numbers; its outcome is there when its tensors are, or when it is told to be."""
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    on_device = [tensor for tensor in tensors if isinstance(tensor, There)]
    if op not in MIXED and on_device and any(tensor.dim() for tensor in tensors if not isinstance(tensor, There)):
        raise RuntimeError(f"{op}: tensors on two devices")
    device = kwargs.get("device")
    args_raw, kwargs_raw = tree_map(lambda leaf: leaf.raw if isinstance(leaf, There) else leaf, (args, kwargs))
    result = op(*args_raw, **(kwargs_raw if device is None else {**kwargs_raw, "device": torch.device("cpu")}))
    if op in PACKING and on_device:
        return There(result[0]), result[1]
    if op is aten.copy_.default:
        return args[0]
    if not (on_device if device is None else torch.device(device).type == NAME):
        return result
    wrapped = {id(tensor.raw): tensor for tensor in on_device}  # what was changed in place is itself
    return tree_map(lambda leaf: _wrapped(leaf, wrapped) if isinstance(leaf, torch.Tensor) else leaf, result)


def _wrapped(raw, wrapped):
    return wrapped[id(raw)] if id(raw) in wrapped else There(raw)
