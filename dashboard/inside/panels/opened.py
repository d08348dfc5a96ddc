"""One step opened: who asks, scores, weights, one score taken apart, and the next tokens."""

import html

import streamlit as st

from attnviz import inside
from attnviz.figures import labels
from attnviz.figures.inside import product_spread, score_bars, score_parts
from attnviz.inside import Step
from dashboard.browser.plot import named, plots
from dashboard.inside import caches
from dashboard.inside.scene import InsideScene
from dashboard.markup import tables
from dashboard.markup.text import markdown, said
from dashboard.shell import frame
from dashboard.shell.problems import sentence

ASKS = {
    "before": "The query is the decoder’s state <b>before</b> this step. It does not yet include the token just "
    "written. Then the decoder steps, with the context.",
    "after": "The decoder steps first. The query is its state <b>after</b> the step, which includes the "
    "token just written.",
    "layer": "The query is this layer’s state for the target so far, times the head’s query matrix.",
}
_TEMPERATURES = (0.25, 0.5, 1.0, 2.0, 4.0)


@st.fragment
def show(current: InsideScene, dark: bool) -> None:
    st.subheader("Inside one step", divider="gray")
    steps = len(current.trace.target)
    frame.slider_value("step", 1, steps)
    if steps > 1:
        st.slider(f"Step (1 to {steps})", 1, steps, key="step", bind="query-params", help="A step is one target token.")
    try:
        opened = caches.step(
            current.choices.model,
            current.trace,
            st.session_state["step"] - 1,
            current.choices.layer,
            current.choices.head,
        )
    except ValueError as error:
        st.error(markdown(sentence(str(error))), icon=":material/info:")
        return
    key = _key(opened)
    st.html(_asked(current, opened))
    figures = [
        ("<h4>Scores become weights</h4>", named(score_bars(opened, dark=dark), "scores and weights", dark)),
        (_parts_title(opened, key), named(score_parts(opened, key, dark=dark), "one score taken apart", dark)),
    ]
    plots(figures, "opened")
    st.latex(inside.formula(opened, key))
    left, right = st.columns(2)
    left.html(_next(current, opened))
    with right:
        _temperature(opened)
    if current.choices.tables:
        st.html(_table(current, opened))
    _why_scaled(dark)


def _key(opened: Step) -> int:
    """The source token whose score is taken apart; at first the one with the largest weight."""
    options = list(range(len(opened.keys)))
    if st.session_state.get("cell") not in options:
        st.session_state["cell"] = int(opened.weights.argmax())
    return st.selectbox(
        "Source token whose score is taken apart",
        options,
        format_func=lambda key: f"{key + 1} {labels.plain(opened.keys[key].text)}",
        key="cell",
    )


def _asked(current: InsideScene, opened: Step) -> str:
    token = said(labels.plain(opened.token.text), current.languages.target, "b")
    window = ""
    if opened.window:
        window = (
            f" It predicts the place {opened.window.centre + 1:.1f} in the source and looks {opened.window.reach:g} "
            "tokens to either side."
        )
    words = f"Step {opened.step + 1} writes {token}{current.place}. {ASKS[opened.asks]}{window}"
    return f'<p class="what" role="status">{words}</p>'


def _parts_title(opened: Step, key: int) -> str:
    token = html.escape(labels.quoted(opened.keys[key]))
    return f"<h4>The score of {token}: a sum over {opened.parts.terms.shape[1]} {opened.parts.unit}s</h4>"


def _next(current: InsideScene, opened: Step) -> str:
    rows = [(labels.plain(choice.text), [f"{choice.probability:.4f}"]) for choice in opened.alternatives]
    return tables.table("The most probable next tokens", ["probability"], rows, (current.languages.target, "en"))


def _temperature(opened: Step) -> None:
    measured = inside.temperatures(opened, _TEMPERATURES)
    rows = [
        (f"{row.temperature:g}", [f"{row.entropy_nats:.3f}", f"{row.max_weight:.3f}"]) for row in measured.itertuples()
    ]
    st.html(
        tables.table(
            "The same scores divided by a temperature (1: the model)", ["entropy (nats)", "maximum weight"], rows
        )
    )


def _table(current: InsideScene, opened: Step) -> str:
    rows = [
        (
            f"{place + 1} {labels.plain(token.text)}",
            [f"{opened.scores[place]:.4f}" if opened.mask[place] else "–", f"{opened.weights[place]:.4f}"],
        )
        for place, token in enumerate(opened.keys)
    ]
    return tables.table("Scores and weights of this step", ["score", "weight"], rows, (current.languages.source, "en"))


def _why_scaled(dark: bool) -> None:
    with st.expander("Why dot products are divided by the root of their width"):
        figure = product_spread(inside.spread(samples=300), dark=dark)
        st.html(f'<p class="small">{html.escape(figure.description)}</p>')
        plots([("", named(figure, "spread of dot products", dark))], "spread")
