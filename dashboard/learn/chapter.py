"""What a chapter of the page Learn is. No Streamlit here."""

import html
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from dashboard.browser.plot import Cell
from dashboard.choices.options import CHAPTER_TITLES


def _symbols(text: str) -> str:
    """Text with `x_tj` and `W^Q` as HTML with subscripts and superscripts."""
    subscripts = re.sub(r"_([\w−]+)", r"<sub>\1</sub>", html.escape(text))
    return re.sub(r"\^(\w)", r"<sup>\1</sup>", subscripts)


@dataclass(frozen=True, eq=False)
class Drawn:
    """The live pictures of a chapter, and their text equivalents as HTML."""

    cells: list[Cell]
    tables: str = ""


@dataclass(frozen=True)
class Chapter:
    """key : in the address. story : paragraphs, HTML. symbols : each symbol of the chapter and what it stands for, as
    text with `_` before a subscript and `^` before a superscript.
    question, answer : HTML. path, query : the page that the link opens, and its state; ask : what to do there.
    draw : dark -> the pictures; called when the chapter is open. ValueError where a model is missing.
    """

    key: str
    story: tuple[str, ...]
    symbols: Mapping[str, str]
    question: str
    answer: str
    path: str
    query: Mapping[str, str | list[str]]
    ask: str
    draw: Callable[[bool], Drawn]

    @property
    def title(self) -> str:
        return CHAPTER_TITLES[self.key]

    @property
    def address(self) -> str:
        """Of the page that the link opens, from this page."""
        return f"./{self.path}?" + urlencode(self.query, doseq=True)

    def words(self) -> str:
        """The story and its symbols, HTML."""
        paragraphs = "".join(f"<p>{paragraph}</p>" for paragraph in self.story)
        terms = "".join(f"<dt>{_symbols(name)}</dt><dd>{_symbols(words)}</dd>" for name, words in self.symbols.items())
        return f'<div class="story">{paragraphs}<dl class="symbols">{terms}</dl></div>'

    def ask_first(self) -> str:
        """The question, HTML: it stands before the pictures, so that a reader can guess first."""
        return f'<div class="exercise"><p><b>Think about it.</b> {self.question}</p></div>'

    def exercise(self) -> str:
        """The answer behind a click, and the link, HTML."""
        return (
            '<div class="exercise">'
            f'<details class="answer"><summary>Show the answer</summary><p>{self.answer}</p></details>'
            f'<p class="open-step"><b>Try it.</b> {html.escape(self.ask)} '
            f'<a href="{html.escape(self.address)}" target="_self">Open the page in this state ›</a></p></div>'
        )
