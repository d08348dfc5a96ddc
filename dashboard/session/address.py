"""The address of a page holds its view. Streamlit ties controls to it (`bind="query-params"`); this keeps the tie.

Left alone, Streamlit lets an address go wrong in four ways (1.67):
- A control that moves on the page, because something above it has gone, no longer writes into the address.
- A value that code puts into a control before it is first drawn does not reach the address.
- The value in the address overrides what a callback has set, where the control has other options than before.
- Back to another page loses what controls of the same name hold there.

What cannot be drawn is not written either: a page that goes on showing its last picture keeps the address of that
picture, so that a link and a reload show it too.

So the address is written after every run from what the controls hold, and read again after Back and Forward. It reaches
into Streamlit's own state, which has no public names for this; tests/browser/test_address.py says whether it works.
"""

import functools
from collections.abc import Callable
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_run_context import ThreadState
from streamlit.runtime.state.query_params import _coerce_value_for_query_url, _parse_query_string

# in the session
_PAGE, _WRITTEN = "page of the address", "address was written"
_ALSO, _DEFAULTS = "also in the address", "defaults in the address"
_DRAWN, _STAYING = "drawn at the address", "staying in the address"


def came_back() -> bool:
    """Has the visitor pressed Back or Forward? Then the address says what the page shows, as for a new visitor."""
    context = get_script_run_ctx()
    return bool(context and context.is_history_navigation)


def begin() -> None:
    """Call it when a run begins, before there is any control."""
    context = get_script_run_ctx()
    if context is None:
        return
    state = context.session_state
    if not context.fragment_ids_this_run:
        st.session_state.update({_ALSO: {}, _DEFAULTS: {}, _STAYING: {}})
    with state.query_params() as params:
        if context.is_history_navigation:
            for key in [key for key in params._bindings_by_param if key in st.session_state]:
                del st.session_state[key]
            params.set_initial_query_params(context.query_string)
            params.populate_from_query_string(context.query_string)
        else:
            for key in state._state._new_session_state:  # what callbacks have set
                params._initial_query_params.pop(key, None)


def also(key: str, written: Callable[[dict], str | None]) -> None:
    """Until the page is run anew the address has this parameter too. written : from the others; None for none."""
    st.session_state.setdefault(_ALSO, {})[key] = written


def defaults(**values: Any) -> None:
    """Until the page is run anew these controls are left out of the address where they hold these values: what a page
    without any says is put into the session, and not into the control, from its second run on."""
    st.session_state.setdefault(_DEFAULTS, {}).update(values)


def drawn() -> None:
    """What the controls above this place hold can be drawn: it is what `stay` comes back to on this page."""
    if context := get_script_run_ctx():
        with context.session_state.query_params() as params:
            st.session_state.setdefault(_DRAWN, {})[context.page_script_hash] = _controls(context, params)
        st.session_state[_STAYING] = {}


def stay() -> None:
    """What the controls above this place hold cannot be drawn, and the page shows what it has `drawn` before: until it
    draws something new the address says that."""
    if context := get_script_run_ctx():
        before = st.session_state.get(_DRAWN, {}).get(context.page_script_hash, {})
        with context.session_state.query_params() as params:
            st.session_state[_STAYING] = {key: before.get(key) for key in _controls(context, params) | before}


def settle() -> None:
    """Write into the address what the controls hold. Call it when a run ends."""
    context = get_script_run_ctx()
    if context is None:
        return
    with context.session_state.query_params() as params:
        added = st.session_state.get(_ALSO, {})
        held = {key: words for key, words in _held(context, params).items() if key not in added}
        held |= {key: words for key, written in added.items() if (words := written(held))}
        held |= st.session_state.get(_STAYING, {})
        held = {key: words for key, words in held.items() if words is not None}
        moved = st.session_state.get(_PAGE) != context.page_script_hash
        differs = held != _plain(_parse_query_string(context.query_string))
        # The browser may have gone on while the message before this one was on its way, which then overwrote it.
        if differs or moved or context.is_history_navigation or st.session_state.get(_WRITTEN):
            params._query_params = held
            params._send_query_param_msg()
    st.session_state[_PAGE], st.session_state[_WRITTEN] = context.page_script_hash, differs


def fragment(function: Callable) -> Callable:
    """`st.fragment` whose own runs keep the address too."""

    @st.fragment
    @functools.wraps(function)
    def run(*arguments, **named) -> None:
        context = get_script_run_ctx()
        here = context and ThreadState.get().fragment_id
        is_root = bool(here) and here in (context.fragment_ids_this_run or ())
        if is_root:
            begin()
        function(*arguments, **named)
        if is_root:
            settle()

    return run


def _held(context, params) -> dict[str, str | list[str]]:
    """What the address is to say: what the controls hold, and what is bound to none."""
    held = {key: value for key, value in params._query_params.items() if key not in params._bindings_by_param}
    held |= _controls(context, params)
    order = [key for key in params._query_params if key in held]
    return {key: held[key] for key in dict.fromkeys([*order, *held])}


def _controls(context, params) -> dict[str, str | list[str]]:
    """The values of the controls on the page that are not their defaults. A control that the page no longer has, or has
    not yet, is left out."""
    state, held, defaults = context.session_state._state, {}, st.session_state.get(_DEFAULTS, {})
    for key, binding in params._bindings_by_param.items():
        control = state._new_widget_state.widget_metadata.get(binding.widget_id)
        if control is None or not _is_on_page(context, binding.widget_id, control.fragment_id):
            continue
        value = state[key]
        if value != defaults.get(key, control.deserializer(None)):
            held[key] = _written(control.serializer(value), control.value_type)
    return held


def _is_on_page(context, widget: str, fragment: str | None) -> bool:
    """Has this run drawn the control, or does the control belong to a part of the page that this run leaves alone?"""
    if widget in context.shared.widget_ids_this_run:
        return True
    here = ThreadState.get().fragment_id
    if not context.fragment_ids_this_run or not here:
        return False
    return fragment != here and not context.fragment_storage.has_ancestor_in(fragment, {here})


def _written(value: Any, kind: str) -> str | list[str]:
    """A value as a control of the browser writes it: nothing chosen is an empty word, one of several stands alone."""
    words = "" if value is None else _coerce_value_for_query_url(value, kind)
    return _plain({"": words})[""]


def _plain(query: dict[str, list[str] | str]) -> dict[str, str | list[str]]:
    """Each parameter as a word, and as a list only where it has several."""
    several = {key: words if isinstance(words, list) else [words] for key, words in query.items()}
    return {key: words if len(words) > 1 else "".join(words) for key, words in several.items()}
