"""Texts, targets and beam sizes in the library."""

from hypothesis import strategies as st

from tests.hostile import strategies
from tests.hostile.workplace import Failure, Workplace, model, sentence

WARM = ("en-fr/bahdanau", "the dog runs", {})


def strategy():
    name = st.sampled_from(["en-fr/bahdanau", "en-fr/luong-local", "en-fr/transformer", "en-fr/fixed-context"])
    beams = st.one_of(st.sampled_from([1, 2, 5, "5", None, 2.5, 0, 21, True, 10**30]), strategies.numbers)
    more = st.fixed_dictionaries({}, optional={"target": st.one_of(st.none(), strategies.texts), "beam": beams})
    return st.tuples(name, st.one_of(strategies.texts, strategies.texts, strategies.plain), more)


def check(place: Workplace, case) -> None:
    """Texts, targets and beams in the library; what comes out can be saved and drawn."""
    from attnviz import figures, select
    from attnviz.export import bundle
    from attnviz.trace import Trace

    name, text, more = case
    trace = None
    with sentence():
        trace = model(place.root, name).trace(text, **more)
    if trace is None:
        return
    if Trace.from_json(trace.to_json()) != trace:
        raise Failure("a trace is another one after it was saved")
    if trace.maps:
        figures.heatmap(select.select(trace, trace.maps[0].kind)).to_json()
    bundle.trace_json(trace)
