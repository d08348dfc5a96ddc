"""The parts of a long page as a list at its top."""

import html
from collections.abc import Iterable


def listed(titles: Iterable[str]) -> str:
    """HTML. titles : of the headings. parts.js leads to them: a link would make a stop of the Back button."""
    buttons = "".join(f'<button type="button">{html.escape(title)}</button>' for title in titles)
    return f'<nav class="parts" aria-label="Parts of this page">{buttons}</nav>'
