"""What a zip is made of."""

import pandas as pd
import pytest
from nasty import nasty_figure, trace


@pytest.fixture
def pack():
    made = {"Heatmap: a": nasty_figure("heatmap"), "heatmap a": nasty_figure("bars")}
    frames = {"statistics": pd.DataFrame({"a": [1]}), "weights": pd.DataFrame({"token": ["="]})}
    return made, [trace(), trace("en-fr/luong")], frames, {"text": "été", "models": {"b": 1, "a": 2}}
