"""What a chapter of the page Learn is, and the models and sentences that the chapters show. No Streamlit here."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from attnviz.data.tasks import TASKS
from attnviz.models.names import ModelName
from attnviz.trace import Trace
from dashboard.browser.plot import Cell
from dashboard.choices import pairs
from dashboard.choices.options import CHAPTER_TITLES, model, title
from dashboard.inside.scene import Column
from dashboard.markup.text import escape
from dashboard.session import caches

PAIR = "en-fr"
SENTENCE = TASKS[PAIR].first
TRANSLATION = TASKS[PAIR].forced  # of SENTENCE
SHORT = "Two boys play with a yellow ball."
LONG = (
    "A young woman in a red dress sits on a bench in front of a brick house and reads a book while two small dogs "
    "sleep in the shade of a tall tree."
)


def _symbols(text: str) -> str:
    """Text with `x_tj` and `W^Q` as HTML with subscripts and superscripts."""
    subscripts = re.sub(r"_([\w−]+)", r"<sub>\1</sub>", escape(text))
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
            f'<p class="open-step"><b>Try it.</b> {escape(self.ask)} '
            f'<a href="{escape(self.address)}" target="_self">Open the page in this state ›</a></p></div>'
        )


def trace(mechanism: str, text: str, target: str | None = None) -> Trace:
    """Raises ValueError where the model is missing."""
    return caches.trace(model(PAIR, mechanism), text, target, 1)


def column(mechanism: str, text: str, target: str | None = None, layer: int = 0, head: int = 0) -> Column:
    """A model as the page of one step has it."""
    return Column(trace(mechanism, text, target), layer, head, target)


def state(*mechanisms: str, text: str = SENTENCE, **others: str) -> dict[str, str | list[str]]:
    """The parameters that open the first page, or that of one step, with these mechanisms."""
    return {"pair": pairs.of(PAIR).title, "text": text, "show": [title(name) for name in mechanisms]} | others


def heads_state(text: str = SENTENCE, **others: str) -> dict[str, str]:
    """The parameters that open the page of heads with the Transformer."""
    return {"model": f"{ModelName.parse(model(PAIR, 'transformer')).task.title} · Transformer", "text": text} | others
