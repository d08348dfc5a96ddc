"""A lesson is a Markdown file: a header, parts with links to states of pages, questions and answers. No Streamlit here.

    ---
    title: Where does it look?
    minutes: 15
    about: For people who have not seen attention before.
    ---

    ## The first guess

    Text in Markdown. [Open the sentence](./?text=A+dog+runs.&guess=true) in a tab of its own.

    Question: Which word do the models look at when they write ‘chien’?

    Answer: At ‘dog’.

The files that ship are in docs/lessons; ATTNVIZ_LESSONS names a folder with a teacher's own. A link of the page can
name only a file that is in one of them. HTML in a lesson is shown as text, and of a picture its description. A link
must lead to a page of the dashboard or to an https address; otherwise the lesson is refused, with the line.
"""

import functools
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

from attnviz import storage
from attnviz.export import bundle
from attnviz.figures.theme import LIGHT
from attnviz.trace.visible import escaped
from dashboard.choices import settings
from dashboard.markup.text import escape
from dashboard.pages import PAGES

_ROOT = Path(__file__).resolve().parents[2]
SHIPPED = next((path for path in (_ROOT / "docs" / "lessons", _ROOT / "lessons") if path.is_dir()), _ROOT / "lessons")
LARGEST = 200_000  # bytes of a file
MOST = 200  # files of a folder
_TITLE_LENGTH = 200  # characters of a title
_HEADER = re.compile(r"---[ \t]*\n(.*?\n)---[ \t]*(?:\n|\Z)", re.DOTALL)
_PAGE = re.compile(rf"\./({'|'.join(page.path for page in PAGES)})(\?[^#]*)?")
_KEYS = ("title", "minutes", "about")
_SHEET = "h2 { font-size: 17px; margin: 28px 0 6px; } .line { border-bottom: 1px solid #8a8f98; height: 30px; }"


class LessonError(ValueError):
    """An invalid lesson file; the message says where and why."""


@dataclass(frozen=True)
class Block:
    """A paragraph, a list or another piece of a part. markup : HTML. lines : the same as plain text. answer : of a
    question, the answer as a block; else None."""

    markup: str
    lines: tuple[str, ...]
    answer: "Block | None" = None


@dataclass(frozen=True)
class Part:
    """title : "" for the part before the first heading."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Lesson:
    """minutes : its duration. about : its readers, in a sentence, or "". links : the targets, as written."""

    title: str
    minutes: int
    about: str
    parts: tuple[Part, ...]
    links: tuple[str, ...]

    @property
    def questions(self) -> list[Block]:
        return [block for part in self.parts for block in part.blocks if block.answer]


def files() -> dict[str, Path]:
    """The lessons on this server: name -> file, a teacher's own first."""
    own = os.environ.get(settings.LESSONS, "").strip()
    found_files: dict[str, Path] = {}
    for folder in [Path(own)] * bool(own) + [SHIPPED]:
        try:
            names = sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(".md"))
        except OSError:
            continue
        for name in names[:MOST]:
            found_files.setdefault(name.removesuffix(".md"), folder / name)
    return found_files


def open_file(path: Path) -> Lesson:
    """Open a lesson. LessonError if it cannot be read."""
    return _read(str(path), storage.stamp(path))


@functools.lru_cache(64)
def _read(path: str, stamp: tuple) -> Lesson:
    name = os.path.basename(path)
    try:
        text = storage.decode(storage.read(path, LARGEST), name)
    except OSError as error:
        raise LessonError(f"{name} cannot be read: {error.strerror or 'it is not there'}") from None
    except ValueError as error:
        raise LessonError(str(error)) from None
    return read(text, name)


def read(text: str, name: str) -> Lesson:
    """The lesson of a text. name : of its file, for errors. LessonError if it is not a lesson."""
    text = "\n".join(text.splitlines()) + "\n"
    match = _HEADER.match(text)
    if match is None:
        raise LessonError(f"{name} must begin with a header: a line ---, title: and minutes:, and a line ---")
    header = _header(match[1], name)
    before = text[: match.end()].count("\n")
    parser = MarkdownIt("commonmark", {"html": False})
    parser.validateLink = lambda url: True  # type: ignore[method-assign]  # they are checked here, with their line
    tokens, links = parser.parse(text[match.end() :]), []
    for token in tokens:
        _check(token, name, before, links)
    parts = _parts(parser, tokens, name, before)
    if not any(part.blocks for part in parts):
        raise LessonError(f"{name} has no text below its header")
    return Lesson(header["title"], int(header["minutes"]), header.get("about", ""), parts, tuple(links))


def _header(text: str, name: str) -> dict[str, str]:
    header: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 2):
        key, colon, value = (part.strip() for part in line.partition(":"))
        if not line.strip():
            continue
        if not colon or key not in _KEYS or key in header or not 0 < len(value) <= _TITLE_LENGTH:
            raise LessonError(
                f"{name}, line {number}: the header takes title:, minutes: and about:, once, each with at most "
                f"{_TITLE_LENGTH} characters; got {line[:80]!r}"
            )
        header[key] = escaped(value)
    if "title" not in header:
        raise LessonError(f"{name}: the header must have a title")
    if not re.fullmatch("[1-9][0-9]{0,2}", header.get("minutes", "")):
        raise LessonError(f"{name}: minutes in the header must be a whole number from 1 to 999")
    return header


def _check(token: Token, name: str, before: int, links: list[str]) -> None:
    """Make invisible characters of a token visible, and collect its links. LessonError for a link that is not
    allowed."""
    line = before + (token.map[0] if token.map else 0) + 1
    for part in [token, *(token.children or ())]:
        part.content = escaped(part.content)
        if part.type == "image":
            part.type, part.content = "text", f"(picture: {part.content})" if part.content else "(picture)"
        if part.type != "link_open":
            continue
        address = str(part.attrs.get("href", ""))
        page, elsewhere = _PAGE.fullmatch(address), re.fullmatch(r"https://[^\s/@]+(/\S*)?", address)
        if not page and not elsewhere:
            raise LessonError(
                f"{name}, line {line}: a link must lead to a page of the dashboard, such as ./heads?text=A+dog+runs., "
                f"or to an https address; got {address[:80]!r}"
            )
        part.attrs |= {"target": "_blank", "rel": "noopener"}  # a lesson stays open, with what was answered
        links.append(address)


def _parts(parser: MarkdownIt, tokens: Sequence[Token], name: str, before: int) -> tuple[Part, ...]:
    """Headings of the first two levels begin a part."""
    parts: list[tuple[str, list[Block]]] = [("", [])]
    for group in _top_level(tokens):
        first = group[0]
        line = before + (first.map[0] if first.map else 0) + 1
        if first.type == "heading_open" and first.tag in ("h1", "h2"):
            parts.append(("".join(_lines(group)), []))
            continue
        blocks = parts[-1][1]
        block, kind = _block(parser, group)
        if kind == "Answer":
            if not blocks or blocks[-1].answer is None or blocks[-1].answer.lines:
                raise LessonError(f"{name}, line {line}: an answer must follow a question")
            blocks[-1] = Block(blocks[-1].markup, blocks[-1].lines, block)
        else:
            blocks.append(Block(block.markup, block.lines, Block("", ())) if kind == "Question" else block)
    return tuple(Part(title, tuple(blocks)) for title, blocks in parts if title or blocks)


def _top_level(tokens: Sequence[Token]) -> list[list[Token]]:
    groups: list[list[Token]] = []
    for token in tokens:
        if token.level == 0 and token.nesting >= 0:
            groups.append([])
        groups[-1].append(token)
    return groups


def _block(parser: MarkdownIt, group: Sequence[Token]) -> tuple[Block, str]:
    """A block, and whether it is a "Question" or an "Answer"; this mark is removed."""
    kind = ""
    if group[0].type == "paragraph_open" and (children := group[1].children):
        if mark := re.match("(Question|Answer): *", children[0].content):
            kind, children[0].content = mark[1], children[0].content[mark.end() :]
    return Block(parser.renderer.render(group, parser.options, {}), tuple(_lines(group))), kind


def _lines(group: Sequence[Token]) -> list[str]:
    """Plain text: a line for each paragraph or item."""
    lines, item = [], ""
    for token in group:
        item = "• " if token.type == "list_item_open" else item
        if token.type == "inline":
            lines.append(item + _plain(token.children or ()))
            item = ""
        elif token.type in ("fence", "code_block"):
            lines += token.content.splitlines()
    return lines


def _plain(children: Sequence[Token]) -> str:
    """The text of a line. After a link stands the sentence that it opens, because paper has no links."""
    words, sentence = [], ""
    for child in children:
        if child.type == "link_open":
            sentence = dict(parse_qsl(urlsplit(str(child.attrs["href"])).query)).get("text", "")
        elif child.type == "link_close":
            words.append(f" (“{escaped(sentence)}”)" if sentence else "")
        else:
            words.append(" " if child.type in ("softbreak", "hardbreak") else child.content)
    return "".join(words)


def sheet_html(lesson: Lesson, address: str, answers: bool = False) -> bytes:
    """The lesson for printing, with lines to write on. address : of the dashboard, for its links. answers : include
    them?"""
    body = [f"<h1>{escape(lesson.title)}</h1><p>{lesson.minutes} minutes. {escape(lesson.about)}</p>"]
    numbers = count(1)
    for part in lesson.parts:
        body.append(f"<h2>{escape(part.title)}</h2>" if part.title else "")
        for block in part.blocks:
            number = f"<p><b>{next(numbers)}.</b> " if block.answer else "<p>"
            body.append(block.markup.replace("<p>", number, 1))
            if block.answer:
                written = block.answer.markup.replace("<p>", "<p><i>Answer:</i> ", 1)
                body.append(written if answers else '<div class="line"></div>' * 3)
    markup = "\n".join(body).replace('href="./', f'href="{escape(address)}')
    return bundle.document(lesson.title, markup, LIGHT, 760, _SHEET)


def sheet_pdf(lesson: Lesson, answers: bool = False) -> bytes:
    """The same as a PDF on A4, without links."""
    from attnviz.export.printed import sheet  # imports matplotlib

    lines = [sheet.Line(lesson.title, "title"), sheet.Line(f"{lesson.minutes} minutes. {lesson.about}")]
    numbers = count(1)
    for part in lesson.parts:
        lines += [sheet.Line(part.title, "heading")] if part.title else []
        for block in part.blocks:
            number = f"{next(numbers)}. " if block.answer else ""
            lines += [sheet.Line(line) for line in _beginning(number, block.lines)]
            if block.answer:
                written = [sheet.Line(line) for line in _beginning("Answer: ", block.answer.lines)]
                lines += written if answers else [sheet.Line("", "ruled")] * 3
    return sheet.text_pdf(lines, lesson.title)


def _beginning(words: str, lines: Sequence[str]) -> list[str]:
    """The lines with some words before the first."""
    return [*(words + line for line in lines[:1]), *lines[1:]]


def answered(lesson: Lesson, answers: Mapping[int, str], guesses: Sequence[Mapping[str, object]]) -> bytes:
    """A student's answers and guesses as plain text. answers : number of the question, from 0 -> text."""
    lines = [lesson.title, ""]
    for number, question in enumerate(lesson.questions):
        lines += [f"{number + 1}. {' '.join(question.lines)}", escaped(answers.get(number, "")) or "(no answer)", ""]
    if guesses:
        lines += ["Guesses", ""]
    for row in guesses:
        words = "; ".join(f"{key.replace('_', ' ')}: {value}" for key, value in row.items())
        lines.append(escaped(words.replace("\n", " ")))
    return "\n".join(lines).encode("utf-8", "replace")
