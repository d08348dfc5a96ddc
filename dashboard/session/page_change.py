"""The values of controls that a visitor takes from page to page, and those that each page keeps for itself.

Streamlit drops the widgets of a page that is left, or gives their values to widgets of the same name on the next page.
A link that opens a page begins a session, so the values in its address are kept.
"""

from collections.abc import MutableMapping

from attnviz.mechanisms import MECHANISMS
from attnviz.models.names import ModelName
from dashboard.choices import pairs
from dashboard.choices.options import (
    BEAMS,
    FROM,
    KINDS,
    OWN,
    chapter_title,
    head_title,
    model_title,
    number,
    target_title,
    title,
)
from dashboard.session import catalogue

_ALONG = {
    "units": "pieces",
    "special": True,
    "tables": False,
}  # the same question on all pages, as the sentence is; and where it begins
# asked on one page alone, or on each of something else
_OWN = ("kind", "layer", "head", "own", "output", "beam", "chapter")
_ELSEWHERE = ("direction", "row", "versus")  # the names of other controls on other pages
_OF_A_PAIR = ("", "inside", "many")  # pages that show several models of a language pair
_WITHOUT_FIELD = ("many", "learn")  # pages that hand on the sentence of the other pages
_PAGE, _KEPT = "page", "kept"


def arrive(
    page: str, session: MutableMapping, came_back: bool = False, text: str | None = None
) -> dict[str, str | list[str]]:
    """If the visitor comes from another page, put the values to take along into the session -> those for the address.

    Call it at the top of each run, before there is any widget. page : `heads`, or any other name. came_back : with Back
    or Forward, to a page whose address says all, so that nothing is taken along. text : the sentence in the address.
    """
    before, session[_PAGE] = session.get(_PAGE), page
    if page in _WITHOUT_FIELD and (before is None or came_back):  # elsewhere the field itself reads the address
        session.pop("text", None)
        session.update({} if text is None else {"text": text})
    if before in (None, page):
        return {}
    kept = session.setdefault(_KEPT, {})
    kept[before] = {key: session[key] for key in _OWN if key in session}
    if came_back:
        for key in (*_OWN, *_ELSEWHERE):
            session.pop(key, None)
        return {}
    along = {key: session[key] for key in _ALONG if key in session} | _sentence(session, before, page)
    if {before, page} <= {*_OF_A_PAIR}:
        along |= _models(session, page)
    if session.get("sentence", 1) > 1 and {before, page} <= {"", "inside", "heads"}:
        along["sentence"] = session["sentence"]
    if (before, page) == ("", "inside"):
        along |= _opened_head(session)
    for key in (*_OWN, *_ELSEWHERE, *along, "text"):
        session.pop(key, None)  # with its tie to the widget of the other page
    now = kept.get(page, {}) | along
    session.update(now)
    return {key: _word(key, value) for key, value in now.items() if value != _ALONG.get(key)}


def _models(session: MutableMapping, page: str) -> dict:
    """The mechanisms and the text that they write; pages about attention alone show those that attend."""
    keys = ("show", "target", "force", *["beam"] * (page in ("", "inside")))
    along = {key: session[key] for key in keys if key in session}
    if page and "show" in along:
        along["show"] = [name for name in along["show"] if MECHANISMS[name].kinds]
        giver = along.get("target", OWN).removeprefix(FROM)
        if giver in MECHANISMS and not MECHANISMS[giver].kinds:
            along["target"] = OWN
    return {key: value for key, value in along.items() if value}


def _opened_head(session: MutableMapping) -> dict:
    """The head or the mean of heads of the first page, which the page of one step opens."""
    shown = session.get("show", MECHANISMS)
    if session.get("kind", "cross") != "cross" or not any(MECHANISMS[name].multi_head for name in shown):
        return {}
    return {key: session[key] for key in ("layer", "head") if key in session}


def _word(key: str, value) -> str | list[str]:
    """A value as its widget writes it into the address."""
    if isinstance(value, bool):
        return str(value).lower()
    words = {
        "show": lambda names: [title(name) for name in names],
        "target": target_title,
        "pair": lambda name: pairs.of(name).title,
        "model": model_title,
        "beam": BEAMS.get,
        "chapter": chapter_title,
        "kind": KINDS.get,
        "layer": number,
        "head": lambda head: head_title(head if head >= 0 else None),
    }
    return words.get(key, str)(value)


def _sentence(session: MutableMapping, before: str, page: str) -> dict:
    """The sentence, if the next page reads its language, and the pair (from the model) or the model (from the pair)."""
    offered, asked = catalogue.offered(), session.get("model")
    pair = session.get("pair", next(iter(offered)))
    # The languages of a user's own model are not known.
    of_model = reads = ModelName.parse(asked).pair if asked in catalogue.many_headed() else None
    if "heads" not in (before, page):  # two pages of a language pair
        of_model = reads = pair
    if page == "heads":
        left = pair
        if (not asked or of_model in offered) and (of_pair := catalogue.many_headed_of(pair)):
            asked, reads = of_pair[0], pair
        entered, along = reads or pair, {"model": asked} if asked else {}
    else:
        left = reads or pair
        entered = of_model if of_model in offered else pair
        along = {"pair": entered}
    same = "text" in session and pairs.of(entered).source == pairs.of(left).source
    return along | ({"text": session["text"]} if same else {})
