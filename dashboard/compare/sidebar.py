"""The sidebar of the page that compares mechanisms. Every control is bound to the URL, so a link reopens the view."""

import functools

import streamlit as st

from attnviz.figures.wording import listed
from attnviz.models.names import is_hugging_face
from dashboard.choices import pairs
from dashboard.choices.options import KINDS, OWN, SHIFTS, TYPED, facts, model, title
from dashboard.compare import caches, tour
from dashboard.markup.text import escape
from dashboard.session import catalogue, memory
from dashboard.shell import frame, widgets

_LEFT = "left_gold"  # in the session when the sentence is no longer the gold sentence that was chosen


def show() -> dict:
    """Everything but the sentence -> fields of CompareChoices."""
    tour.arrive()
    pair = _language_pair()
    mechanisms, chosen, guest = widgets.models(pair, catalogue.offered()[pair])
    moments = _trained_for(pair, chosen)
    marked = _gold(pair)
    fields = (
        {"pair": pair, "mechanisms": tuple(chosen), "guest": guest}
        | moments
        | widgets.target(pair, mechanisms, functools.partial(st.session_state.update, gold=""))
        | marked
        | _reading(pair)
    )
    fields |= _many_headed(pair, [model(pair, name) for name in chosen if facts(name).multi_head])
    fields |= {"tables": widgets.tables(), "present": _present(), "guess": _guess()}
    tour.button()
    return fields


def _present() -> bool:
    return st.toggle(
        "Presentation",
        key="present",
        bind="query-params",
        help="Large type and no sidebar: the maps and the bars of a step on one screen of 1920 by 1080.",
    )


def _guess() -> bool:
    return st.toggle(
        "Guess first",
        key="guess",
        bind="query-params",
        help="Hides maps and bars. At each step you guess which source words the models look at, and then see their "
        "rows beside your guess. All models write one text, and maps are of whole words.",
    )


def leave_gold() -> None:
    """Reset the forced translation of a gold sentence when another sentence is entered."""
    if st.session_state.get("gold") not in ("", None, st.session_state["text"]):
        st.session_state["gold"], st.session_state[_LEFT] = "", True
        _own_translations()


def rerun_if_gold_was_left() -> None:
    """Rerun the whole page if the gold sentence was left; the sentence is in a fragment, which cannot change the
    sidebar."""
    if st.session_state.pop(_LEFT, False):
        st.rerun()


def _language_pair() -> str:
    widgets.brand("See how attention works: one sentence, trained models side by side.")
    pair = widgets.language_pair(catalogue.offered(), _enter)
    if note := pairs.task(pair).note:
        st.html(f'<p class="tag">{escape(note)}</p>')
    return pair


def _trained_for(pair: str, chosen: list[str]) -> dict:
    """The control of the moment of training, if moments of some of the models ship."""
    trained = [name for name in chosen if not is_hugging_face(name)]
    courses = {name: rows for name in trained if (rows := caches.course(model(pair, name)))}
    if not courses:
        return {}
    least = min(map(len, courses.values()))
    training = f"the training of {listed(map(title, courses))}"
    return {"moment": frame.moment(least, training, "trained"), "courses": tuple(courses)}


def _gold(pair: str) -> dict:
    """The choice of sentences aligned by hand, if the pair has any."""
    sentences = [linked.source for linked in pairs.linked(pair)]
    if not sentences:
        return {}
    chosen = st.selectbox(
        "Gold alignments",
        ["", *sentences],
        format_func=lambda text: text or "none",
        key="gold",
        bind="query-params",
        on_change=_take,
        help=f"{len(sentences)} sentences whose words were aligned by hand. Choose one: it becomes the sentence, and "
        "its translation becomes the text for all models. Its links are outlined on the maps, with the alignment error "
        "rate.",
    )
    if not chosen:
        return {"gold": chosen, "links": True}
    links = st.toggle("Gold links over the maps", True, key="links", bind="query-params")
    shift = st.segmented_control(
        "Rows are read",
        list(SHIFTS),
        default=0,
        required=True,
        format_func=SHIFTS.get,
        key="shift",
        bind="query-params",
        help="Attention often looks at the word that is translated one step before or after its own step (Chen et al. "
        "2020). The error rate beside each map is that of these rows.",
    )
    return {"gold": chosen, "links": links, "shift": shift}


def _take() -> None:
    """Show the chosen sentence with its translation; with none chosen, each model's own translation."""
    chosen = st.session_state["gold"]
    sentence = next((linked for linked in pairs.linked(st.session_state["pair"]) if linked.source == chosen), None)
    if sentence is None:
        _own_translations()
    else:
        st.session_state.update(text=sentence.source, target=TYPED, force=sentence.target)


def _own_translations() -> None:
    st.session_state.update(target=OWN, force="")


def _enter() -> None:
    """After a change of the pair, keep the mechanisms that it also has, and the sentence if it is of the same language
    and not an example."""
    pair = st.session_state["pair"]
    task, shown = pairs.task(pair), st.session_state["show"]
    st.session_state["show"] = pairs.carried_over(shown, [*catalogue.offered()[pair], *filter(is_hugging_face, shown)])
    last = memory.last(st.session_state, "compare")
    before = pairs.task(last.choices.pair) if last else task
    if before.source != task.source or st.session_state["text"] in before.offered:
        st.session_state["text"] = task.first
    if st.session_state["target"] == TYPED:
        _own_translations()
    st.session_state["gold"] = ""


def _reading(pair: str) -> dict:
    beam = widgets.beam()
    listed = beam > 1 and st.toggle(
        "List what the beam kept",
        key="listed",
        bind="query-params",
        help="The translations that the search ends with, each with its probability and a link to its map.",
    )
    return {"beam": beam, "listed": listed, "words": widgets.words(pairs.task(pair)), "special": widgets.special()}


def _many_headed(pair: str, shown: list[str]) -> dict:
    """The controls of layer and head, for mechanisms with several. shown : the models that have them."""
    own = catalogue.many_headed_of(pair)[:1]
    layers, heads = widgets.layers_and_heads(shown or own)
    last, _ = widgets.layers_and_heads([name for name in own if name in shown] or shown or own)
    kind = st.selectbox(
        "Transformer: which attention",
        list(KINDS),
        format_func=KINDS.get,
        key="kind",
        bind="query-params",
        disabled=not shown,
    )
    layer = widgets.layer(range(layers), last - 1, disabled=not shown)
    return {"kind": kind, "layer": layer, "head": widgets.head(heads, widgets.MEAN, disabled=not shown)}
