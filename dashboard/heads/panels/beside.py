"""The same heads of another model, or of the same model on another text, side by side."""

import html
from dataclasses import replace

import streamlit as st

from attnviz import figures
from attnviz.export import heading
from dashboard.browser.plot import Cell, named, plots
from dashboard.choices.options import kind_title, model_title
from dashboard.heads import scene, sources
from dashboard.heads.scene import COLUMNS, HeadsScene
from dashboard.markup import tables
from dashboard.markup.text import markdown, said
from dashboard.session import address, caches, catalogue
from dashboard.shell.problems import SceneError

_COMPARED = ("entropy_nats", "max_weight", "distance", "special_mass")


@address.fragment
def show(current: HeadsScene, dark: bool) -> None:
    st.subheader("Compare with another model or text", divider="gray")
    model, text = _controls()
    if not model:
        st.html(
            '<p class="small" role="status">Choose a model above. Choose the same model to compare two texts, or '
            "another model to compare models.</p>"
        )
        return
    source = sources.TrainedSource(model)
    choices = replace(current.choices, source=source, text=text.strip() or current.input, output="", writing=None)
    try:
        if choices.kind not in source.kinds:
            raise SceneError(f"{source.title} has no heads of this kind. Choose another kind of attention on the left.")
        other = scene.compose(choices, caches.measure)
    except SceneError as error:
        st.info(markdown(str(error)), icon=":material/info:")
        return
    plots([_overview(side, dark) for side in (current, other)], "beside")
    st.html(_means(current, other))


def _controls() -> tuple[str, str]:
    """The other model, "" for none, and its text, "" for the same."""
    with st.container(horizontal=True):
        model = st.selectbox(
            "Model to compare with",
            ["", *catalogue.many_headed()],
            format_func=lambda name: model_title(name) if name else "none",
            key="beside",
            bind="query-params",
        )
        text = st.text_input(
            "Its text", key="beside_text", bind="query-params", placeholder="empty: the same text", disabled=not model
        )
    return model, text


def _overview(side: HeadsScene, dark: bool) -> Cell:
    """All heads of the kind, under the model, its text and its output."""
    languages, kind = side.choices.languages, side.choices.kind
    output = f" → {said(side.target, languages.target)}" if side.target else ""
    words = (
        f"<h4>{html.escape(side.name)}</h4>"
        f'<p class="what">{kind_title(kind)}. {said(side.text, languages.source)}{output}</p>'
    )
    figure = figures.overview(side.shown, kind, root=side.choices.root, dark=dark)
    return words, named(figure, f"overview beside {side.name} {kind}", dark, lines=heading.of_heads(side.shown, kind))


def _means(*scenes: HeadsScene) -> str:
    """The mean of each statistic over all heads of the kind."""
    rows = [
        (COLUMNS[name], [tables.cell(float(side.table[name].mean()), ".3f") for side in scenes]) for name in _COMPARED
    ]
    names = [f"{side.name}: {side.text}" if scenes[0].name == scenes[1].name else side.name for side in scenes]
    return tables.table("Mean over all heads, of their means over the rows", names, rows)
