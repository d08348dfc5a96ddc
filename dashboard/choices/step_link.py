"""From the step on the first page to the same step on the page of one step. No Streamlit."""

import html
from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from attnviz.mechanisms import MECHANISMS
from dashboard.choices.options import KINDS, head_title, number, title

_SAME = (
    "pair",
    "text",
    "target",
    "force",
    "layer",
    "head",
    "beam",
    "tables",
)  # parameters that mean the same on both pages


def step_link(query: Mapping[str, str | list[str]], mechanisms: Sequence[str], step: int) -> str:
    """HTML: a link that opens a step (from 0) of those of the mechanisms that attend; an empty paragraph without any.

    query : the parameters of the first page.
    """
    attending = [title(name) for name in mechanisms if MECHANISMS[name].kinds]
    if not attending:
        return "<p></p>"
    same = {key: value for key, value in query.items() if key in _SAME}
    is_cross = query.get("kind", KINDS["cross"]) == KINDS["cross"]
    if is_cross and any(MECHANISMS[name].multi_head for name in mechanisms):
        same.setdefault("head", head_title(None))  # the first page starts with the mean, the other with head 1
    else:
        same = {key: value for key, value in same.items() if key not in ("layer", "head")}
    address = "inside?" + urlencode(same | {"show": attending, "step": number(step)}, doseq=True)
    return f'<p class="open-step"><a href="{html.escape(address)}" target="_self">Open this step ›</a></p>'
