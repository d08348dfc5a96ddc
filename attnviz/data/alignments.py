"""Links between words as other programs and public test sets write them, beside the two files of their sentences.

    0-0 1-2 3?1     a line a sentence (Pharaoh, Moses, GIZA++, fast_align); `3?1`, `3p1` and `3-1?` are only possible
    12 1 3 S        a line a link (NAACL 2003): sentence, word of the source, word of the target, S sure or P possible

The words stand between spaces. Mihalcea & Pedersen 2003, "An Evaluation Exercise for Word Alignment", describes NAACL.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from attnviz.arguments import checked
from attnviz.data.readers import read_lines
from attnviz.gold import Link, LinkedPair, Span

_PHARAOH = re.compile(r"(\d{1,9})([-?p])(\d{1,9})(\?)?")
_NAACL = re.compile(r"(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})(?:\s+([SP]))?(?:\s+[\d.]+)?\s*", re.IGNORECASE)
_SENTENCE = re.compile(r"\s*<s\s+snum\s*=\s*\"?0*(\d{1,9})\"?\s*>(.*?)(?:</s>)?\s*", re.IGNORECASE)

Links = tuple[set[Link], set[Link]]  # sure, and only possible; (source word, target word), counted from 0


@checked
def sentences(source: str | Path, target: str | Path) -> dict[int, LinkedPair]:
    """Two files of lines side by side, without links: number of the sentence -> pair.

    A sentence has the number of its line, from 1, or that of its tag `<s snum=12> … </s>`. Lines that are empty in both
    files are left out. ValueError if one file has more lines, if sentence numbers differ, or if a sentence has no
    words.
    """
    sides = [_numbered(Path(path)) for path in (source, target)]
    if sides[0].keys() != sides[1].keys():
        raise ValueError(
            f"{source} has {len(sides[0])} sentences and {target} has {len(sides[1])}; line by line they must be "
            "translations of each other"
        )
    pairs = {}
    for number, text in sides[0].items():
        texts = text, sides[1][number]
        if not any(texts):
            continue
        if not all(texts):
            empty = target if texts[0] else source
            raise ValueError(f"sentence {number} must have words in both files; got none in {empty}")
        own, other = map(_spans, texts)
        pairs[number] = LinkedPair(*texts, own, other, frozenset(), frozenset())
    if not pairs:
        raise ValueError(f"{source} and {target} must hold at least one sentence; got none")
    return pairs


@checked
def read(
    links: str | Path,
    source: str | Path,
    target: str | Path,
    possible: str | Path | None = None,
    first: int | None = None,
    swapped: bool = False,
) -> tuple[LinkedPair, ...]:
    """Sentence pairs with the links of a file in either format, which is recognised.

    possible : a second file, of links that are only possible. first : the number of the first word, 0 or 1; None: 1 in
    NAACL format, where word 0 means no word; 0 in the other format. swapped : the first word of a link is one of the
    target. Sentences that the files of links do not mention are left out. ValueError names file and line.
    """
    if first not in (None, 0, 1):
        raise ValueError(f"first must be 0, 1 or None; got {first!r:.80}")
    pairs, marked = sentences(source, target), {}
    for path, sure in ((links, True), *(((possible, False),) if possible else ())):
        for number, (certain, others) in _marked(Path(path), pairs, first, swapped).items():
            kinds = marked.setdefault(number, (set(), set()))
            kinds[0].update(certain if sure else ())
            kinds[1].update(others, () if sure else certain)
    return tuple(_linked(pairs[number], *kinds) for number, kinds in sorted(marked.items()))


def _numbered(path: Path) -> dict[int, str]:
    """The sentences of a file by their numbers."""
    result: dict[int, str] = {}
    for line, text in enumerate(read_lines(path), start=1):
        tag = _SENTENCE.fullmatch(text)
        number, text = (int(tag[1]), tag[2]) if tag else (line, text)
        if number in result:
            raise ValueError(f"{path}, line {line}: sentence {number} must come once; got it twice")
        result[number] = text.strip()
    return result


def _spans(text: str) -> tuple[Span, ...]:
    return tuple(match.span() for match in re.finditer(r"\S+", text))


def _marked(path: Path, pairs: dict[int, LinkedPair], first: int | None, swapped: bool) -> dict[int, Links]:
    """The links of a file: number of the sentence -> sure and possible ones, as (source, target) from 0."""
    lines = read_lines(path)
    naacl = _NAACL.fullmatch(next((line for line in lines if line.strip()), ""))
    parse = _naacl if naacl else _pharaoh
    start = (1 if naacl else 0) if first is None else first
    result: dict[int, Links] = {}
    for line, text in enumerate(lines, start=1):
        try:
            for number, link, sure in parse(line, text):
                if number not in pairs:
                    raise ValueError(f"there is no sentence {number} in the files of sentences")
                kinds = result.setdefault(number, (set(), set()))
                if link is not None and (place := _place(link, pairs[number], start, swapped)):
                    kinds[not sure].add(place)
        except ValueError as error:
            raise ValueError(f"{path}, line {line}: {error}") from None
    return result


def _pharaoh(line: int, text: str) -> Iterable[tuple[int, Link | None, bool]]:
    """The links of one line; its number is that of the sentence. A link None means: the word has no link."""
    items = text.split()
    if not items:
        yield line, None, True
    for item in items:
        match = _PHARAOH.fullmatch(item)
        if not match:
            raise ValueError(f"a link must be i-j, or i?j when it is only possible; got {item!r:.80}")
        yield line, (int(match[1]), int(match[3])), match[2] == "-" and not match[4]


def _naacl(line: int, text: str) -> Iterable[tuple[int, Link | None, bool]]:
    if not text.strip():
        return
    match = _NAACL.fullmatch(text)
    if not match:
        raise ValueError(f"a link must be SENTENCE SOURCE TARGET, then S or P; got {text!r:.80}")
    yield int(match[1]), (int(match[2]), int(match[3])), (match[4] or "S").upper() == "S"


def _place(link: Link, pair: LinkedPair, first: int, swapped: bool) -> Link | None:
    """The link as (source, target) from 0; None when a word is 0 and words are counted from 1, which means that the
    other word has no link."""
    words = tuple(reversed(link)) if swapped else link
    if first and not all(words):
        return None
    for word, spans, name in zip(words, (pair.source_words, pair.target_words), ("source", "target")):
        if word - first >= len(spans):
            last = len(spans) - 1 + first
            raise ValueError(
                f"the {name} has words {first} to {last}; got word {word}. Are words counted from {1 - first}, or is "
                "the first number of a link one of the target?"
            )
    return words[0] - first, words[1] - first


def _linked(pair: LinkedPair, sure: set[Link], possible: set[Link]) -> LinkedPair:
    sides = pair.source, pair.target, pair.source_words, pair.target_words
    return LinkedPair(*sides, frozenset(sure), frozenset(sure | possible))
