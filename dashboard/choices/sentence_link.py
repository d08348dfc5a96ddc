"""From one of many sentences to the same sentence on the first page. No Streamlit here."""

import html
from collections.abc import Sequence
from urllib.parse import urlencode

from dashboard.choices import pairs
from dashboard.choices.options import TYPED, target_title, title


def sentence_link(pair: str, mechanisms: Sequence[str], text: str, target: str | None = None) -> str:
    """HTML: the sentence, as a link that opens it. target : the text that the models are forced to write."""
    query = {"pair": pairs.of(pair).title, "text": text, "show": [title(name) for name in mechanisms]}
    query |= {"target": target_title(TYPED), "force": target} if target else {}
    address = "./?" + urlencode(query, doseq=True)
    language = html.escape(pairs.of(pair).source)
    words = html.escape(text)
    return f'<a href="{html.escape(address)}" target="_self" lang="{language}" dir="auto">{words}</a>'
