"""The address of a page encodes its view. Streamlit binds controls to it (`bind="query-params"`); this module keeps the
binding correct.

Left alone, Streamlit lets an address go wrong in four ways (1.67):
- A control that moves on the page, because something above it has gone, no longer writes into the address.
- A value that code puts into a control before it is first drawn does not reach the address.
- The value in the address overrides what the session or a callback has, where a control has other options than before.
- Back to another page loses what controls of the same name hold there.

So the address is written after every run from the values of the controls, and read again after Back and Forward. This
reaches into Streamlit's own state, which has no public names for it; tests/browser/test_address.py says whether it
works. Values that cannot be drawn are not written: a page that still shows its last picture keeps its address.

Some values go along from page to page (`arrive`), and others, also those that cannot be drawn, remain with their page:
Streamlit drops the widgets of a page that is left, or gives their values to widgets of that name on the next page.
"""

import functools
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_run_context import ThreadState
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.query_params import _coerce_value_for_query_url, _parse_query_string

from attnviz.mechanisms import MECHANISMS
from attnviz.models.names import ModelName
from dashboard.choices import options, pairs
from dashboard.session import catalogue

_PAGE, _WRITTEN, _ALSO = "page of the address", "address was written", "also in the address"  # in the session
_GOING, _GONE = "goes to another page with", "without a control in the address"
_DRAWN, _STAYING = "drawn at the address", "staying in the address"
AT, _LEFT, _REFUSED, _RETURNED = "page", "kept", "not drawn", "came back from another page"
_TAKEN_ALONG = {"units": "pieces", "special": True, "tables": False}  # on all pages, and where it begins
DRAWING = {"tables", "present"}  # how a picture is drawn, not what it shows: they count for the last picture too
_OWN = ("kind", "layer", "head", "own", "output", "beam", "chapter", "lesson")  # of one page, or another on each
_ELSEWHERE = ("direction", "row", "versus", "find", "keep")  # the names of other controls on other pages
_OF_A_PAIR = ("", "inside", "many")  # pages that show several models of a language pair
_WITHOUT_FIELD = ("many", "train", "learn")  # pages that hand on the sentence of the other pages


def came_back() -> bool:
    """Has the visitor pressed Back or Forward? Then the address determines the view, as for a new visitor."""
    context = get_script_run_ctx()
    return bool(context and context.is_history_navigation)


def begin() -> None:
    """Begin a run. Call it before any control is drawn."""
    if (context := get_script_run_ctx()) is None:
        return
    state = context.session_state
    if not context.fragment_ids_this_run:
        st.session_state.update({_ALSO: {}, _STAYING: {}})
    with state.query_params() as params:
        if context.is_history_navigation:
            for key in [key for key in params._bindings_by_param if key in st.session_state]:
                del st.session_state[key]
            params.set_initial_query_params(context.query_string)
            params.populate_from_query_string(context.query_string)
        else:
            for key in state._state._new_session_state:  # what callbacks have set
                params._initial_query_params.pop(key, None)
        if st.session_state.pop(_RETURNED, False):
            refused = _refused_text(_plain(_parse_query_string(context.query_string)))
            params._initial_query_params |= {} if refused is None else {"text": [refused]}


def _refused_text(query: Mapping) -> str | None:
    """The text that the page could not draw when it was left, if `query` is the address of the picture that it kept.
    With Back and Forward a control has what the address says, or its default, whatever is put into it."""
    page = st.session_state[AT]
    written, values = st.session_state.get(_DRAWN, {}).get(page, ({}, {}))
    same = all(query.get(key) == written.get(key) for key in written.keys() | values.keys())
    return st.session_state[_REFUSED].get(page, {}).get("text") if same else None


def put(key: str, value: Any, written: str) -> None:
    """Set a control's value before it is drawn. written : as in the address, which counts after Back."""
    st.session_state[key] = value
    keep(key, written)


def keep(key: str, written: str | None = None) -> None:
    """A control has the value of the session; after Back that of the address, or `written`. Else Streamlit reads the
    address again when something is clicked before the browser has the control."""
    if context := get_script_run_ctx():
        with context.session_state.query_params() as params:
            if not context.is_history_navigation:
                params._initial_query_params.pop(key, None)
            elif written is not None:
                params._initial_query_params[key] = [written]


def also(key: str, written: Callable[[dict], str | None], of_picture: bool = False) -> None:
    """Add a parameter to the address until the next run of the page. written : computed from the other parameters; None
    for none. of_picture : does it belong to the page's picture, rather than to a part of the page (see `stay`)?"""
    st.session_state.setdefault(_ALSO, {})[key] = written, of_picture


def not_also(key: str) -> None:
    """Undo `also`, because a control has the parameter again."""
    st.session_state.get(_ALSO, {}).pop(key, None)


def drawn() -> None:
    """Record that the values of the controls above can be drawn; `stay` returns to them."""
    if context := get_script_run_ctx():
        with context.session_state.query_params() as params:
            written = _of_picture(context, params)
            values = {key: st.session_state[key] for key, _ in _on_page(context, params)}
        st.session_state.setdefault(_DRAWN, {})[st.session_state.get(AT)] = written, values
        st.session_state[_STAYING] = {}


def stay() -> None:
    """The values of the controls above cannot be drawn, and the page shows its last picture. Keep the address of that
    picture (see `drawn`), except for how it is drawn, until the next one."""
    if context := get_script_run_ctx():
        before, values = st.session_state.get(_DRAWN, {}).get(st.session_state.get(AT), ({}, {}))
        with context.session_state.query_params() as params:
            now = _of_picture(context, params)
            for key in DRAWING & params._bindings_by_param.keys():
                values[key], before[key] = st.session_state[key], now.get(key)
            st.session_state[_STAYING] = {key: before.get(key) for key in now | before}


def settle() -> None:
    """Write the values of the controls into the address. Call it at the end of a run."""
    if (context := get_script_run_ctx()) is None:
        return
    with context.session_state.query_params() as params:
        added = st.session_state.get(_ALSO, {})
        left = st.session_state.get(_GONE, set()) - params._bindings_by_param.keys() | added.keys()
        held = {key: words for key, words in _held(context, params).items() if key not in left}
        held |= (staying := st.session_state.get(_STAYING, {}))
        held = {key: words for key, words in held.items() if words is not None}
        held |= {key: words for key, (write, _) in added.items() if key not in staying and (words := write(held))}
        st.session_state[_GONE] = _untie(context, params, staying.keys() | added.keys())
        moved = st.session_state.get(_PAGE) != context.page_script_hash
        now, last = _plain(_parse_query_string(context.query_string)), st.session_state.pop(_WRITTEN, None)
        # The browser may have gone on while the last run's message was on its way, which then overwrote the address.
        overwritten = last is not None and last != now
        if held != now or overwritten or moved or context.is_history_navigation:
            params._query_params = held
            params._send_query_param_msg()
            st.session_state[_WRITTEN] = held
    st.session_state[_PAGE] = context.page_script_hash


def _untie(context, params, wanted: set[str]) -> set[str]:
    """Unbind missing controls whose parameters the address has -> these parameters. Else Streamlit removes them."""
    gone = wanted - {key for key, _ in _on_page(context, params)}
    for binding in [params._bindings_by_param[key] for key in gone & params._bindings_by_param.keys()]:
        params.unbind_widget(binding.widget_id)
    return gone


def fragment(function: Callable) -> Callable:
    """`st.fragment` whose own runs also update the address."""

    @st.fragment
    @functools.wraps(function)
    def run(*arguments, **named) -> None:
        alone = runs_alone()
        with catalogue.run():
            if alone:
                begin()
            function(*arguments, **named)
            if alone:
                settle()

    return run


def runs_alone() -> bool:
    """Does the current run consist only of the calling fragment?"""
    context = get_script_run_ctx()
    here = context and ThreadState.get().fragment_id
    return bool(here) and here in (context.fragment_ids_this_run or ())


def _held(context, params) -> dict[str, str | list[str]]:
    """The parameters of the address: the values of the controls, and parameters without a control."""
    held = {key: value for key, value in params._query_params.items() if key not in params._bindings_by_param}
    held |= _controls(context, params)
    return {key: held[key] for key in dict.fromkeys([*params._query_params, *held]) if key in held}


def _of_picture(context, params) -> dict[str, str | list[str]]:
    """The address parameters of the controls above this place."""
    held = _controls(context, params)
    added = st.session_state.get(_ALSO, {}).items()
    return held | {key: words for key, (written, of_picture) in added if of_picture and (words := written(held))}


def _controls(context, params) -> dict[str, str | list[str]]:
    """The values of the controls on the page that are not their defaults. Controls that are no longer, or not yet, on
    the page are left out."""
    state, held = context.session_state._state, {}
    for key, control in _on_page(context, params):
        value = state[key]
        if value != control.deserializer(None):
            held[key] = _written(control.serializer(value), control.value_type)
    return held


def words() -> dict[str, set[str]]:
    """Control bound to the address -> the possible names of its value in a link, including the default."""
    if (context := get_script_run_ctx()) is None:
        return {}
    state = context.session_state
    with state.query_params() as params:
        written = {
            key: _written(control.serializer(state._state[key]), control.value_type)
            for key, control in _on_page(context, params)
        }
    return {key: {words} if isinstance(words, str) else set(words) for key, words in written.items()}


def _on_page(context, params) -> Iterator[tuple[str, WidgetMetadata]]:
    """The controls on the page that are tied to the address, by their keys."""
    controls = context.session_state._state._new_widget_state.widget_metadata
    for key, binding in params._bindings_by_param.items():
        control = controls.get(binding.widget_id)
        if control is not None and _is_on_page(context, binding.widget_id, control.fragment_id):
            yield key, control


def _is_on_page(context, widget: str, fragment: str | None) -> bool:
    """Has this run drawn the control, or does the control belong to a part of the page that this run leaves alone?"""
    if widget in context.shared.widget_ids_this_run:
        return True
    here = ThreadState.get().fragment_id
    is_alone = bool(context.fragment_ids_this_run and here)
    return is_alone and fragment != here and not context.fragment_storage.has_ancestor_in(fragment, {here})


def _written(value: Any, kind: str) -> str | list[str]:
    """A value in the form of the browser's control: no choice is "", a single choice is not a list."""
    words = "" if value is None else _coerce_value_for_query_url(value, kind)
    return _plain({"": words})[""]


def _plain(query: dict[str, list[str] | str]) -> dict[str, str | list[str]]:
    """Each parameter as a text, or as a list if it has several values."""
    several = {key: words if isinstance(words, list) else [words] for key, words in query.items()}
    return {key: words if len(words) > 1 else "".join(words) for key, words in several.items()}


def go(page: str, values: Mapping[str, Any]) -> None:
    """Turn to another page of this visit (`turn`), whose controls then have these values, and else their defaults."""
    st.session_state[_GOING] = page, dict(values)


def turn() -> None:
    """Have the browser turn to the page that `go` names: a link, which pages.js clicks. `st.switch_page` comes back to
    a page that draws a part of itself by the clock: the next request of that part names the page that was left."""
    if going := st.session_state.get(_GOING):
        st.html(f'<a class="turn-to" href="./{going[0]}" target="_self">Opening the page …</a>')


def arrive(
    page: str, session: MutableMapping, came_back: bool = False, text: str | None = None
) -> dict[str, str | list[str]]:
    """If the visitor comes from another page, put the values to take along into the session -> those for the address.

    Call it at the top of each run, before there is any widget. page : `heads`, or any other name. came_back : with Back
    or Forward, to a page whose address says all, so that nothing is taken along. text : the sentence in the address.
    """
    before, session[AT] = session.get(AT), page
    if page in _WITHOUT_FIELD and (before is None or came_back):  # elsewhere the field itself reads the address
        session.pop("text", None)
        session.update({} if text is None else {"text": text})
    if before in (None, page):
        return {}
    held, refused = _as_drawn(session, before)
    session.setdefault(_REFUSED, {})[before] = refused
    left = session.setdefault(_LEFT, {})
    left[before] = {key: held[key] for key in _OWN if key in held}
    if not before:
        left["inside"] = left.get("inside", {}) | _opened_head(held)
    if came_back:
        session[_RETURNED] = True
        for key in (*_OWN, *_ELSEWHERE):
            session.pop(key, None)
        return {}
    named, going = session.pop(_GOING, (page, {}))
    going = going if named == page else {}
    along = _along(held, before, page) | going
    for key in (*_OWN, *_ELSEWHERE, *along, "text"):
        session.pop(key, None)  # with its tie to the widget of the other page
    now = ({} if going else left.get(page, {})) | along
    session.update(now | _refused_before(session, page, now))
    return {key: _as_written(key, value) for key, value in now.items() if value != _TAKEN_ALONG.get(key)}


def _as_drawn(session: Mapping, page: str) -> tuple[dict, dict]:
    """The view of a page that is left: the session's values, except those that could not be drawn -> both.

    The page may not have seen a sentence that was typed just before."""
    held = dict(session)
    _, drawn = session.get(_DRAWN, {}).get(page, ({}, {}))
    text = held.get("text")
    if not session.get(_STAYING) and (text is None or (text.strip() and len(text) <= options.LIMIT)):
        return held, {}
    refused = {key: held[key] for key, value in drawn.items() if key in held and held[key] != value}
    return held | {key: drawn[key] for key in refused}, refused


def _refused_before(session: Mapping, page: str, now: Mapping) -> dict:
    """The values that a page could not draw when it was left, if it is to show the same view again. now : the new
    values."""
    _, drawn = session.get(_DRAWN, {}).get(page, ({}, {}))
    same = all(drawn.get(key, value) == value for key, value in now.items())
    return session[_REFUSED].get(page, {}) if same else {}


def _along(session: Mapping, before: str, page: str) -> dict:
    """The values that go along from one page to another."""
    along = {key: session[key] for key in _TAKEN_ALONG if key in session} | _sentence(session, before, page)
    if {before, page} <= {*_OF_A_PAIR}:
        along |= _models(session, page)
    if session.get("sentence", 1) > 1 and {before, page} <= {"", "inside", "heads"}:
        along["sentence"] = session["sentence"]
    return along


def _models(session: Mapping, page: str) -> dict:
    """The mechanisms and the text that they write; pages about attention alone show those that attend."""
    keys = ("show", "target", "force", "guest", *["beam"] * (page in ("", "inside")))
    along = {key: session[key] for key in keys if key in session}
    if page and "show" in along:
        along["show"] = [name for name in along["show"] if options.facts(name).kinds]
        giver = along.get("target", options.OWN).removeprefix(options.FROM)
        if giver in MECHANISMS and not MECHANISMS[giver].kinds:
            along["target"] = options.OWN
    return {key: value for key, value in along.items() if value}


def _opened_head(session: Mapping) -> dict:
    """The head or the mean of heads of the first page, which the page of one step opens, whatever is opened between."""
    shown = session.get("show", MECHANISMS)
    if session.get("kind", "cross") != "cross" or not any(options.facts(name).multi_head for name in shown):
        return {}
    return {key: session[key] for key in ("layer", "head") if key in session}


def _as_written(key: str, value) -> str | list[str]:
    """A value as its widget writes it into the address."""
    if isinstance(value, bool):
        return str(value).lower()
    words = {
        "show": lambda names: [options.title(name) for name in names],
        "target": options.target_title,
        "pair": lambda name: pairs.task(name).title,
        "model": options.model_title,
        "beam": options.BEAMS.get,
        "chapter": options.chapter_title,
        "kind": options.KINDS.get,
        "layer": options.place_title,
        "head": lambda head: options.head_title(head if head >= 0 else None),
    }
    return words.get(key, str)(value)


def _sentence(session: Mapping, before: str, page: str) -> dict:
    """The sentence, if the next page reads its language, and the pair (from the model) or the model (from the pair)."""
    offered = catalogue.attending() if page in ("inside", "many") else catalogue.offered()
    model = session.get("model")
    pair = session.get("pair", next(iter(offered)))
    # The languages of a user's own model are not known.
    of_model = reads = ModelName.parse(model).pair if model in catalogue.many_headed() else None
    if "heads" not in (before, page):  # two pages of a language pair
        of_model = reads = pair
    if page == "heads":
        left = pair
        if (not model or of_model in catalogue.attending()) and (of_pair := catalogue.many_headed_of(pair)):
            model, reads = of_pair[0], pair
        entered, along = reads or pair, {"model": model} if model else {}
    else:
        left = reads or pair
        entered = next((name for name in (of_model, pair) if name in offered), next(iter(offered)))
        along = {"pair": entered}
    same = "text" in session and pairs.task(entered).source == pairs.task(left).source
    return along | ({"text": session["text"]} if same else {})
