"""A note on values in a link that this page does not have. Streamlit silently removes them from the address."""

import contextlib
from collections.abc import MutableMapping

import streamlit as st

from dashboard.choices import options, pairs
from dashboard.markup.text import markdown
from dashboard.session import address

_ASKED, _OPENED = "asked by the link", "opened by a link"
_MAY_BE_EMPTY = frozenset(
    "text force own guest token gold order color off compare show output beside beside_text lines other_lines path "
    "other_path find way question lesson".split()
)
# of controls for whole numbers: Streamlit fails at 1e999, and takes 1.5 for 1
_WHOLE = ("seed", "step", "row", "sentence", "written", "added")
_QUOTED = 80  # characters of a value
_FROM_1 = ("layer", "head", "depth")  # counted from 1 in the address, and from 0 in the session
# What the address may call the value of a control: Streamlit leaves out a value that is the default, which is no
# mistake.
_WORDS = (
    str,
    lambda value: str(value).lower(),
    options.title,
    options.model_title,
    options.chapter_title,
    options.corpus_words,
    options.trained_title,
    options.task_title,
    options.preset_title,
    options.asks_title,
    options.target_title,
    {options.OWN: "Each model's own translation"}.__getitem__,  # of links made before every pair had these words
    lambda value: options.BEAMS[value],
    lambda value: options.KINDS[value],
    lambda value: pairs.task(value).title,
    lambda value: value or "none",
)


def remember(session: MutableMapping) -> None:
    """Store the parameters of the link that opened this session. Call it before any widget is drawn."""
    if _ASKED not in session:
        session[_ASKED] = {key: st.query_params.get_all(key) for key in st.query_params}
        session[_OPENED] = bool(session[_ASKED])


def came_with_link() -> bool:
    """Did the session begin with parameters in the address? Call it after `remember`."""
    return bool(st.session_state.get(_OPENED))


def drop_meaningless() -> None:
    """Remove empty values such as `?beam=` from the address, because a group of buttons would have none pressed. Call
    it before any widget is drawn. An empty text or word pair is a valid choice.

    A link with no mechanisms is ignored.
    """
    meaningless = [key for key in st.query_params if _means_nothing(key, st.query_params[key])]
    for key in meaningless:
        del st.query_params[key]
    if meaningless:
        st.rerun()  # what the address held when this run began is what its controls would begin with


def _means_nothing(key: str, value: str) -> bool:
    if key in _WHOLE:
        return not value.isdecimal()
    return value == "" and (key not in _MAY_BE_EMPTY or (key == "show" and key not in st.session_state))


def show(session: MutableMapping) -> None:
    """A note on the values that the controls of this page did not accept. Call it after all controls are drawn."""
    # Of several values, Streamlit leaves those that there are in the address.
    taken = {key: set(st.query_params.get_all(key)) for key in session[_ASKED]}
    linked = session[_ASKED] = {key: values for key, values in session[_ASKED].items() if taken[key] < set(values)}
    held = address.words()
    ignored = {
        key: next((value for value in values if value not in _words(key, session[key]) | held.get(key, set())), None)
        for key, values in linked.items()
        if key in session
    }
    unknown = ", ".join(f"{key} = “{value[:_QUOTED]}”" for key, value in ignored.items() if value)
    empty = ", ".join(key for key, value in ignored.items() if value == "")
    reasons = [f"This page has no {unknown}."] * bool(unknown) + [f"The link gives no value for {empty}."] * bool(empty)
    if reasons:
        partly = not empty and all(taken[key] for key, value in ignored.items() if value)
        reasons.append("It shows the others." if partly else "It shows the default instead.")
        st.info(markdown(" ".join(reasons)), icon=":material/link_off:")


def _words(key: str, value) -> set[str]:
    """The possible names of a control's value in the address; for several chosen options, those of each."""
    if key in _FROM_1:
        return {options.head_title(value if value >= 0 else None)}
    if isinstance(value, int) and value < 0:
        return {"none"}  # no sentence, no word: the controls have no other such number
    texts = set().union(*(_words(key, option) for option in value)) if isinstance(value, list) else set()
    for words in _WORDS:
        with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError):
            texts.add(words(value))
    return texts
