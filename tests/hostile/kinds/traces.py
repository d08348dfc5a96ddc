"""A file with a trace: refused, or it can be measured and drawn as the page does."""

import json
import re

from hypothesis import strategies as st

from tests.hostile import strategies
from tests.hostile.workplace import Failure, Workplace, sentence

WARM = b"{}"
_OBEYED = re.compile("[\x1b\u200e\u200f\u2028\u2029\u202a-\u202e\u2066\u2067]")


def strategy():
    import numpy as np

    import attnviz

    weights = [np.full((2, 3, 3), 1 / 3, np.float32)] * 2
    made = [
        attnviz.from_arrays(weights, ["a", "b\u202e", "c"], name="a\u2028\x1b"),
        attnviz.from_arrays([np.full((1, 2, 3), 1 / 3)], ["a", "b", "<eos>"], ["x", "y"], special=["<eos>"]),
    ]
    from attnviz.trace import files

    written = [strategies.mutated(trace.to_dict()).map(lambda content: json.dumps(content).encode()) for trace in made]
    return st.one_of(*written, *(strategies.damaged(files.pack(trace)) for trace in made))


def check(place: Workplace, case) -> None:
    from attnviz import figures, heads, select, stats
    from attnviz.export import html_page
    from attnviz.trace import uploads
    from dashboard.markup import text

    trace = None
    with sentence():
        trace = uploads.unpack(case, "mine")
    if trace is None or not trace.maps:
        return
    kind = trace.maps[0].kind
    grid = select.select(trace, kind)
    figures.heatmap(grid, title=trace.model).to_json().encode("utf-8")
    shown = html_page.page(trace).decode("utf-8") + text.source(trace, trace.model)
    if turned := _OBEYED.search(shown):
        raise Failure(f"{turned[0]!r} reached the page")
    stats.of_grid(grid)
    heads.table(trace)
    with sentence():
        select.words(trace)
