"""What a file of text must be for every command: UTF-8, with or without a byte-order mark, without NUL bytes.

Text in another encoding decodes to other characters without an error, so it is refused by name and not guessed.
"""

import codecs
import re
from pathlib import Path

# UTF-32 first: its little-endian mark begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
LONGEST_MARK = 4  # bytes
# What each column of a TSV file may be called in a first line that names them.
_COLUMNS = {
    "id": "id number",
    "source": "source src sentence text english en",
    "target": "target tgt translation reference label french fr german de japanese ja",
}
_ORDERS = (["source"], ["source", "target"], ["id", "source", "target"])


def check_mark(start: bytes, name: str | Path) -> None:
    """ValueError if a file begins with the byte-order mark of another encoding than UTF-8. start : its first bytes."""
    for mark, encoding in _MARKS:
        if start.startswith(mark):
            raise ValueError(f"{name} must be UTF-8 text; its first bytes say {encoding}: save it as UTF-8")


def check_line(line: bytes, number: int, name: str | Path) -> None:
    """ValueError for a line that holds a NUL byte. number : of the line, from 1."""
    if b"\0" in line:
        raise ValueError(
            f"{name} must be UTF-8 text; line {number:,} holds a NUL byte, as UTF-16 text and files that are no text do"
        )


def decode(content: bytes, name: str | Path) -> str:
    """The text of a whole file. name : for errors. ValueError when it is not UTF-8, or holds a NUL."""
    check_mark(content[:LONGEST_MARK], name)
    if (place := content.find(b"\0")) >= 0:
        check_line(b"\0", content.count(b"\n", 0, place) + 1, name)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name} must be UTF-8 text; got byte {error.object[error.start]:#04x} at {error.start}"
        ) from None


def is_header(line: str, name: str | Path) -> bool:
    """Does the first line of a TSV file name its columns? ValueError if it names them in an order that is not read."""
    fields = [field.strip().casefold() for field in line.split("\t")]
    roles = [next((role for role, names in _COLUMNS.items() if field in names.split()), None) for field in fields]
    if None in roles or (len(fields) == 1 and not re.fullmatch("source|sentence", fields[0])):
        return False
    if roles not in _ORDERS:
        raise ValueError(
            f"{name} must have the columns source; source, target; or id, source, target; its first line says "
            f"{', '.join(fields)}"
        )
    return True
