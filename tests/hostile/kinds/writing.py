"""A text written on, with any prompt and any way to draw the next token."""

from hypothesis import strategies as st

from tests.hostile import strategies
from tests.hostile.workplace import Failure, Workplace, model, sentence

WARM = ("en/writer", "The dog", {})
STEPS = (1, 2, 40, 10**9, 0, -1, 2.5, "5", None, True, 10**30)
TEMPERATURES = (0, -0.0, 1e-300, 1e-9, 0.5, 1, 100, 101, float("nan"), float("inf"), -1, None, "1", True, 10**400)
SHARES = (0, 1e-300, 1e-9, 0.5, 1, 1.0000001, float("nan"), -1, None, True)
COUNTS = (0, 1, 5, 10**9, 2**63, 10**30, -1, 1.5, None, True)


def strategy():
    how = st.fixed_dictionaries(
        {},
        optional={
            "steps": st.one_of(st.sampled_from(STEPS), strategies.plain),
            "temperature": st.one_of(st.sampled_from(TEMPERATURES), strategies.numbers),
            "top_k": st.one_of(st.sampled_from(COUNTS), strategies.numbers),
            "top_p": st.one_of(st.sampled_from(SHARES), strategies.numbers),
            "seed": st.one_of(st.sampled_from(COUNTS), strategies.numbers),
            "choices": st.one_of(
                st.none(), st.dictionaries(st.integers(-1, 9), st.one_of(st.integers(-2, 150), strategies.numbers))
            ),
        },
    )
    return st.tuples(
        st.sampled_from(["en/writer", "shakespeare/writer"]), st.one_of(strategies.texts, strategies.plain), how
    )


def check(place: Workplace, case) -> None:
    """What was written can be saved, drawn, and asked for the tokens that could come next."""
    from attnviz import figures, select
    from attnviz.networks.writing import Sampling
    from attnviz.trace import Trace

    name, prompt, how = case
    writer, trace = model(place.root, name), None
    with sentence():
        trace = writer.write(prompt, **how)
    if trace is None:
        return
    if Trace.from_json(trace.to_json()) != trace:
        raise Failure("a trace is another one after it was saved")
    figures.heatmap(select.select(trace, "decoder")).to_json()
    settings = {setting: how[setting] for setting in ("temperature", "top_k", "top_p", "seed") if setting in how}
    for place_of in (0, len(trace.source), len(trace.target)):
        writer.candidates(trace, place_of, Sampling(**settings))
