"""Links to the pages above a page, for a narrow screen: there Streamlit puts its own into the closed sidebar."""

import html
from collections.abc import Mapping


def shown(titles: Mapping[str, str], here: str) -> str:
    """HTML, which style.css shows where there is little room. titles : by the path of a page; here : the path of this.

    pages.js passes a click on to Streamlit's own link, so the session goes on; without it the address is opened anew.
    """
    links = "".join(
        f'<a href="./{html.escape(path)}" target="_self"{_current(path == here)}>{html.escape(title)}</a>'
        for path, title in titles.items()
    )
    return f'<nav class="pages" aria-label="Pages">{links}</nav>'


def _current(here: bool) -> str:
    return ' aria-current="page"' if here else ""
