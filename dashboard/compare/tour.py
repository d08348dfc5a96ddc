"""The tour: five states of the page that compares mechanisms, each with a question, and the answer behind a click. Its
words are in tour.md.

The numbers of an answer are computed from the current page, so it remains true after a model is retrained. Stops are
counted from 1, as on the page and in its address. The tour is offered once.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from attnviz import reading
from attnviz.figures import labels
from dashboard.choices.options import OWN
from dashboard.compare.scene import Column, CompareScene
from dashboard.markup import terms, text
from dashboard.markup.text import escape
from dashboard.session import address, catalogue
from dashboard.shell import link_notes

_FILE = Path(__file__).with_suffix(".md")
_STOP, _ANSWERED = "tour stop", "tour answered"  # in the session: from 1; the offer needs not be made again
# After the stop in the address: what the rest of it leaves out is as on any page, not as at the stop.
_AS_SHOWN = "-as-shown"
COOKIE = "attnviz_tour"  # set by tour.js once the offer was answered: then it is not made again in this browser
PAIR = "en-fr"
_MOTARDS = 2  # the step that writes it
_NOT_CHANGED = {  # what the page shows unless a stop says otherwise, as the session holds it
    "pair": PAIR,
    "text": "The black dog is running across the green grass.",
    "target": OWN,
    "force": "",
    "gold": "",
    "beam": 1,
    "units": "pieces",
    "special": True,
    "kind": "cross",
    "head": -1,
}


def arrive() -> None:
    """Set the stop from a link, or from the address after Back. Call it before any widget is drawn.

    Parameters missing in the address have the stop's values: `tour=2` alone opens its view.
    """
    if address.came_back():
        st.session_state.pop(_STOP, None)
    elif _ANSWERED in st.session_state:
        return
    written = st.query_params.get("tour", "")
    stop = stop_number(written.removesuffix(_AS_SHOWN))
    if stop and is_offered(catalogue.offered()):
        if not written.endswith(_AS_SHOWN):
            _go(stop)
        st.session_state.update({_STOP: stop, _ANSWERED: True})


def show() -> None:
    """Show the stop with its question; before that the offer. Call it outside of fragments, because another stop
    changes the sidebar too."""
    stop = _stop()
    if stop is None:
        st.query_params.pop("tour", None)
        _offer()
        return
    address.also("tour", _written)
    with st.container(key="tour"):
        facts, count = STOPS[stop - 1], len(STOPS)
        st.html(
            f'<p class="tour-title">Tour, stop {stop} of {count}: {escape(facts.title)}</p>'
            f'<p class="question">{facts.question}</p>'
        )
        with st.container(horizontal=True, key="tour_buttons"):
            if stop > 1:
                st.button("Back", key="tour_back", on_click=_go, args=(stop - 1,))
            if stop < count:
                st.button("Next question", key="tour_next", on_click=_go, args=(stop + 1,), type="primary")
            st.button("Show this stop again", key="tour_again", on_click=_go, args=(stop,), type="tertiary")
            st.button("Finish" if stop == count else "End the tour", key="tour_end", on_click=_leave)


def answer(current: CompareScene) -> None:
    """The answer to the question of the stop, behind a click, worked out from what the page shows."""
    stop = _stop()
    if stop is None:
        return
    facts = STOPS[stop - 1]
    if facts.is_shown(current):
        st.html(
            f'<details class="tour-answer"><summary>Show the answer</summary><p>{facts.answer(current)}</p></details>',
        )
    else:
        st.html(
            '<p class="tour-answer">You have changed the view. <b>Show this stop again</b> above brings its '
            "question back.</p>"
        )


def button() -> None:
    """Begins the tour at any time."""
    if _stop() is None and is_offered(catalogue.offered()):
        st.button("Take the tour", key="tour_begin", on_click=_go, args=(1,), icon=":material/explore:")


def _stop() -> int | None:
    return st.session_state.get(_STOP)


def _offer() -> None:
    """Offer the tour to a visitor without a link, until it is accepted or declined in this browser."""
    answered = st.session_state.get(_ANSWERED) or st.context.cookies.get(COOKIE) == "answered"
    if answered or link_notes.came_with_link() or not is_offered(catalogue.offered()):
        return
    with st.container(key="tour_offer", horizontal=True, vertical_alignment="center"):
        st.html("<p>New here? Five questions show what attention does, in five minutes.</p>", width="content")
        st.button("Take the tour", key="tour_yes", on_click=_go, args=(1,), type="primary")
        st.button("No, thanks", key="tour_no", on_click=_leave)


def _go(stop: int) -> None:
    """Go to a stop, with the last layer of the Transformer."""
    layers, _ = catalogue.layers_and_heads(next(iter(catalogue.many_headed_of(PAIR)), None))
    view = STOPS[stop - 1].view
    st.session_state.update({"layer": layers - 1} | view | {_STOP: stop, _ANSWERED: True})


def _written(held: Mapping) -> str:
    """The stop as in the address. held : the other parameters of the address."""
    stop, session = _stop(), st.session_state
    view = STOPS[stop - 1].view
    hidden = any(key not in held and session.get(key, value) != value for key, value in view.items())
    return f"{stop}{_AS_SHOWN}" if hidden else str(stop)


def _leave() -> None:
    st.session_state.pop(_STOP, None)
    st.session_state[_ANSWERED] = True


@dataclass(frozen=True)
class Stop:
    """title : plain text. question : HTML. words : the answer, HTML with placeholders; values : scene -> what they
    stand for. changes : session values that differ from _NOT_CHANGED; `show` and `step` always."""

    title: str
    question: str
    words: str
    changes: Mapping[str, Any]
    values: Callable[[CompareScene], dict[str, str]]

    def answer(self, scene: CompareScene) -> str:
        return terms.filled(self.words, _FILE.name, **self.values(scene))

    @property
    def view(self) -> dict[str, Any]:
        """The session values that make the page show this stop."""
        return _NOT_CHANGED | dict(self.changes)

    def is_shown(self, scene: CompareScene) -> bool:
        """Does the page still show what the question is about?"""
        choices, view = scene.choices, self.view
        shown = (choices.text, list(choices.mechanisms), choices.target, choices.kind, choices.words, choices.special)
        return shown == (view["text"], view["show"], view["target"], view["kind"], view["units"] == "words", True)


def is_offered(mechanisms: Mapping[str, list[str]]) -> bool:
    """Does the page offer all models that the tour needs? mechanisms : pair -> the offered ones."""
    offered = set(mechanisms.get(PAIR, ()))
    return all(offered.issuperset(stop.changes["show"]) for stop in STOPS)


def stop_number(written: str | None) -> int | None:
    """The number of the stop in an address, from 1; None if it has none."""
    return int(written) if written in map(str, range(1, len(STOPS) + 1)) else None


def _order(scene: CompareScene) -> dict[str, str]:
    seen = ((column, reading.RULES["swapped"](column.grid, "word")) for column in scene.mapped)
    crossing = next((f"{column.title}: {observed.sentence}" for column, observed in seen if observed), "")
    return {"crossing": escape(crossing)}


def _sharpness(scene: CompareScene) -> dict[str, str]:
    sharp, blurred = sorted(scene.mapped, key=lambda column: -column.frame["max_weight"].mean())
    weight, other_weight = (f"{column.frame['max_weight'].mean():.2f}" for column in (sharp, blurred))
    same = sharp.trace.translation == blurred.trace.translation
    return {
        "sharper": sharp.title,
        "weight": weight,
        "log_prob": text.number(sharp.trace.log_prob),
        "other": blurred.title,
        "other_weight": other_weight,
        "other_log_prob": text.number(blurred.trace.log_prob),
        "texts": "Both write the same text" if same else "Their texts differ",
    }


def _end(scene: CompareScene) -> dict[str, str]:
    [column] = scene.mapped
    observed = reading.RULES["special"](column.grid, "word")
    looks = escape(observed.sentence) if observed else ""
    return {"looks": looks, "share": f"{column.frame['special_mass'].mean():.0%}"}


def _split(scene: CompareScene) -> dict[str, str]:
    looks = "; ".join(
        f"{column.title}: {' and '.join(f'{weight:.2f} on {escape(piece)}' for piece, weight in _pieces(column))}"
        for column in scene.mapped
    )
    return {"looks": looks}


def _pieces(column: Column) -> list[tuple[str, float]]:
    """The pieces of the first source word that has several, with their weights when the word of the step is written."""
    tokens = column.trace.source
    words = [token.word for token in tokens if token.word is not None]
    word = next(word for word in words if words.count(word) > 1)
    row = column.grid.weights[_MOTARDS - 1]
    names = labels.named(tokens)
    return [(names[i], float(row[i])) for i, token in enumerate(tokens) if token.word == word]


def _long(scene: CompareScene) -> dict[str, str]:
    squeezed = next(column for column in scene.columns if column.grid is None)
    attends = scene.mapped[0]
    texts = [re.findall(r"\w{4,}", column.trace.translation.lower()) for column in (attends, squeezed)]
    missing = [word for word in dict.fromkeys(texts[0]) if word not in texts[1]]
    sure = [text.number(column.trace.log_prob / len(column.trace.log_probs)) for column in (attends, squeezed)]
    return {"missing": escape(", ".join(missing)), "with_attention": sure[0], "log_prob": sure[1]}


_VIEWS = (  # changes, values and their names, of each stop of tour.md
    ({"show": ["bahdanau", "luong-general", "transformer"], "step": 3}, _order, "crossing"),
    (
        {"show": ["bahdanau", "luong-general"], "step": 7},
        _sharpness,
        "sharper weight log_prob other other_weight other_log_prob texts",
    ),
    ({"show": ["transformer"], "text": "Is Tom here?", "head": 2, "step": 2}, _end, "looks share"),
    (
        {
            "show": ["bahdanau", "transformer"],
            "text": "Two motorcyclists are racing on a muddy track.",
            "step": _MOTARDS,
        },
        _split,
        "looks",
    ),
    (
        {
            "show": ["fixed-context", "bahdanau"],
            "text": "A man in a red shirt is standing on a ladder and painting the wall of a white house while a woman "
            "in a green dress is sitting on a bench under a tree and reading a book.",
            "step": 12,
        },
        _long,
        "missing with_attention log_prob",
    ),
)


def _read(file: Path) -> Iterator[Stop]:
    """ValueError, with the heading, for one of another form."""
    written = list(terms.sections(file).items())[1:]
    if len(written) != len(_VIEWS):
        raise ValueError(f"{file.name} must have {len(_VIEWS)} headings, one for each stop; it has {len(written)}")
    for (title, paragraphs), (changes, values, names) in zip(written, _VIEWS, strict=True):
        where = f"{file.name}, “{title}”,"
        if len(paragraphs) != 2:
            raise ValueError(f"{where} must have a question and its answer, one paragraph each, not {len(paragraphs)}")
        question, words = paragraphs
        terms.filled(words, where, **dict.fromkeys(names.split(), ""))
        yield Stop(title, terms.filled(question, where), words, changes, values)


STOPS = tuple(_read(_FILE))
