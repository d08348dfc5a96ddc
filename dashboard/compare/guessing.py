"""Guess first: maps and bars are hidden until a person has guessed, step by step, at which source words models look.

A guess is stored for the visit, and goes only to a lesson in another tab of the same browser. A teacher's link has
steps, a question and its answer, which is encoded so that nobody reads it in the address by accident.
"""

import base64
import binascii
import contextlib
import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

import numpy as np
import streamlit as st

from attnviz import figures, guess
from attnviz import lazy_pandas as pd
from attnviz.export import heading
from attnviz.figures import labels
from attnviz.figures.theme import lines as line_styles
from attnviz.guess import Overlap
from dashboard.browser.plot import Cell, named, plots
from dashboard.choices import pairs
from dashboard.choices.options import FROM, OWN, facts
from dashboard.compare import pictures
from dashboard.compare.scene import Column, CompareScene, alike
from dashboard.markup import tables
from dashboard.markup.text import escape, in_language, markdown
from dashboard.session import address
from dashboard.shell import downloads, frame

POINTS = 10  # that are dealt out
WORDS, DEALT = "words", f"{POINTS} points"  # two ways to guess
STEPS, QUESTION, ANSWER = LINK_KEYS = ("guess_steps", "guess_question", "guess_answer")  # in the address
MOST = 500  # characters of a question or an answer
RECORD = "what was guessed"  # in the session: a row for each step and model that was shown
_VISIT, _ELSEWHERE = "visit of guesses", "guessed in other tabs"  # in the session; visit -> such rows
_TABS, _ROWS, _MESSAGE = 20, 200, 1_000_000  # other tabs, rows and letters of one, at most
_GUESSES, _LINK = "guesses", "link of a teacher"


@dataclass
class Guesses:
    """The guesses on one text. number : of the text, in this visit. points : step -> the points of each source word.
    shown : steps whose rows have been shown. given_up : is everything shown, guessed or not?"""

    number: int
    points: dict[int, list[int]] = field(default_factory=dict)
    shown: list[int] = field(default_factory=list)
    given_up: bool = False


def prepared(fields: dict) -> dict:
    """The choices of the sidebar, adjusted so that the rows of all models are comparable: cross-attention between
    words, of one text."""
    if not fields["guess"]:
        return fields
    attending = [name for name in fields["mechanisms"] if facts(name).kinds]
    one_text = fields["target"] == OWN and attending
    fields = fields | {"words": pairs.task(fields["pair"]).piece == "piece", "kind": "cross"}
    return fields | ({"target": FROM + attending[0]} if one_text else {})


def hidden(answer: str) -> str:
    """An answer, encoded for a link."""
    return base64.urlsafe_b64encode(answer.encode("utf-8", "replace")).decode().rstrip("=")


def revealed(written: str) -> str:
    """The decoded answer of a link; "" if it cannot be read."""
    try:
        return base64.urlsafe_b64decode(written + "=" * (-len(written) % 4)).decode()[:MOST]
    except (binascii.Error, ValueError):
        return ""


def show(current: CompareScene, dark: bool) -> bool:
    """Draw the guess -> has everything been shown, so that the maps follow?"""
    columns = [column for column in current.mapped if alike(column.grid, current.mapped[0].grid)]
    link, guesses = _link(current.choices.text), _guesses(current)
    steps = _steps(columns, link[STEPS]) if columns else []
    if not steps:
        st.html('<p class="notice">There is nothing to guess: no mechanism here attends to a word.</p>')
        return True
    _task(current, link, guesses, steps)
    step = _chosen(columns[0], steps)
    _guess(columns[0], step, guesses)
    if step in guesses.shown:
        _rows(columns, step, guesses, current.choices.tables, dark)
    _buttons(columns, step, steps, guesses)
    _score(columns, guesses, len(steps))
    _answer(link[ANSWER])
    _take_along(current, columns, guesses)
    finished = guesses.given_up or not set(steps) - set(guesses.shown)
    if finished:
        address.not_also("step")  # the page has its slider
    else:
        address.also("step", lambda held: str(step + 1))
    return finished


def forget_link() -> None:
    """Remove a teacher's link from the address when the switch is off."""
    for key in LINK_KEYS:
        st.query_params.pop(key, None)
    st.session_state.pop(_LINK, None)


def _link(text: str) -> dict[str, str]:
    """The content of a teacher's link for this sentence. It stays in the address while the switch is on and the
    sentence is the same."""
    written = {key: st.query_params.get(key, "")[: 2 * MOST] for key in LINK_KEYS}
    linked = st.session_state.get(_LINK)
    if linked is None or address.came_back() or (any(written.values()) and linked[1] != written):
        linked = st.session_state[_LINK] = text, written
    content = linked[1] if linked[0] == text else dict.fromkeys(LINK_KEYS, "")
    for key, value in content.items():
        address.also(key, lambda held, value=value: value or None)
    return content


def _guesses(current: CompareScene) -> Guesses:
    column, choices = current.columns[0], current.choices
    of_visit = st.session_state.setdefault(_GUESSES, {})
    subject = (choices.pair, choices.text, column.trace.translation, choices.special)
    return of_visit.setdefault(subject, Guesses(len(of_visit)))


def _steps(columns: Sequence[Column], wanted: str) -> list[int]:
    """The steps to guess, from 0: those of the link, such as `2, 4`, else all steps that produce a word."""
    grid = columns[0].grid
    blank = [~np.isfinite(column.grid.weights).all(axis=1) for column in columns]
    words = [
        step
        for step, token in enumerate(grid.queries)
        if not token.special and any(map(str.isalnum, token.text)) and not any(rows[step] for rows in blank)
    ]
    named_steps = {int(part) - 1 for part in re.split(r"[,\s]+", wanted) if re.fullmatch("[1-9][0-9]{0,3}", part)}
    return [step for step in words if step in named_steps] or words


def _task(current: CompareScene, link: dict[str, str], guesses: Guesses, steps: Sequence[int]) -> None:
    """Show the question, and the text that all models write."""
    trace, language = current.mapped[0].trace, current.mapped[0].languages.target
    question = link[QUESTION][:MOST] or "Where will the models look? Guess first, then look."
    st.html(
        f'<p class="question">{escape(question)}</p>'
        f'<p class="said" aria-label="All models write">{in_language(trace.translation, language)}<br><small>All '
        f"models write this text. {len(set(steps) & set(guesses.shown))} of {len(steps)} steps shown.</small></p>"
    )


def _chosen(column: Column, steps: Sequence[int]) -> int:
    """The step that is guessed, from 0."""
    session, names, key = st.session_state, labels.shown(column.grid.queries), "guess_step"
    if session.get(key) not in steps or address.came_back():
        linked = frame.linked_number("step", 0) - 1
        session[key] = linked if linked in steps else steps[0]
    chosen = st.pills(
        "The word that is written",
        steps,
        format_func=lambda step: f"{step + 1}. {markdown(names[step])}",
        key=key,
        required=True,
    )
    return steps[0] if chosen is None else chosen


def _word_names(column: Column) -> list[str]:
    """The source words; a repeated word with its place."""
    names = labels.shown(column.grid.keys)
    return [f"{name} ({place})" if names.count(name) > 1 else name for place, name in enumerate(names, 1)]


def _guess(column: Column, step: int, guesses: Guesses) -> None:
    """The controls: words to click, or points to distribute."""
    names, done = _word_names(column), step in guesses.shown or guesses.given_up
    token, unit = labels.shown(column.grid.queries)[step], column.languages.unit
    points = guesses.points.setdefault(step, [0] * len(names))
    by = st.segmented_control(
        "How to guess", [WORDS, DEALT], default=WORDS, required=True, key="guess_by", bind="query-params"
    )
    label = f"Step {step + 1} writes ‘{markdown(token)}’. Which source {unit}s will the models look at?"
    if by == WORDS:
        key = f"guess_words{guesses.number}_{step}"
        st.session_state[key] = [place for place, dealt in enumerate(points) if dealt]
        st.pills(
            label,
            range(len(names)),
            selection_mode="multi",
            format_func=lambda place: markdown(names[place]),
            key=key,
            disabled=done,
            on_change=_take_words,
            args=(key, points),
        )
        return
    left = POINTS - sum(points)
    question = label.replace("\\", "")  # without the signs of Markdown
    st.html(f'<p class="what" role="status">{escape(question)} {left} of {POINTS} points left.</p>')
    with st.container(horizontal=True, gap="xsmall", key="guess_points"):
        for place, name in enumerate(names):
            words = markdown(name) + (f" · **{points[place]}**" if points[place] else "")
            off = done or left <= 0
            st.button(words, key=f"guess_point{place}", on_click=_deal, args=(points, place), disabled=off)
        none = done or not any(points)
        st.button(
            "Take all back", key="guess_none", type="tertiary", on_click=_take_back, args=(points,), disabled=none
        )


def _take_words(key: str, points: list[int]) -> None:
    chosen = set(st.session_state[key] or ())
    points[:] = [int(place in chosen) for place in range(len(points))]


def _deal(points: list[int], place: int) -> None:
    points[place] += 1


def _take_back(points: list[int]) -> None:
    points[:] = [0] * len(points)


def _compared(columns: Sequence[Column], step: int, guesses: Guesses) -> dict[str, Overlap]:
    return {column.title: guess.compare(column.grid, step, guesses.points[step]) for column in columns}


def _rows(columns: Sequence[Column], step: int, guesses: Guesses, written: bool, dark: bool) -> None:
    """Each model's row beside the guess, and their overlap."""
    unit = columns[0].languages.unit
    words = guess.sentence(_compared(columns, step, guesses), unit)
    st.html(
        f'<p class="reading" role="status">{escape(words)}</p>'
        '<p class="what">Filled bars: the row of the model. Outlined: your guess.</p>'
    )
    shared = guess.shares(guesses.points[step])
    cells, inks = [], line_styles([column.title for column in columns], dark)
    for column in columns:
        figure = figures.guess_bars(column.grid, step, shared, dark=dark)
        lines = [*heading.of_step(column.shown, column.grid, step), "Outlined: a guess that was made before"]
        name = f'<div class="part" style="--ink:{inks[column.title].color}"><h3>{escape(column.title)}</h3></div>'
        cells.append(Cell(name, named(figure, f"guess {column.title}", dark, lines=lines)))
    plots(cells, "guess")
    if written:
        st.html("".join(pictures.bars_table(column, step) for column in columns))


def _buttons(columns: Sequence[Column], step: int, steps: Sequence[int], guesses: Guesses) -> None:
    later = [other for other in steps if other not in guesses.shown and other != step]
    following = next((other for other in later if other > step), later[0] if later else None)
    done = guesses.given_up or step in guesses.shown
    with st.container(horizontal=True, key="guess_buttons"):
        off = done or not any(guesses.points[step])
        look = "secondary" if off else "primary"  # a primary one that is disabled shows no words
        st.button("Show", key="guess_show", type=look, on_click=_show, args=(columns, step, guesses), disabled=off)
        go, last = {"guess_step": following}, following is None
        st.button("Next word", key="guess_next", on_click=st.session_state.update, kwargs=go, disabled=last)
        off = guesses.given_up
        st.button(
            "Show the maps now", key="guess_all", type="tertiary", on_click=_give_up, args=(guesses,), disabled=off
        )


def _show(columns: Sequence[Column], step: int, guesses: Guesses) -> None:
    """Show the rows of a step, and note the guess."""
    guesses.shown.append(step)
    first, names = columns[0], _word_names(columns[0])
    dealt = [f"{name} {count}" for name, count in zip(names, guesses.points[step]) if count]
    for title, seen in _compared(columns, step, guesses).items():
        st.session_state.setdefault(RECORD, []).append(
            {
                "text": first.trace.text,
                "written": first.trace.translation,
                "step": step + 1,
                "token": labels.shown(first.grid.queries)[step],
                "guess": ", ".join(dealt),
                "model": title,
                "weight_on_guess": round(seen.covered, 3),
                "overlap": round(seen.overlap, 3),
                "overlap_of_even_guess": round(seen.even, 3),
            }
        )


def _give_up(guesses: Guesses) -> None:
    guesses.given_up = True


def _score(columns: Sequence[Column], guesses: Guesses, count: int) -> None:
    """Over the steps that were shown."""
    if not guesses.shown:
        return
    by_step = [_compared(columns, step, guesses) for step in guesses.shown]
    rows = []
    for column in columns:
        seen = guess.mean([overlaps[column.title] for overlaps in by_step])
        rows.append((column.title, [f"{value:.0%}" for value in (seen.overlap, seen.covered, seen.even)]))
    caption = f"Your score over {len(by_step)} of {count} steps: 100% is a guess that is the model’s row"
    columns_named = ["score (overlap)", "weight on your guess", "score of an even guess"]
    st.html(tables.table(caption, columns_named, rows) + _told(st.session_state))


def _answer(written: str) -> None:
    """The answer of a teacher's link, behind a click."""
    if not written:
        return
    words = revealed(written) or "The answer in this link cannot be read. Ask who sent it for a new link."
    st.html(f'<details class="tour-answer"><summary>Show the answer</summary><p>{escape(words)}</p></details>')


def _told(session) -> str:
    """HTML with what was guessed in this visit, for the browser to tell other tabs (guesses.js)."""
    visit = session.setdefault(_VISIT, secrets.token_hex(8))
    rows = json.dumps([visit, session[RECORD][-_ROWS:]])
    return f'<div class="guesses" hidden data-kind="made" data-rows="{escape(rows)}"></div>'


def hear(session, message: str) -> None:
    """Keep what another tab says was guessed there, in place of what it said before. Anything else is ignored: a
    browser may send what it likes."""
    with contextlib.suppress(ValueError, TypeError, AttributeError, RecursionError):
        visit, rows = json.loads(message) if len(message) <= _MESSAGE else ("", [])
        made = [{str(key)[:MOST]: str(value)[:MOST] for key, value in row.items()} for row in rows[:_ROWS]]
        others = session.setdefault(_ELSEWHERE, {})
        if made and re.fullmatch("[0-9a-f]{16}", visit) and (visit in others or len(others) < _TABS):
            others[visit] = made


def record(session) -> list[dict]:
    """What was guessed in this visit, then in other tabs of this browser that were open beside a lesson."""
    elsewhere = session.get(_ELSEWHERE, {}).items()
    others = [row for visit, rows in elsewhere if visit != session.get(_VISIT) for row in rows]
    return [*session.get(RECORD, ()), *others]


def _take_along(current: CompareScene, columns: Sequence[Column], guesses: Guesses) -> None:
    with st.container(horizontal=True):
        if record := st.session_state.get(RECORD):
            words = "All guesses of this visit whose rows were shown. They are kept nowhere else."
            downloads.csv_button(
                "Save my guesses", lambda: pd.DataFrame(record), "guesses.csv", key="guess_save", note=words
            )
        with st.popover("A link for a class", key="guess_link"):
            _link_for_a_class(current)


def _link_for_a_class(current: CompareScene) -> None:
    """Fields for a teacher, and the link."""
    steps = st.text_input("Steps to guess, such as 2, 4 (none: all)", key="class_steps", max_chars=100)
    question = st.text_input("Question", key="class_question", max_chars=MOST)
    answer = st.text_input("Answer, hidden until it is asked for", key="class_answer", max_chars=MOST)
    fields = {STEPS: ",".join(re.findall(r"[0-9]+", steps)), QUESTION: question, ANSWER: hidden(answer)}
    query = current.choices.query() | {key: value for key, value in fields.items() if value}
    place = (st.context.url or "").partition("?")[0]
    st.code(f"{place}?{urlencode(query, doseq=True)}", language=None, wrap_lines=True)
