"""The page of heads: every layer and head of one model on one text. Every panel is a separate module; only a
classifier's label is here."""

import contextlib
import functools
from collections.abc import Iterator

import streamlit as st

from attnviz import figures, mechanisms, select
from attnviz.figures.wording import signed
from attnviz.models.names import ModelName
from attnviz.trace import files
from dashboard.browser.plot import named, plots
from dashboard.choices import pairs
from dashboard.choices.options import HF, SAVED
from dashboard.heads import ablation, comparison, layers, maps, patterns, scene, sources, syntax, writing
from dashboard.heads.scene import HeadsChoices, HeadsScene
from dashboard.markup import card, tables, terms
from dashboard.markup.text import escape, named_card, output, unread
from dashboard.markup.text import source as source_words
from dashboard.session import address, caches, memory
from dashboard.shell import downloads, frame, widgets
from dashboard.shell.problems import SceneError, Waiting, Wanted

_SOON = 10  # s that reading a text may take without a question
_READS = "reads this long text"  # in the session


@address.fragment
def show(fields: dict) -> None:
    """Draw the page for the sidebar's choices; a text that fails leaves the last good picture.

    It is a fragment, as is every panel with controls, so that a choice redraws only its panel.
    """
    text = _text(fields)
    if (source := fields["source"]) and source.writes_on:
        try:
            chosen = writing.controls(source.languages.piece, source.begins_with, _is_long(source, text))
            fields = fields | {"writing": chosen}
        except SceneError as error:
            fields = fields | {"problem": error}
    named = [source.name] if isinstance(source, sources.HuggingFaceSource) else []
    if named and not fields["problem"]:
        fields = fields | {"problem": _may_take_long(source, text)}
    with frame.composed("heads", lambda: _compose(fields, text), _wanted(fields, text), named) as current:
        if current is not None:
            _draw(current, frame.is_dark())
    writing.go_on()


def _wanted(fields: dict, text: str) -> Iterator[Wanted]:
    """Request the trace of a model, unless the text is refused."""
    source = fields["source"]
    if isinstance(source, sources.TrainedSource | sources.HuggingFaceSource) and not fields.get("writing"):
        with contextlib.suppress(SceneError):
            source.check(text)
            yield caches.ask([source.name], text, fields["output"].strip() or None)


def _is_long(source: scene.Source, text: str) -> bool:
    """Is the text too long to be written on?"""
    with contextlib.suppress(ValueError):  # composing the scene says what is wrong
        return bool(text.strip()) and source.is_long(text)
    return False


def _may_take_long(source: sources.HuggingFaceSource, text: str) -> SceneError | None:
    """The warning before a long text is read that takes more than a few seconds; a button beside it goes on."""
    try:
        seconds = source.seconds(text)
    except ValueError:  # composing the scene says what is wrong
        return None
    if seconds <= _SOON or st.session_state.get(_READS) == (source.key, text):
        return None
    took = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"
    st.button("Read it", key="read_long", on_click=st.session_state.update, args=({_READS: (source.key, text)},))
    return Waiting(
        f"This text is long: reading it takes one processor about {took}. Click “Read it” to go on, or shorten it."
    )


def _draw(current: HeadsScene, dark: bool) -> None:
    if isinstance(current, scene.LongScene):
        _draw_long(current, dark)
        return
    if isinstance(source := current.choices.source, sources.TrainedSource):
        _name(current, source, dark)
    languages = current.choices.languages
    if languages.classifies:
        _show_label(current, dark)
    elif current.choices.writing:
        writing.show(current, dark)
    else:
        st.html(output(current.trace, languages.target, languages.piece))
    if current.trace.notes:
        st.html(f'<p class="small">{escape(" ".join(current.trace.notes))}</p>')
    st.html(terms.line("head", "piece", "<eos>", "log-probability", piece=languages.piece))
    maps.show_all(current, dark)
    maps.show_closeup(current, dark)
    if writing.playing():
        st.html('<p class="small" role="status">The other panels follow when the writing pauses.</p>')
        return
    if current.choices.writing:
        layers.show_residual(current)
    comparison.show(current, dark)
    comparison.show_table(current)
    words = "Everything that this page shows. Open it here as “A saved trace”, or in Python with attnviz.load_trace()."
    build = functools.partial(files.pack, current.trace)
    downloads.button("Trace (safetensors)", build, "trace.safetensors", key="keep", help=words)
    patterns.show(current, dark)
    patterns.show_search(current, dark)
    # the parser reads whole sentences
    if not (current.choices.writing and (languages.writes or current.choices.writing.steps)):
        syntax.show(current, dark)
    if current.choices.writing:
        writing.show_changes(current, dark)
    for show_panel in (layers.show, comparison.show_other_model, ablation.show, ablation.show_importance):
        show_panel(current, dark)
    st.html(terms.caveat())


def _draw_long(current: scene.LongScene, dark: bool) -> None:
    maps.show_long(current, dark)
    comparison.show_table(current)
    words = "The overview and the statistics, without the full maps. Open it here as “A saved trace”."
    file, key = "reduced.safetensors", "keep_reduced"
    downloads.button("Reduced trace (safetensors)", current.reduced.pack, file, key, help=words)


def _name(current: HeadsScene, source: sources.TrainedSource, dark: bool) -> None:
    """The model with its card, or the moment of a training that it is of, which has none."""
    at_moment = ModelName.parse(source.name).moment >= 0
    st.html(named_card(source.title, "" if at_moment else card.show(caches.card(source.name))))
    if at_moment:
        writing.show_training(current, dark)


def _text(fields: dict) -> str:
    """The text to read: typed, or that of the saved trace."""
    model, source = fields["model"], fields["source"]
    if model == HF:
        facts = pairs.ANY
        text = st.text_input(facts.ask, facts.first, key="text", bind="query-params", placeholder=facts.hint)
        if source:
            st.html(f'<div class="tokens">at most {source.guest.context} tokens of this model</div>')
        return text
    if model == SAVED:
        if source:
            st.html(source_words(source.saved_trace, source.file))
        return source.saved_trace.text if source else ""
    text = widgets.sentence(ModelName.parse(model).pair)
    return widgets.one_sentence(text, () if fields["output"].strip() else caches.one_by_one([model], text))


def _compose(fields: dict, text: str) -> HeadsScene:
    if fields["problem"]:
        raise fields["problem"]
    chosen = {name: value for name, value in fields.items() if name not in ("model", "problem")}
    return scene.compose(HeadsChoices(text, **chosen), caches.measure)


def _show_label(current: HeadsScene, dark: bool) -> None:
    """A classifier's label with all probabilities, the pooling weights, and how much each head matters."""
    chances = " · ".join(f"{escape(label.text)} {label.probability:.3f}" for label in current.trace.alternatives[0])
    verdict = (
        f'<p class="said" role="status"><b>{escape(current.trace.translation)}</b><br><small>probability: '
        f"{chances}</small></p>"
    )
    grid = select.select(current.shown)
    words = (
        f'{verdict}<p class="what">{escape(mechanisms.find(current.choices.mechanism).words)} Below: the weight '
        f"of each token, on a scale that ends near the largest.{unread(current.trace)}</p>"
    )
    left, right = st.columns([3, 2], gap="large")
    with left:
        plots([(words, named(figures.step_bars(grid, 0, whole=False, dark=dark), "pooling", dark))], "verdict")
    right.html(_used(current))
    if current.choices.tables:
        st.html(tables.grid_table("Pooling weight of each token", grid, current.choices.languages, ".3f"))


def _used(current: HeadsScene) -> str:
    """Switch off each head alone. There are few heads, so this needs no button."""
    name, trace = current.choices.source.name, current.trace
    label, measured = trace.translation, memory.head_changes(st.session_state, name, trace.text)
    measured += caches.importance(name, trace.text, label, current.all_heads[len(measured) :])
    rows = [(head.head.title, [signed(head.change)]) for head in sorted(measured, key=lambda head: head.change)]
    caption = (
        f"How much each head matters: change in the log-probability of “{label}” (nats) when the head is switched off. "
        f"Negative: the model is less sure of “{label}” without this head."
    )
    return tables.table(caption, ["change (nats)"], rows)
