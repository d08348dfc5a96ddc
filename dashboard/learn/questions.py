"""Learners' questions, their answers (questions.md), and a search by words. No Streamlit here."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from dashboard.choices.options import CHAPTER_TITLES, chapter_title
from dashboard.learn.chapters import CHAPTERS
from dashboard.markup import terms
from dashboard.markup.text import escape

_SHOWN = 4  # that are found at once
_CHAPTERS = {f"Chapter: {key}": key for key in CHAPTER_TITLES}
_IN_QUESTION, _IN_ANSWER = 3, 1  # what a word counts there
_NO_HELP = set(
    "a an and are at be can do does for from how i in is it its me must my of on or should that the there this to what "
    "when where which why with you your".split()
)


@dataclass(frozen=True)
class Question:
    """answer : HTML. chapter : with more on it. beside : additional search words."""

    question: str
    answer: str
    chapter: str
    beside: str = ""

    def html(self, is_open: bool = False) -> str:
        return (
            f'<details class="answer"{" open" if is_open else ""}><summary>{escape(self.question)}</summary>'
            f"<p>{self.answer} {_chapter_link(self.chapter)}</p></details>"
        )


def chapter_address(key: str) -> str:
    """Of a chapter, below the address of the page."""
    return f"learn?{urlencode({'chapter': chapter_title(key)})}"


def _chapter_link(key: str) -> str:
    return f'<a href="./{escape(chapter_address(key))}" target="_self">{escape(chapter_title(key))} ›</a>'


def _read(file: Path) -> Iterator[Question]:
    """ValueError, with the question, for one of another form."""
    for question, paragraphs in list(terms.sections(file).items())[1:]:
        match [terms.filled(paragraph, f"{file.name}, “{question}”,") for paragraph in paragraphs]:
            case [answer, chapter, also] if chapter in _CHAPTERS and also.startswith("Also: "):
                yield Question(question, answer, _CHAPTERS[chapter], also[6:])
            case _:
                raise ValueError(
                    f"{file.name}: below “{question}” must stand an answer, then Chapter: with one of "
                    f"{', '.join(CHAPTER_TITLES)}, then Also: with words, each a paragraph"
                )


QUESTIONS = tuple(_read(Path(__file__).with_suffix(".md")))


def html(query: str) -> str:
    """The search results, or all questions behind a click."""
    if not query.strip():
        every = "".join(question.html() for question in QUESTIONS)
        words = f"{len(QUESTIONS)} questions that learners ask"
        return f'<details class="questions"><summary>{words}</summary>{every}</details>'
    answers, chapters = search(query)
    if not answers and not chapters:
        return (
            f'<p class="what" role="status">No question or chapter has these words: {escape(query)}. Try others, such '
            "as padding, symmetric or first token.</p>"
        )
    links = "".join(f"<li>{_chapter_link(key)}</li>" for key in chapters)
    listed = "".join(question.html(place == 0) for place, question in enumerate(answers))
    named = f"<p>Chapters:</p><ul>{links}</ul>" if links else ""
    return f'<div class="questions" role="status">{listed}{named}</div>'


def search(query: str) -> tuple[list[Question], list[str]]:
    """The questions with most of the words, best first, and the keys of chapters."""
    words = _words(query) - _NO_HELP or _words(query)
    scored = [(_score(words, question), -place) for place, question in enumerate(QUESTIONS)]
    best = max(score for score, _ in scored)
    order = sorted((entry for entry in scored if entry[0] > max(best / 3, 0)), reverse=True)[:_SHOWN]
    stories = {chapter.key: f"{chapter.title} {' '.join(chapter.story)}" for chapter in CHAPTERS}
    counts = {key: len(words & _words(_without_tags(story))) for key, story in stories.items()}
    most = max(counts.values())
    named = [key for key, count in counts.items() if most and count == most][:_SHOWN]
    return [QUESTIONS[-place] for _, place in order], named


def _score(words: set[str], question: Question) -> int:
    first = _words(f"{question.question} {question.beside}")
    answer = _words(_without_tags(question.answer))
    return sum(_IN_QUESTION * (word in first) + _IN_ANSWER * (word in answer) for word in words)


def _without_tags(markup: str) -> str:
    return re.sub("<[^>]*>", " ", markup)


def _words(text: str) -> set[str]:
    """Words in lower case without accents, plurals as singulars; √ is a word."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    words = set(re.findall(r"[a-z_]+", plain)) | ({"sqrt"} if "√" in text else set())
    return {word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word for word in words}
