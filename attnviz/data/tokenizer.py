"""Text to pieces and back: one joint subword vocabulary, with the character offsets of every piece in the typed text.

Typographic quotes, unusual spaces and composed characters are normalised inside the tokenizer (styles.py). Before it
(`typed`), characters that print nothing, such as soft hyphens and zero-width joiners, are left out; they do not divide
a word. A fraction is read as its numbers: “½” as “1/2”, and “1½” as “1 1/2”. A ligature is read as its letters. A
symbol that is typed as several code points, such as an emoji with its skin colour or a digit with its key, is read as
the first of them. The offsets are still those of the original text.

Chinese and Japanese: a mark shows that a piece begins a word, as in other scripts. Readers see the text without spaces;
`SubwordTokenizer.spaced` writes them, as corpora for scoring do. Text typed without spaces is divided into its most
probable words, if the vocabulary has the probabilities of its pieces (`styles.unigram`).
"""

import json
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, groupby
from pathlib import Path
from typing import NamedTuple

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from attnviz.data import tokenizer_rules
from attnviz.data.styles import SPACE, SPECIALS, STYLES, UNSPACED
from attnviz.data.tokenizer_rules import TokenizerError
from attnviz.trace import Token, visible
from attnviz.trace.visible import IGNORED

PAD, BOS, EOS, UNK = range(4)
_RUN = re.compile(rf"[{UNSPACED}]+")
_DIVIDED = re.compile(rf"(?![。！？])[{UNSPACED}]\s+[{UNSPACED}]")  # a space after a full stop does not divide a text
_UNPRINTED = re.compile(rf"(?<=[{UNSPACED}]) | (?=[{UNSPACED}])")  # spaces that are not shown
_FRACTIONS, _SLASH = "\u00bc-\u00be\u2150-\u215f\u2189", "\u2044"  # the slash stands between their numbers
_LETTERS = re.compile("[\ufb00-\ufb06\u2116\u2122]")  # several Latin letters in one character
_SYMBOL_PARTS = "\u20d0-\u20ff\U0001f1e6-\U0001f1ff\U0001f3fb-\U0001f3ff"  # flags, colours of skin, keys
_FRAME = re.compile("[\u20d0-\u20ff]")  # drawn round the character before it, as a key is
_ODD = re.compile(f"[{IGNORED}{_FRACTIONS}{_SLASH}{_SYMBOL_PARTS}]|{_LETTERS.pattern}")
_UNKNOWN, _MARKS = "\ufffd", "\u0300"  # _MARKS : the first character that is drawn on the one before it
_IGNORED = re.compile(f"[{IGNORED}]")
_CHARACTERS = pre_tokenizers.Split(Regex(r"\X"), behavior="isolated")  # what a reader takes for one character


class Typed(NamedTuple):
    """text : the normalised text. starts, ends : the offsets of each of its characters in the text as typed.

    starts has one more entry, the end of the typed text.
    """

    text: str
    starts: Sequence[int]
    ends: Sequence[int]


def typed(text: str) -> Typed:
    """The text as typed -> the text that the tokenizer reads, with offsets."""
    if not _ODD.search(text):
        return Typed(text, range(len(text) + 1), range(1, len(text) + 1))
    read, starts, ends = "", [], []
    for _, (start, end) in _CHARACTERS.pre_tokenize_str(text):
        for place, character, after in _read(text, start, end, read[-1:]):
            read += character
            starts += [place] * len(character)
            ends += [after] * len(character)
    return Typed(read, [*starts, len(text)], ends)


def _read(text: str, start: int, end: int, before: str) -> list[tuple[int, str, int]]:
    """One character of a reader, as start, what is read, and end. before : the last character that was read."""
    seen = [place for place in range(start, end) if not _IGNORED.match(text[place])]
    if len(seen) > 1 and (unicodedata.category(text[seen[0]]).startswith("S") or _FRAME.match(text[seen[-1]])):
        seen = seen[:1]
    if len(seen) == 1:
        return [(start, _plain(text[seen[0]], before), end)]
    return [(place, _plain(text[place], before), place + 1) for place in seen]


def _plain(character: str, before: str) -> str:
    """The numbers of a fraction, apart from a number before them; the letters that one character stands for."""
    if _LETTERS.match(character):
        return unicodedata.normalize("NFKC", character)
    parts = unicodedata.normalize("NFKC", character)
    if _SLASH not in parts:
        return character
    apart = character != _SLASH and before.isdecimal()
    return " " * apart + parts.replace(_SLASH, "/")


@dataclass(frozen=True)
class Tokens:
    """ids and tokens of one text, the closing <eos> included. read_as : the text that was read, if it differs from the
    typed one; its characters have the same offsets. segments : which of two texts each token is of, 0 or 1, as BERT
    reads pairs; () of one text."""

    ids: tuple[int, ...]
    tokens: tuple[Token, ...]
    read_as: str = ""
    segments: tuple[int, ...] = ()


def train_vocabulary(texts: Iterable[str], size: int, style: str = "written") -> "SubwordTokenizer":
    """Learn a vocabulary of at most `size` pieces, specials included, from the texts of all languages together.

    style : how the texts are written, see styles.py. ValueError for an unknown style.
    """
    if style not in STYLES:
        raise ValueError(f"style must be one of {', '.join(STYLES)}; got {style!r:.80}")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer, tokenizer.pre_tokenizer = STYLES[style].normalizer, STYLES[style].pre_tokenizer
    STYLES[style].learn(tokenizer, list(texts), size)
    return SubwordTokenizer(tokenizer)


class SubwordTokenizer:
    """The tokenizer of a language pair, both sides.

    backend : of the tokenizers library. marked : write a space before every word, in every script (see `spaced`).
    """

    def __init__(self, backend: Tokenizer, marked: bool = False):
        # Only pieces come out of text: a person who types "<eos>" gets five characters, not the end of the sentence.
        backend.encode_special_tokens = True
        self.backend, self.marked = backend, marked
        self._shown: dict[int, str] = {}  # pieces asked for so far, see `piece`
        self._choices: dict[int, str] = {}  # and see `choice`

    @classmethod
    def load(cls, path: Path) -> "SubwordTokenizer":
        """Raises TokenizerError for a file that is damaged or not safe, OSError."""
        content, linear = tokenizer_rules.read(path)
        if not linear:
            raise TokenizerError("its regular expressions are not those of a vocabulary that is trained here")
        unused = {"post_processor": None, "decoder": None}  # of a vocabulary that is trained here; its pieces spell
        with tokenizer_rules.contained():
            return cls(Tokenizer.from_str(json.dumps(content | unused)))

    def save(self, path: Path) -> None:
        self.backend.save(str(path), pretty=False)

    def problem(self) -> str | None:
        """Why this is not a tokenizer of this project; None if it is one."""
        if [self.backend.id_to_token(number) for number in range(len(SPECIALS))] != list(SPECIALS):
            return f"its first pieces are not {', '.join(SPECIALS)}"
        if set(self.backend.get_vocab().values()) != set(range(len(self))):
            return f"its {len(self):,} pieces are not numbered from 0 to {len(self) - 1:,}"
        if self.backend.pre_tokenizer is None or self.backend.normalizer is None:
            return "it has no normaliser or no pre-tokeniser"
        return None

    def spaced(self) -> "SubwordTokenizer":
        """The same tokenizer, which writes spaces between words in every script: for scores on given words."""
        return SubwordTokenizer(self.backend, marked=True)

    def loosened(self, share: float) -> "SubwordTokenizer":
        """A copy that omits this share of the merges, at random: BPE-dropout, Provilkov et al. 2020.

        Its random numbers are the library's own and take no seed. ValueError when the vocabulary was not made by
        merging.
        """
        tokenizer = Tokenizer.from_str(self.backend.to_str())
        if not isinstance(tokenizer.model, models.BPE):
            raise ValueError(
                "piece_dropout needs a vocabulary of byte-pair merges, and this one has none; leave it at 0"
            )
        tokenizer.model.dropout = share
        return SubwordTokenizer(tokenizer, self.marked)

    def __len__(self) -> int:
        return self.backend.get_vocab_size()

    def ids(self, text: str) -> list[int]:
        """Piece ids of a text, <eos> last."""
        return [*self.backend.encode(self.divide(text)).ids, EOS]

    def batch_ids(self, texts: list[str]) -> list[list[int]]:
        """Piece ids of many texts, <eos> last in each."""
        divided = [self.divide(text) for text in texts]
        return [[*encoding.ids, EOS] for encoding in self.backend.encode_batch_fast(divided)]

    def encode(self, text: str) -> Tokens:
        """Pieces of a text with character offsets into it as typed, and <eos>."""
        divided, starts, ends = self._read(text)
        encoding = self.backend.encode(divided)
        ids, offsets, blank = encoding.ids, encoding.offsets, self.backend.token_to_id(SPACE)
        tokens, following = [], [start for start, _ in offsets[1:]] + [len(divided)]
        for number, span, word, limit in zip(ids, offsets, encoding.word_ids, following):
            start, end = self._surface(divided, *span, limit, number == blank)
            start, end = starts[start], ends[end - 1] if end > start else starts[start]
            if number == self.line_break:  # the first of the blanks that became it
                start = text.index("\n", tokens[-1].end if tokens else 0)
                end = start + 1
            tokens.append(Token(text[start:end], start, end, word=word, unknown=number == UNK))
        tokens = [*_whole_characters(text, tokens), Token("<eos>", len(text), len(text), special=True)]
        return Tokens((*ids, EOS), tuple(tokens))

    @staticmethod
    def _surface(text: str, start: int, end: int, limit: int, blank: bool) -> tuple[int, int]:
        """The span of characters that a piece shows: without the space before its word, empty for a space that was not
        typed, and including accents typed separately from their letter, up to the next piece at `limit`. blank : the
        piece is a space."""
        while start < end - 1 and (text[start].isspace() or not text[start].isprintable()):
            start += 1
        while start < end < limit and unicodedata.combining(text[end]):
            end += 1
        if blank and not text[start:end].isspace() and text[start:end] != SPACE:  # which people may type
            return start, start
        return start, end

    def _spelling(self, number: int) -> str:
        """A piece as the vocabulary has it; "" for a number that it does not have."""
        return self.backend.id_to_token(number) or ""

    def decode(self, ids: Iterable[int]) -> str:
        """The text that pieces spell; specials are left out."""
        pieces = (self._spelling(i) for i in ids if i >= len(SPECIALS))
        text = "".join(pieces).replace(SPACE, " ").strip()
        return text if self.marked else _UNPRINTED.sub("", text)

    @cached_property
    def line_break(self) -> int | None:
        """The piece of a line break; None where a line break is a space."""
        return self.backend.token_to_id("\n")

    @cached_property
    def within_words(self) -> tuple[int, ...]:
        """The pieces that stand within a word, in a vocabulary that marks where a word begins; () in another."""
        pieces = [self._spelling(number) for number in range(len(SPECIALS), len(self))]
        unmarked = [number for number, piece in enumerate(pieces, len(SPECIALS)) if not piece.startswith(SPACE)]
        return tuple(unmarked) if len(unmarked) < len(pieces) else ()

    def spelled(self, ids: Iterable[int]) -> str:
        """The text that pieces spell, for texts of several lines: without the space before the first word of a line.

        An unknown piece is one character; other specials are left out.
        """
        pieces = (_UNKNOWN if i == UNK else self._spelling(i) for i in ids if i >= UNK)
        text = "".join(pieces)
        return re.sub(rf"(\A|\n){SPACE}", r"\1", text).replace(SPACE, " ")

    def spell(self, ids: list[int]) -> tuple[str, tuple[Token, ...]]:
        """The text that produced ids spell, and its tokens with offsets into that text.

        Words are those that the tokenizer finds in the text; a piece belongs to the word in which it begins.
        """
        text, in_words = self._spell_after("", ids)
        return (text, tuple(in_words)) if self.marked else _print(text, in_words)

    def spell_on(self, before: str, last: Token, ids: Sequence[int]) -> tuple[str, tuple[Token, ...]]:
        """The text `before` with what produced ids add to it, and their tokens, with offsets into that text.

        last : the last token of `before`. A piece that continues a word belongs to that word.
        """
        text, tokens = self._spell_after(before, ids)
        (end,) = self._words(text, [max(last.end - 1, 0)])
        shift = (last.word or 0) - end  # marks typed in another way may be other words
        return text, tuple(t if t.special else replace(t, word=(t.word or 0) + shift) for t in tokens)

    def _spell_after(self, text: str, ids: Sequence[int]) -> tuple[str, list[Token]]:
        """The text with what the ids add to it, and their tokens. A line has no space before its first word."""
        places: list[tuple[int, int, str]] = []  # of each token, and its name if it is special
        for number in ids:
            if number < len(SPECIALS):
                places.append((len(text), len(text), SPECIALS[number]))
                continue
            piece = self._spelling(number)
            piece = piece.replace(SPACE, " ") if text and text[-1] != "\n" else piece.lstrip(SPACE)
            start = len(text) + (len(piece) - len(piece.lstrip(" ")) if piece.strip() else 0)
            text += piece
            places.append((start, len(text), ""))
        words = iter(self._words(text, [start for start, _, name in places if not name]))
        return text, [
            Token(name, start, end, special=True) if name else Token(text[start:end], start, end, word=next(words))
            for start, end, name in places
        ]

    def _words(self, text: str, places: Sequence[int]) -> list[int]:
        """For each place, the number of the word that contains it."""
        ends = [end for _, (_, end) in self.backend.pre_tokenizer.pre_tokenize_str(text)]
        return [bisect_right(ends, place) for place in places]

    def divide(self, text: str) -> str:
        """The text with a space before every Japanese or Chinese word, if the vocabulary can find words."""
        return self._read(text).text

    def _read(self, text: str) -> Typed:
        """The text that the backend reads, with a space before every word.

        No spaces are added if the text already has spaces between words, or if the vocabulary has no probabilities.
        """
        read = typed(text)
        if isinstance(self.backend.model, models.WordLevel) and not text.isascii():
            return self._whole_unknown(read, text)
        if self._divider is None or _DIVIDED.search(read.text):
            return read
        divider, initial = self._divider
        cuts: set[int] = set()
        for run in _RUN.finditer(read.text):
            encoding = divider.encode(run.group())
            words = [start for piece, (start, _) in zip(encoding.tokens, encoding.offsets) if piece in initial]
            cuts |= {run.start() + start for start in words if start}  # where the script changes a word begins anyway
        divided, starts, ends = "", [], []
        for place, (character, start, end) in enumerate(zip(read.text, read.starts, read.ends)):
            added = f" {character}" if place in cuts else character
            divided += added
            starts += [start] * len(added)
            ends += [end] * len(added)
        return Typed(divided, [*starts, len(text)], ends)

    def _whole_unknown(self, read: Typed, text: str) -> Typed:
        """The same for a vocabulary of characters, with one unknown character for each typed one that has an unknown
        part, such as “½” (1/2)."""
        result, starts, ends = "", [], []
        cuts = [start for _, (start, _) in _CHARACTERS.pre_tokenize_str(text)]
        for _, group in groupby(zip(read.starts, read.ends, read.text), lambda place: bisect_right(cuts, place[0])):
            first, last, characters = zip(*group)
            if UNK in self.backend.encode("".join(characters)).ids:
                first, last, characters = first[:1], last[-1:], (_UNKNOWN,)
            result += "".join(characters)
            starts += first
            ends += last
        return Typed(result, [*starts, read.starts[-1]], ends)

    @cached_property
    def _divider(self) -> tuple[Tokenizer, set[str]] | None:
        """A tokenizer whose pieces have no marks, and the pieces that mostly begin a word.

        None if the vocabulary has no probabilities.
        """
        if not isinstance(self.backend.model, models.Unigram):
            return None
        shares, initial = {}, set()
        for piece, share in json.loads(self.backend.to_str())["model"]["vocab"]:
            plain = piece.removeprefix(SPACE)
            if _RUN.fullmatch(plain) and share > shares.get(plain, -float("inf")):
                shares[plain] = share
                (initial.add if piece != plain else initial.discard)(plain)
        if not shares:
            return None
        divider = Tokenizer(models.Unigram([("<unk>", min(shares.values())), *shares.items()], 0, False))
        divider.normalizer = normalizers.NFC()
        return divider, initial

    def piece(self, number: int) -> str:
        """A piece as a reader sees it."""
        if number not in self._shown:
            text = self._spelling(number).replace(SPACE, " ")
            self._shown[number] = text.strip() or visible.visible(text)
        return self._shown[number]

    def choice(self, number: int) -> str:
        """`piece` in a list of alternatives: with the mark `·` if it continues a word, as in tokens
        (attnviz/trace/visible.py). Without the mark in a vocabulary of characters, where that depends on the text."""
        if number not in self._choices:
            piece = self.piece(number)
            goes_on = piece[:1].isalpha() and number >= len(SPECIALS) and not self._spelling(number).startswith(SPACE)
            self._choices[number] = f"·{piece}" if goes_on and self._words_begin else piece
        return self._choices[number]

    @cached_property
    def _words_begin(self) -> bool:
        """Are the mark of a word's beginning and its first letters one piece?"""
        return any(len(piece) > 1 and piece.startswith(SPACE) for piece in map(self._spelling, range(len(self))))


def _whole_characters(text: str, tokens: list[Token]) -> list[Token]:
    """The tokens, with those that share a visible character put into one word, so that an accent is in the word of its
    letter, and a keycap in that of its digit.

    Words are numbered from 0 without gaps.
    """
    after = list(range(len(text) + 1))  # place -> where the character ends that has something before it
    is_latin = max(text, default="") < _MARKS  # then nothing joins the character before it
    for character, (start, _) in [] if is_latin else _CHARACTERS.pre_tokenize_str(text):
        shown = len(character.rstrip())  # a mark may stand on a blank before it, never on one after it
        after[start + 1 : start + shown] = [start + shown] * (shown - 1)
    words, end, before, joined = -1, 0, None, []
    for token in tokens:
        words += token.word != before and not (token.start < end and joined)
        before, end = token.word, max(end, after[token.end])
        joined.append(token if token.word == words else replace(token, word=words))
    return joined


def _print(text: str, tokens: list[Token]) -> tuple[str, tuple[Token, ...]]:
    """The text and its tokens without spaces between Japanese or Chinese words."""
    hidden = {match.start() for match in _UNPRINTED.finditer(text)}
    if not hidden:
        return text, tuple(tokens)
    shown = "".join(character for place, character in enumerate(text) if place not in hidden)
    places = list(accumulate((place not in hidden for place in range(len(text))), initial=0))
    moved = [(token, places[token.start], places[token.end]) for token in tokens]
    return shown, tuple(replace(t, text=t.text if t.special else shown[a:b], start=a, end=b) for t, a, b in moved)
