"""The panels of a model that writes on after the text, token by token: what could come next, both ways where a person
chose, and what the model would say after each layer."""

import time
from dataclasses import replace

import streamlit as st
from streamlit.errors import StreamlitAPIException

from attnviz import figures
from attnviz.figures.labels import plain
from attnviz.trace import Trace
from dashboard.browser.plot import named, plots
from dashboard.heads.scene import HeadsScene, Writing
from dashboard.markup import tables
from dashboard.markup.text import escape, markdown, number
from dashboard.session import caches
from dashboard.shell.problems import SceneError, sentence

MOST = 200  # tokens written
BEAT = 0.25  # s a token is shown while playing
_PLAYING, _NEXT = "writing plays", "writes one more token"  # in the session
_TEMPERATURES = (0.0, 0.2, 0.5, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2.0)
_TOP_K = (0, 1, 2, 3, 5, 10, 20, 40)
_TOP_P = (1.0, 0.99, 0.95, 0.9, 0.8, 0.5, 0.2)
_PLACES = 12  # of the text, the last ones
_TOLERANCE = 1e-3  # of a sum of float32 numbers


def controls(piece: str, steps: int) -> Writing:
    """The buttons, and how a token is chosen. piece : what it writes, in one word. steps : how many of them before a
    person chooses. Raises SceneError for choices that a link spells wrongly."""
    if st.session_state.pop(_NEXT, False):
        _move(1)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        steps = st.slider(f"{piece.capitalize()}s written", 0, MOST, steps, key="written", bind="query-params")
        st.button("Pause" if playing() else "Play", key="play_writing", on_click=_play, disabled=steps == MOST)
        st.button("One step", key="write_step", on_click=_move, args=(1,), disabled=steps == MOST)
        st.button("Back", key="write_back", on_click=_move, args=(-1,), disabled=steps == 0)
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
    st.session_state["written"] = min(max(written, 0), MOST)
    if by < 0:
        st.session_state[_PLAYING] = False


def go_on() -> None:
    """While it plays, write one more token after a moment. Call it at the end of a run."""
    if not playing():
        return
    if st.session_state.get("written", MOST) >= MOST:
        st.session_state[_PLAYING] = False
        return
    time.sleep(BEAT)
    st.session_state[_NEXT] = True
    try:
        st.rerun(scope="fragment")
    except StreamlitAPIException:  # the whole page was run
        st.rerun()


def show(current: HeadsScene, dark: bool) -> None:
    """The text, the tokens that may come next, and both ways after the last choice."""
    st.subheader("Write on", divider="gray")
    writing, trace = current.choices.writing, current.trace
    ended = bool(trace.target) and trace.target[-1].special
    if ended or len(trace.target) < trace.given + writing.steps:
        st.session_state[_PLAYING] = False
    st.html(_text(current, trace))
    piece = current.choices.languages.piece
    if ended:
        st.html('<p class="what" role="status">The model ended the text here, with &lt;eos&gt;.</p>')
    elif candidates := caches.candidates(current.choices.source.name, trace, writing):
        _candidates(current, candidates, dark)
    else:
        st.html(f'<p class="what" role="status">The context of the model is full: no {piece} can follow.</p>')
    if (other := other_way(current)) is not None:
        _both_ways(current, other)
    st.html(
        '<p class="small">Below, one can switch heads off for this text. Changed attention, replaced tokens and the '
        "pages Inside a step and Many sentences do not work for a model that writes yet.</p>"
    )


def _text(current: HeadsScene, trace) -> str:
    """The text as typed, and what was written after it, the last token marked."""
    written = [token for token in trace.target[trace.given :] if not token.special]
    whole = trace.translation or trace.text  # a model of somebody's own only reads a text that it does not go on with
    start = written[0].start if written else len(whole)
    given, rest = whole[:start], whole[start:]
    last = f"<mark>{escape(trace.translation[written[-1].start :])}</mark>" if written else ""
    middle = escape(rest[: len(rest) - len(trace.translation[written[-1].start :])] if written else "")
    log_prob = sum(trace.log_probs[trace.given :])
    return (
        f'<p class="said" role="status" style="white-space: pre-wrap">{escape(given)}<b>{middle}{last}</b><br>'
        f"<small>{len(written)} {current.choices.languages.piece}s written, in bold; their log-probability: "
        f"{number(log_prob)}</small></p>"
    )


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
        rows = [(name, [tables.cell(value, ".4f") for value in values]) for name, values in zip(names, numbers)]
        st.html(tables.table(f"The most probable next {piece}s", ["of the model", "drawn with"], rows))
    with st.container(horizontal=True, gap="xxsmall"):
        for candidate, name in zip(candidates, names):
            st.button(
                markdown(name),
                key=f"candidate{candidate.id}",
                on_click=_choose,
                args=(writing, candidate.id),
                disabled=writing.steps >= MOST,
            )


def _choose(writing: Writing, token: int) -> None:
    """Take a token as the next one. Choices of later steps belong to the way that is left."""
    earlier = [(step, number) for step, number in writing.choices if step < writing.steps]
    st.session_state["way"] = " ".join(f"{step}:{number}" for step, number in [*earlier, (writing.steps, token)])
    st.session_state["written"] = writing.steps + 1


def other_way(current: HeadsScene) -> Trace | None:
    """The text without the last choice, of as many tokens; None where nothing was chosen."""
    writing = current.choices.writing
    if writing is None or not (made := _made(writing)):
        return None
    try:
        return current.choices.source.write(current.text, replace(writing, choices=tuple(made[:-1])))
    except ValueError as error:
        raise SceneError(str(error)) from None


def _made(writing: Writing) -> list[tuple[int, int]]:
    """The choices of the tokens that are written."""
    return [choice for choice in writing.choices if choice[0] < writing.steps]


def _both_ways(current: HeadsScene, other: Trace) -> None:
    """The text with the last choice beside that without it, what they share in plain type."""
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


def show_residual(current: HeadsScene) -> None:
    """The logit lens as a table, and the parts of the last logit."""
    st.subheader("What it would say after each layer", divider="gray")
    if not current.trace.target:
        st.html('<p class="small" role="status">Let the model write a token, and this shows where it comes from.</p>')
        return
    try:
        layers, parts, logit = caches.stream(current.choices.source.name, current.trace)
    except ValueError as error:  # of a family that is not known well enough
        st.html(f'<p class="small" role="status">{escape(sentence(str(error)))}</p>')
        return
    places = range(max(0, len(current.trace.target) - _PLACES), len(current.trace.target))
    names = [f"{place + 1} {plain(current.trace.target[place].text)}" for place in places]
    best = [[layer.alternatives[place][0] for place in places] for layer in layers]
    rows = [
        ("before layer 1" if number == 0 else f"after layer {number}", [_probable(choice) for choice in row])
        for number, row in enumerate(best)
    ]
    st.html(
        '<p class="what">The logit lens: the final norm and the output matrix are applied to the vector of each '
        "position after each layer (nostalgebraist 2020). A cell has the most probable token and its probability. "
        f"The columns are the last {len(names)} tokens of the text. {escape(_change(best, names))}</p>"
        + tables.table("The most probable token after each layer, in place of each token", names, rows)
    )
    if parts is not None:
        _parts(current, parts, logit)


def _probable(choice) -> str:
    return f"{plain(choice.text)} {choice.probability:.2f}"


def _change(best: list[list], names: list[str]) -> str:
    """In how many places, and after which layer, the most probable token becomes that of the last layer."""
    settled = []
    for column in zip(*best):
        layer = len(column) - 1
        while layer and column[layer - 1].text == column[-1].text:
            layer -= 1
        settled.append(layer)
    counts = [f"{settled.count(layer)} after layer {layer}" for layer in sorted(set(settled)) if layer]
    early = settled.count(0)
    counts = ([f"{early} before layer 1"] if early else []) + counts
    return f"The model comes to its final answer, and keeps it: {', '.join(counts)} (of {len(names)} places)."


def _parts(current: HeadsScene, parts, logit: float) -> None:
    """The direct parts of the logit of the last token, the heads as a table of layers and heads."""
    token = plain(current.trace.target[-1].text)
    rows = [
        (
            f"layer {layer + 1}",
            [*(tables.cell(float(head), "+.2f") for head in heads), tables.cell(float(feed), "+.2f")],
        )
        for layer, (heads, feed) in enumerate(zip(parts.heads[:, :, -1], parts.feeds[:, -1]))
    ]
    columns = [*(f"head {head + 1}" for head in range(parts.heads.shape[1])), "feed-forward"]
    total = float(parts.total()[-1])
    agrees = "equal to" if abs(total - logit) <= _TOLERANCE * max(1, abs(logit)) else "NOT equal to"
    others = float(parts.embedding[-1] + parts.biases[:, -1].sum())
    st.html(
        f'<p class="what">The logit of the last token, {escape(token)}, is a sum of what each part adds directly '
        "(Elhage et al. 2021). What a part changes in later layers is not counted. Embedding and biases add "
        f"{tables.cell(others, '+.2f')}. Sum of all parts: {tables.cell(total, '.3f')}, {agrees} the logit of the "
        f"model, {tables.cell(logit, '.3f')}.</p>"
        + tables.table(f"What each head adds to the logit of {token}", columns, rows)
    )
