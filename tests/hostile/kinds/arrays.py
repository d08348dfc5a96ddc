"""A file with arrays from elsewhere: refused, or it makes a trace, or says why not."""

import io

from hypothesis import strategies as st

from tests.hostile import strategies
from tests.hostile.workplace import Workplace, sentence

WARM = b"{}"


def strategy():
    import numpy as np
    from safetensors.numpy import save

    layer, files = np.full((2, 3, 3), 1 / 3, np.float32), [io.BytesIO() for _ in range(3)]
    np.savez(files[0], layer_0=layer, layer_1=layer, tokens=["a", "b", "c"])
    np.savez_compressed(files[1], layer_0=layer)
    np.save(files[2], layer)
    contents = [file.getvalue() for file in files] + [save({"encoder.0": layer}, {"tokens": '["a", "b", "c"]'})]
    return st.one_of(map(strategies.damaged, contents))


def check(place: Workplace, case) -> None:
    from attnviz.trace import uploads

    with sentence():
        uploads.unpack(case, "mine", uploads.Reading(tokens="a b c"))
    with sentence():
        uploads.unpack(case, "mine")
