"""One number per head: the picture is no larger than its numbers need."""

import pandas as pd

from attnviz import figures


def test_the_grid_is_the_size_of_its_content():
    rows = [("encoder", layer, head, 0.1 * head) for layer in range(3) for head in range(4)]
    layout = figures.head_map(pd.DataFrame(rows, columns=["kind", "layer", "head", "gini"]), "gini").layout
    inner = layout.height - layout.margin.t - layout.margin.b
    assert inner == 3 * 56
    assert layout.meta["widest"] == layout.margin.l + layout.margin.r + 4 * 104
