"""Links from one page to the same text or step on another. No Streamlit here."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from attnviz.mechanisms import MECHANISMS
from dashboard.choices import pairs
from dashboard.choices.options import KINDS, TYPED, head_title, number, target_title, title
from dashboard.markup.text import escape

# parameters that mean the same on the first page and on that of one step
_SAME = ("pair", "text", "target", "force", "layer", "head", "beam", "tables")


def sentence_link(pair: str, mechanisms: Sequence[str], text: str, target: str | None = None) -> str:
    """HTML: one of many sentences, as a link that opens it on the first page.

    target : the text that the models are forced to write.
    """
    query = {"pair": pairs.of(pair).title, "text": text, "show": [title(name) for name in mechanisms]}
    query |= {"target": target_title(TYPED), "force": target} if target else {}
    address = "./?" + urlencode(query, doseq=True)
    language = escape(pairs.of(pair).source)
    words = escape(text)
    return f'<a href="{escape(address)}" target="_self" lang="{language}" dir="auto">{words}</a>'


def step_link(query: Mapping[str, str | list[str]], mechanisms: Sequence[str], step: int) -> str:
    """HTML: a link from the first page that opens a step (from 0) of the mechanisms that attend; without any, an empty
    paragraph.

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
    return f'<p class="open-step"><a href="{escape(address)}" target="_self">Open this step ›</a></p>'
