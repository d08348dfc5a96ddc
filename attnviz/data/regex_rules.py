"""Checks that a regular expression of a tokenizer cannot run for ever on some text.

The engine (Oniguruma) tries all ways to match. If a repeated group can match in several ways, their number doubles with
every character: `(a+)+b`, `(a|a)*b`. So a repeated group may hold neither a choice nor a repetition of open length, and
a branch only a few repetitions. Then the time is at most a small power of the length of the text.
"""

import re
from dataclasses import dataclass, replace

LONGEST_PATTERN = 4000  # characters of a pattern
DEEPEST = 12  # groups within groups
UNBOUNDED, VARIABLE = 2, 6  # repetitions in a branch: without an end, and of more than one length
SHORT = 3  # lengths that a repetition may choose among before it counts as one without an end
LARGEST = 4000  # parts that a pattern stands for when its counts are written out

_GPT4 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# As published with GPT-2, GPT-4 (cl100k), Llama 3, Qwen 2, and GPT-4o: each takes time in proportion to ordinary text.
LINEAR = frozenset(
    {
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        _GPT4 % "{1,3}",
        _GPT4 % "",
        r"(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    }
)

_GROUP = re.compile(r"\((?:\?(?:[ims]*(?:-[ims]+)?:|[=!>]|<[=!]|P?<[A-Za-z_]\w*>)|(?!\?|\*))")
_COUNT = re.compile(r"[*+?]|\{(\d*)(,?)(\d*)\}")
_REFERENCE = re.compile(r"\\(?:[1-9]|k|g|K|X)")
_ESCAPE = re.compile(
    r"\\(?:[pP]\{[^}]*\}|x\{[0-9A-Fa-f]+\}|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[sSdDwWhHnrtfvabBAzZ]|[^A-Za-z0-9])"
)
_FLAGS = re.compile(r"\(\?[ims]*(?:-[ims]+)?\)")
_WIDTHLESS = re.compile(r"\\[bBAzZ]|\^|\$|\(\?(?:[=!]|<[=!])")


class RegexError(ValueError):
    """A pattern that may take for ever, or for which this is not known; the message says why."""


@dataclass
class _Branch:
    """Counts for a part of a pattern.

    linear : nothing after an open repetition can fail to match. shortest : characters of its shortest match,
    or fewer.
    """

    unbounded: int = 0
    variable: int = 0
    choice: bool = False
    linear: bool = True
    size: int = 1
    shortest: int = 0

    def add(self, other: "_Branch", may_fail: bool) -> None:
        self.linear = self.linear and other.linear and not (self.unbounded and may_fail)
        self.unbounded += other.unbounded
        self.variable += other.variable
        self.choice = self.choice or other.choice
        self.size += other.size
        self.shortest += other.shortest
        _check_size(self.size)
        if self.unbounded > UNBOUNDED or self.variable > VARIABLE:
            raise RegexError("it repeats too many parts after each other")

    def either(self, other: "_Branch") -> "_Branch":
        return _Branch(
            max(self.unbounded, other.unbounded),
            max(self.variable, other.variable),
            True,
            self.linear and other.linear,
            self.size + other.size,
            min(self.shortest, other.shortest),
        )


def is_linear(pattern: str) -> bool:
    """True if a search takes time linear in the length of the text; False if it takes at most a power of it.

    Raises RegexError if it may take longer, or if this is not known.
    """
    return pattern in LINEAR or _read(pattern).linear


def shortest_match(pattern: str) -> int:
    """A lower bound on the number of characters of a match; 0 if it can match between two characters. Raises
    RegexError."""
    return 0 if pattern in LINEAR else _read(pattern).shortest


def _read(pattern: str) -> _Branch:
    if len(pattern) > LONGEST_PATTERN:
        raise RegexError(f"it has {len(pattern):,} characters, and at most {LONGEST_PATTERN:,} are read")
    reader = _Reader(pattern)
    whole = reader.branches(0)
    if reader.place < len(pattern):
        raise RegexError("it has a bracket that was not opened")
    return whole


def _check_size(size: int) -> None:
    if size > LARGEST:
        raise RegexError(f"written out it has more than {LARGEST:,} parts")


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, pattern: str) -> None:
        self.pattern, self.place = pattern, 0

    def branches(self, depth: int) -> _Branch:
        if depth > DEEPEST:
            raise RegexError("its groups are too deep")
        choices = self._branch(depth)
        while self._take("|"):
            choices = choices.either(self._branch(depth))
        return choices

    def _branch(self, depth: int) -> _Branch:
        branch = _Branch()
        while self.place < len(self.pattern) and self.pattern[self.place] not in "|)":
            part = self._part(depth)
            counted, may_fail = self._repeated(part)
            branch.add(counted, may_fail)
        return branch

    def _part(self, depth: int) -> _Branch:
        rest, place = self.pattern, self.place
        if flags := _FLAGS.match(rest, place):
            self.place = flags.end()
            return _Branch()
        width = 0 if _WIDTHLESS.match(rest, place) else 1
        if rest[place] == "(":
            inside = self._group(depth)
            return replace(inside, shortest=inside.shortest * width)
        if rest[place] == "[":
            self._class()
        elif rest[place] == "\\":
            self._escape()
        elif rest[place] in "*+?{":
            raise RegexError("it has a repeat sign with nothing before it")
        else:
            self.place += 1
        return _Branch(shortest=width)

    def _escape(self) -> None:
        if _REFERENCE.match(self.pattern, self.place):
            raise RegexError("it has a backreference")
        escape = _ESCAPE.match(self.pattern, self.place)
        if escape is None:
            raise RegexError("it has a backslash before a letter that is not known here, or at its end")
        self.place = escape.end()

    def _group(self, depth: int) -> _Branch:
        opened = _GROUP.match(self.pattern, self.place)
        if opened is None:
            raise RegexError("it has a group of a kind that is not known here")
        self.place = opened.end()
        inside = self.branches(depth + 1)
        if not self._take(")"):
            raise RegexError("it has a bracket that is not closed")
        return inside

    def _class(self) -> None:
        """A set of characters; sets may lie in sets."""
        depth, first = 0, True
        while self.place < len(self.pattern):
            character = self.pattern[self.place]
            if character == "\\":
                self._escape()
                first = False
                continue
            self.place += 1
            if character == "[":
                depth, first = depth + 1, True
                self._take("^")
            elif character == "]" and not first:
                depth -= 1
                if not depth:
                    return
            else:
                first = False
        raise RegexError("it has a set of characters that is not closed")

    def _repeated(self, part: _Branch) -> tuple[_Branch, bool]:
        """The part with the repetition after it, and whether this can fail to match."""
        may_fail = True
        while count := _COUNT.match(self.pattern, self.place):
            self.place = count.end()
            least, most = _bounds(count)
            if most is None or most > 1:
                if part.unbounded or part.variable or part.choice:
                    raise RegexError("it repeats a group that can match in several ways")
            part = _Branch(
                part.unbounded + (most is None or most - least > SHORT),
                part.variable + (least != most),
                part.choice,
                part.linear,
                part.size * max(most or 1, least, 1),
                part.shortest * least,
            )
            _check_size(part.size)
            may_fail = may_fail and least > 0
            if self._take("?"):  # lazy, but `{2}?` is none or two
                part.shortest, may_fail = 0, False
            elif count.group() in ("*", "+", "?"):
                self._take("+")  # possessive; after `{1,2}` it repeats what is repeated already
        return part, may_fail

    def _take(self, wanted: str) -> bool:
        if self.pattern.startswith(wanted, self.place):
            self.place += len(wanted)
            return True
        return False


def _bounds(count: re.Match) -> tuple[int, int | None]:
    """The least and the greatest number of times; None for no limit."""
    if count.group() in ("*", "+", "?"):
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[count.group()]
    least, comma, most = count.groups()
    if max(len(least), len(most)) > 4:
        raise RegexError("it has a count of more than four digits")
    if not least and not most:
        raise RegexError("it has a count without a number")
    low = int(least or 0)
    high = low if not comma else int(most) if most else None
    if high is not None and high < low:
        raise RegexError("it has a count whose end comes before its beginning")
    return low, high
