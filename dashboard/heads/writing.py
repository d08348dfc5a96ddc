"""The panels of a model that continues the text token by token: candidates for the next token, the text with and
without the last choice, and its output under changed attention or after another word."""

import time
from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from attnviz import figures, intervene, select
from attnviz.export import heading
from attnviz.figures.labels import plain
from attnviz.figures.learning import over_time
from attnviz.figures.what_if import effect_bars
from attnviz.figures.wording import signed
from attnviz.intervene import Change, Outcome, Rewritten, Scope, Word
from attnviz.models.names import ModelName
from attnviz.networks.writing import Sampling
from attnviz.trace import Trace
from dashboard.browser.plot import named, plots
from dashboard.choices.options import MOST_WRITTEN, Writing
from dashboard.compare.caches import course
from dashboard.heads.scene import HeadsScene
from dashboard.inside import effects
from dashboard.markup import tables
from dashboard.markup.text import continued, escape, markdown, number
from dashboard.session import address, caches
from dashboard.shell import frame, turns
from dashboard.shell.frame import slider_value
from dashboard.shell.problems import SceneError, sentence

BEAT = 0.25  # s a token is shown while playing
_PLAYING, _NEXT = "writing plays", "writes one more token"  # in the session
_TEMPERATURES = (0.0, 0.2, 0.5, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2.0)
_TOP_K = (0, 1, 2, 3, 5, 10, 20, 40)
_CHANGES = {"": "none"} | {
    name: kind.title
    for name, kind in intervene.KINDS.items()
    if isinstance(kind.title, str) and name not in ("identity", "given", "last-only")
}
_CHANGES["last-only"] = "only the token itself"
_RULES = {"permuted": "permuted:0"}  # those with a number
_MEASURED = {  # at the moments of a training
    "loss": "Loss (nats a token)",
    "previous": "Best head: previous token",
    "first": "Best head: first token",
    "induction": "Best head: induction",
}
_TOP_P = (1.0, 0.99, 0.95, 0.9, 0.8, 0.5, 0.2)


def controls(piece: str, steps: int, only_read: bool = False) -> Writing:
    """The buttons, and the sampling controls. piece : the noun for a token. steps : the number of tokens written by
    default. only_read : the text is too long to be written on, so the buttons rest. Raises SceneError for invalid
    choices in a link."""
    if st.session_state.pop(_NEXT, False):
        _move(1)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        steps = st.slider(f"{piece.capitalize()}s written", 0, MOST_WRITTEN, steps, key="written", bind="query-params")
        at_end = only_read or steps == MOST_WRITTEN
        st.button("Pause" if playing() else "Play", key="play_writing", on_click=_play, disabled=at_end)
        st.button("One step", key="write_step", on_click=_move, args=(1,), disabled=at_end)
        st.button("Back", key="write_back", on_click=_move, args=(-1,), disabled=only_read or steps == 0)
    with st.container(horizontal=True):
        chosen = _sampling()
        way = st.text_input(
            "Tokens that you chose",
            key="way",
            bind="query-params",
            placeholder="none: click one below",
            help="Step, colon, and the number of the token in the vocabulary. Empty this field to undo your choices.",
        )
    return Writing(steps, **chosen, choices=_choices(way))


def _sampling() -> dict:
    """Temperature, cut-offs and seed."""
    return {
        "temperature": st.selectbox(
            "Temperature",
            _TEMPERATURES,
            _TEMPERATURES.index(0.8),
            format_func=lambda value: f"{value:g}" if value else "0 (greedy)",
            key="temperature",
            bind="query-params",
            help="The logits are divided by it. Below 1, probable tokens become more probable.",
        ),
        "top_k": st.selectbox(
            "Top-k",
            _TOP_K,
            format_func=lambda value: str(value) if value else "all",
            key="top_k",
            bind="query-params",
            help="Only so many of the most probable tokens can be drawn.",
        ),
        "top_p": st.selectbox(
            "Top-p",
            _TOP_P,
            format_func=lambda value: f"{value:g}" if value < 1 else "all",
            key="top_p",
            bind="query-params",
            help="Only the fewest tokens that together have this probability can be drawn.",
        ),
        "seed": st.selectbox("Seed", range(1, 21), key="chance", bind="query-params", help="Of the random numbers."),
    }


def _choices(way: str) -> tuple[tuple[int, int], ...]:
    """`5:43 9:12` -> ((5, 43), (9, 12)); a step from 0 and a token."""
    pairs = [word.split(":") for word in way.split()]
    if any(
        len(pair) != 2 or not all(part.isascii() and part.isdecimal() and len(part) < 7 for part in pair)
        for pair in pairs
    ):
        raise SceneError(f"Your choices must be like 5:43 9:12, steps and numbers of tokens; got {way[:80]}.")
    return tuple(sorted({int(step): int(token) for step, token in pairs}.items()))


def playing() -> bool:
    return bool(st.session_state.get(_PLAYING))


def _play() -> None:
    st.session_state[_PLAYING] = not playing()


def _move(by: int) -> None:
    written = st.session_state.get("written", 0) + by
    st.session_state["written"] = min(max(written, 0), MOST_WRITTEN)
    if by < 0:
        st.session_state[_PLAYING] = False


def go_on() -> None:
    """While it plays, write another token after a pause. Call it at the end of a run."""
    if not playing():
        return
    if st.session_state.get("written", MOST_WRITTEN) >= MOST_WRITTEN:
        st.session_state[_PLAYING] = False
        return
    time.sleep(BEAT)
    st.session_state[_NEXT] = True
    st.rerun(scope="fragment" if address.runs_alone() else "app")


def show_training(current: HeadsScene, dark: bool) -> None:
    """The model at a moment of a training: what was measured at each moment, and a button that plays them."""
    name = ModelName.parse(current.choices.source.name)
    rows, title = course(name.trained), current.choices.source.title
    row = rows[name.moment]
    st.html(
        f'<p class="what">After {row["update"]:,} updates: loss {row["loss"]:.2f} nats a token. The best head has a '
        f"mean weight of {row['previous']:.2f} on the previous token, {row['first']:.2f} on the first, and "
        f"{row['induction']:.2f} by induction. These moments are of a run of their own. The last one is the model of "
        "that run and not the model that ships. Choose “as it ships” to see that one and its card.</p>"
    )
    frame.play_moments("playing_moments", "moment", len(rows) - 1)
    measured = {"moment": [*range(1, len(rows) + 1)], **{key: [row[key] for row in rows] for key in _MEASURED}}
    figure = over_time({title: measured}, panels=_MEASURED, unit="moment", at=name.moment + 1, dark=dark)
    lines = ["Training: loss on validation, and the best heads"]
    plots([("", named(figure, "training", dark, lines=lines))], "training")


def show(current: HeadsScene, dark: bool) -> None:
    """Show the text, the candidates for the next token, and the text with and without the last choice."""
    st.subheader("Write on", divider="gray")
    writing, trace = current.choices.writing, current.trace
    ended = bool(trace.target) and trace.target[-1].special
    if ended or len(trace.target) < trace.given + writing.steps:
        st.session_state[_PLAYING] = False
    piece = current.choices.languages.piece
    st.html(continued(trace, piece))
    with turns.errors_shown():
        if ended:
            st.html('<p class="what" role="status">The model ended the text here, with &lt;eos&gt;.</p>')
        elif candidates := caches.candidates(current.choices.source.name, trace, writing):
            _candidates(current, candidates, dark)
        else:
            st.html(f'<p class="what" role="status">The context of the model is full: no {piece} can follow.</p>')
        if (other := other_way(current)) is not None:
            _both_ways(current, other)


def _candidates(current: HeadsScene, candidates, dark: bool) -> None:
    """Bars of the tokens that may come next, and a button for each."""
    writing, piece = current.choices.writing, current.choices.languages.piece
    names = [plain(candidate.text) for candidate in candidates]
    numbers = [(candidate.probability, candidate.drawn) for candidate in candidates]
    words = (
        f'<p class="what">The most probable next {piece}s: beside the probability of the model is the one that a '
        f"{piece} is drawn with, after temperature and cut-offs. Click a {piece} below to go that way.</p>"
    )
    plots([(words, named(figures.next_tokens(names, *zip(*numbers), dark=dark), f"next {piece}s", dark))], "next")
    if current.choices.tables:
        rows = tables.of_numbers(names, numbers, ".4f")
        st.html(tables.table(f"The most probable next {piece}s", ["of the model", "drawn with"], rows))
    with st.container(horizontal=True, gap="xxsmall"):
        for candidate, name in zip(candidates, names):
            st.button(
                markdown(name),
                key=f"candidate{candidate.id}",
                on_click=_choose,
                args=(writing, candidate.id),
                disabled=writing.steps >= MOST_WRITTEN,
            )


def _choose(writing: Writing, token: int) -> None:
    """Take a token as the next one. Choices of later steps are dropped, because they belong to the old continuation."""
    earlier = [(step, number) for step, number in writing.choices if step < writing.steps]
    st.session_state["way"] = " ".join(f"{step}:{number}" for step, number in [*earlier, (writing.steps, token)])
    st.session_state["written"] = writing.steps + 1


def other_way(current: HeadsScene) -> Trace | None:
    """The text without the last choice, with as many tokens; None if nothing was chosen."""
    writing = current.choices.writing
    if writing is None or not (made := _made(writing)):
        return None
    try:
        return current.choices.source.write(current.text, replace(writing, choices=tuple(made[:-1])))
    except ValueError as error:
        raise SceneError(sentence(str(error))) from None


def _made(writing: Writing) -> list[tuple[int, int]]:
    """The choices of the tokens that are written."""
    return [choice for choice in writing.choices if choice[0] < writing.steps]


def _both_ways(current: HeadsScene, other: Trace) -> None:
    """The text with and without the last choice, side by side, their common part in plain type."""
    fork = current.trace.given + _made(current.choices.writing)[-1][0]
    ways = {"Your choice": current.trace, "Without it": other}
    plots([(_way(name, way, fork),) for name, way in ways.items()], "ways")
    st.html(
        '<p class="small">What differs is in bold. The close-up shows the opened head for both ways, that without '
        "your choice below.</p>"
    )


def _way(name: str, way: Trace, fork: int) -> str:
    start = way.target[fork].start if fork < len(way.target) else len(way.translation)
    log_prob = number(sum(way.log_probs[fork:]))
    return (
        f'<h4>{name}</h4><p class="said" style="white-space: pre-wrap">{escape(way.translation[:start])}'
        f"<b>{escape(way.translation[start:])}</b><br><small>log-probability of what differs: {log_prob}</small></p>"
    )


@address.fragment
def show_changes(current: HeadsScene, dark: bool) -> None:
    """The text under changed self-attention, and after a prompt with another word."""
    st.subheader("Change attention, or a word", divider="gray")
    if not current.trace.target:  # of the transformers library: such a model gives no row to a text that it only reads
        st.html('<p class="small" role="status">Let the model write a token first.</p>')
        return
    first, second, third = st.columns(3)
    change = first.selectbox("Change", list(_CHANGES), format_func=_CHANGES.get, key="rule", bind="query-params")
    places = [(layer, None) for layer in (None, *current.layers)]
    places += [(head.layer, head.head) for head in current.heads]
    layer, head = second.selectbox("Where", places, format_func=_place, key="rule_place", bind="query-params")
    count = len(current.trace.target)
    slider_value("rule_row", 0, count)
    row = third.slider(f"Row (1 to {count}; 0 for all)", 0, count, key="rule_row", bind="query-params")
    if change:
        scope = intervene.Scope((row - 1,) if row else None, None, layer, head)
        _or_why_not(lambda: _effect(current, intervene.parse(_RULES.get(change, change)), scope, dark))
    words = intervene.words(current.trace)
    left, right = st.columns(2)
    number = frame.numbered(
        "Word of the prompt", key="prompt_word", names=[w.text for w in words], none="none", within=left
    )
    new = right.text_input(
        "Its replacement", key="prompt_new", bind="query-params", max_chars=50, placeholder="empty: an unknown piece"
    )
    if number >= 0:
        _or_why_not(lambda: _effect_of_word(current, words[number], new.strip() or intervene.MASK, dark))
    if st.toggle("Does attention matter? Change each row alone", key="rows_alone", bind="query-params"):
        _or_why_not(lambda: _rows_alone(current))


def _or_why_not(show: Callable[[], None]) -> None:
    """Show a result for the text, or the reason why there is none: the same word, a prompt that is too long, nothing
    written."""
    try:
        show()
    except ValueError as error:
        st.error(markdown(sentence(str(error))), icon=":material/info:")


def _place(place: tuple[int | None, int | None]) -> str:
    """place : layer and head; None for all. The option is not None itself, because Streamlit's select box would then be
    empty after Back."""
    return "all layers and heads" if place[0] is None else select.map_title(*place)


def _sampling_of(writing: Writing) -> Sampling:
    return Sampling(writing.temperature, writing.top_k, writing.top_p, writing.seed)


def _effect(current: HeadsScene, change: Change, scope: Scope, dark: bool) -> None:
    writing = current.choices.writing
    given = current.trace, change, scope, _sampling_of(writing), dict(writing.choices)
    outcome = caches.work(current.choices.source.name, "intervene:written", *given)
    layer = current.layers[-1] if scope.layer is None else scope.layer
    note = f"{_CHANGES[change.name]}, {_place((scope.layer, scope.head))}"
    cells = _effect_cells(outcome, f"under the change ({note})", dark)
    for name, trace in (("as it is", outcome.before), ("under the change", outcome.forced)):
        grid = select.select(trace, "decoder", layer, scope.head)
        title = f"{select.map_title(layer, scope.head)} {name}"
        lines = [title, note, *heading.of_map(trace, grid)]
        figure = named(figures.heatmap(grid, dark=dark), title, dark, lines=lines)
        cells.append((f"<h4>{title[:1].upper()}{title[1:]}, same text</h4>", figure))
    plots(cells, "changed")
    st.html(
        '<p class="small">The model never read so in training, so a word may change for that reason alone. A word that '
        "stays can be written without this attention.</p>"
    )
    if current.choices.tables:
        st.html(effects.effect_table("Each token under the change, same text", outcome, 1, "en"))


def _effect_of_word(current: HeadsScene, word: Word, new: str, dark: bool) -> None:
    given = current.trace, word, new, _sampling_of(current.choices.writing)
    outcome = caches.work(current.choices.source.name, "intervene:written_after", *given)
    plots(_effect_cells(outcome, "after the other prompt", dark), "replaced")
    if current.choices.tables:
        st.html(effects.effect_table("Each token after the other prompt, same text", outcome, 1, "en"))


def _effect_cells(outcome: Outcome | Rewritten, how: str, dark: bool) -> list[tuple]:
    """Both texts, and the effect on each token."""
    texts = effects.marked(outcome.before.translation, outcome.free.translation, "en")
    change = signed(float(outcome.log_prob_changes.sum()), 2)
    words = (
        f'<dl class="versions" style="white-space: pre-wrap"><dt>As it is</dt><dd>{texts[0]}</dd>'
        f"<dt>Written {escape(how)}</dt><dd>{texts[1]}</dd>"
        f"<dt>The unchanged tokens, forced</dt><dd><small>{change} nats</small></dd></dl>"
    )
    name = f"Each token {how}, same text"
    changes = outcome.log_prob_changes, outcome.total_variation
    figure = effect_bars(effects.tokens_of(outcome), *changes, dark=dark)
    lines = heading.of_trace(name, outcome.before)
    return [(words,), (f"<h4>{escape(name)}</h4>", named(figure, name, dark, lines=lines))]


def _rows_alone(current: HeadsScene) -> None:
    """For each change: the number of rows whose most probable next token is unchanged, and the change of the
    distribution."""
    measured = caches.work(current.choices.source.name, "faithfulness:written", current.trace)
    rows = [
        (_CHANGES[name.partition(":")[0]], [f"{part['preserved'].mean():.0%}", f"{part['total_variation'].mean():.3f}"])
        for name, part in measured.groupby("change", sort=False)
    ]
    count = len(current.trace.target)
    columns = ["rows where the most probable token stays", "mean total variation (0 to 1)"]
    st.html(tables.table(f"Attention changed in one of {count} rows at a time, in all layers and heads", columns, rows))
