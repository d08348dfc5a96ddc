"""A lesson of a teacher's folder: refused in a sentence, or shown and printed with nothing that runs or misleads."""

import re

from hypothesis import strategies as st

from tests.hostile import strategies
from tests.hostile.workplace import Failure, Workplace, sentence

HEADER = "---\ntitle: A lesson\nminutes: 15\n---\n"
WARM = f"{HEADER}\n## A part\n\nText, [a page](./heads?text=A+dog).\n\nQuestion: Why?\n\nAnswer: So.\n".encode()
_RUNS = re.compile(
    '<script|<img|<iframe|<style>|\\son\\w+=[^&]*>|href="(?!\\./|https://)|src=|[\x1b\u202a-\u202e\u2066\u2067]',
    re.IGNORECASE,
)
_PIECES = ("## ", "- ", "Question: ", "Answer: ", "> ", "```\n", "[a]: ", "[a](", "![a](", "<", "\n\n", "javascript:x)")
_PIECES += ("./../..)", "//evil.example)", "https://e.example/)", "./heads?x)", "&#106;avascript:x)", "\\[", "[" * 40)


def strategy():
    pieces = st.lists(st.one_of(st.sampled_from(_PIECES), strategies.texts), max_size=12).map("".join)
    headers = st.one_of(st.just(HEADER), strategies.texts.map(lambda text: f"---\ntitle: {text}\nminutes: 5\n---\n"))
    made = st.tuples(headers, pieces).map(lambda parts: "".join(parts).encode("utf-8", "replace"))
    return st.one_of(made, strategies.damaged(WARM))


def check(place: Workplace, case) -> None:
    from dashboard.learn import lesson

    path = place.folder / "mine.md"
    path.write_bytes(case)
    with sentence():
        opened = lesson.open_file(path)
        blocks = [block for part in opened.parts for block in part.blocks]
        markup = "".join(block.markup + (block.answer.markup if block.answer else "") for block in blocks)
        sheet = lesson.sheet_html(opened, "http://localhost/").decode()
        if ran := _RUNS.search(_without_text(markup)):
            raise Failure(f"{ran[0]!r} reached the page")
        if "<script" in sheet.lower() or not lesson.sheet_pdf(opened).startswith(b"%PDF"):
            raise Failure("the sheet is no sheet")


def _without_text(markup: str) -> str:
    """The tags alone, and characters that would turn words round."""
    return "".join(re.findall("<[^>]*>|[\x1b\u202a-\u202e\u2066\u2067]", markup))
