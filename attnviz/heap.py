"""The process's heap, for training: each batch asks anew for the memory that the one before gave back."""

import ctypes
import sys

# mallopt(3), in <malloc.h>: which option, and its value.
_OPTIONS = {"M_MMAP_MAX": (-4, 0), "M_TRIM_THRESHOLD": (-1, 2**31 - 1)}


def keep_freed() -> bool:
    """Keep freed memory in the process rather than giving it back to the system; False where that cannot be asked for.

    Large tensors come by default from maps of their own, whose pages the kernel clears one by one at every batch: on a
    virtual machine 40 % of the time of a training step. It needs glibc; what is kept stays with the process to its end.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all([mallopt(*option) for option in _OPTIONS.values()])
