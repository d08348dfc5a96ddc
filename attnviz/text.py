"""Text to pieces and back: one joint subword vocabulary, with the place of every piece in the text as typed.

Byte-pair encoding (Sennrich et al. 2016) by the `tokenizers` library. Typographic quotes, odd spaces and composed
characters are normalised inside the tokenizer, which still knows where in the original text each piece came from.
"""

import unicodedata
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

from attnviz.trace import Token

PAD, BOS, EOS, UNK = range(4)
SPECIALS = ("<pad>", "<bos>", "<eos>", "<unk>")
SPACE = "▁"  # how BPE writes the space before a word

# A word keeps its apostrophe: English contractions whole ("don't"), French elisions on the left ("l'" + "homme").
_WORD = (
    rf"{SPACE}?[\p{{L}}\p{{M}}]+'(?:t|s|re|ve|ll|d|m)(?![\p{{L}}\p{{M}}])"
    rf"|{SPACE}?[\p{{L}}\p{{M}}]+'?|{SPACE}?\p{{N}}+|{SPACE}?[^\s\p{{L}}\p{{M}}\p{{N}}{SPACE}]"
)
_SAME = {"[’‘‛ʼ`´]": "'", "[“”„«»]": '"', "[‐‑‒–—―]": "-", "…": "...", r"[\s\p{Z}\p{C}]+": " "}


@dataclass(frozen=True)
class Tokens:
    """ids and tokens of one text, the closing <eos> included."""

    ids: tuple[int, ...]
    tokens: tuple[Token, ...]


def train_vocabulary(texts: Iterable[str], size: int) -> "Text":
    """Learn a byte-pair vocabulary of `size` pieces, specials included, from the texts of all languages together."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    same = [normalizers.Replace(Regex(pattern), plain) for pattern, plain in _SAME.items()]
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), *same, normalizers.Strip()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(SPACE, prepend_scheme="always", split=False),
         pre_tokenizers.Split(Regex(_WORD), behavior="isolated")]
    )
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=list(SPECIALS), show_progress=False, min_frequency=2)
    tokenizer.train_from_iterator(texts, trainer)
    return Text(tokenizer)


class Text:
    """The tokenizer of a language pair."""

    def __init__(self, tokenizer: Tokenizer):
        # Only pieces come out of text: a person who types "<eos>" gets five characters, not the end of the sentence.
        tokenizer.encode_special_tokens = True
        self.tokenizer = tokenizer

    @classmethod
    def load(cls, path: Path) -> "Text":
        return cls(Tokenizer.from_file(str(path)))

    def save(self, path: Path) -> None:
        self.tokenizer.save(str(path))

    def problem(self) -> str | None:
        """What is missing for a tokenizer of this project; None when it is whole."""
        if [self.tokenizer.id_to_token(number) for number in range(len(SPECIALS))] != list(SPECIALS):
            return f"its first pieces are not {', '.join(SPECIALS)}"
        if self.tokenizer.pre_tokenizer is None or self.tokenizer.normalizer is None:
            return "it has no normaliser or no pre-tokeniser"
        return None

    def __len__(self) -> int:
        return self.tokenizer.get_vocab_size()

    def ids(self, text: str) -> list[int]:
        """Piece ids of a text, <eos> last."""
        return [*self.tokenizer.encode(text).ids, EOS]

    def batch_ids(self, texts: list[str]) -> list[list[int]]:
        """Piece ids of many texts, <eos> last in each."""
        return [[*encoding.ids, EOS] for encoding in self.tokenizer.encode_batch_fast(texts)]

    def encode(self, text: str) -> Tokens:
        """Pieces of a text with character offsets into it as typed, and <eos>."""
        encoding = self.tokenizer.encode(text)
        tokens, following = [], [start for start, _ in encoding.offsets[1:]] + [len(text)]
        for number, (start, end), word, limit in zip(encoding.ids, encoding.offsets, encoding.word_ids, following):
            start, end = self._surface(text, start, end, limit, self.tokenizer.id_to_token(number))
            tokens.append(Token(text[start:end], start, end, word=word, unknown=number == UNK))
        tokens.append(Token("<eos>", len(text), len(text), special=True))
        return Tokens((*encoding.ids, EOS), tuple(tokens))

    @staticmethod
    def _surface(text: str, start: int, end: int, limit: int, piece: str) -> tuple[int, int]:
        """The characters a piece shows: nothing blank before its word, and none at all for a space that nobody typed;
        accents that were typed apart from their letter, up to the next piece at `limit`."""
        while start < end - 1 and (text[start].isspace() or not text[start].isprintable()):
            start += 1
        while start < end < limit and unicodedata.combining(text[end]):
            end += 1
        if piece == SPACE and not text[start:end].isspace():
            return start, start
        return start, end

    def decode(self, ids: Iterable[int]) -> str:
        """The text that pieces spell; specials are left out."""
        pieces = (self.tokenizer.id_to_token(i) for i in ids if i >= len(SPECIALS))
        return "".join(pieces).replace(SPACE, " ").strip()

    def spell(self, ids: list[int]) -> tuple[str, tuple[Token, ...]]:
        """The text that produced ids spell, and its tokens with offsets into that text.

        Words are those that the tokenizer finds in the text; a piece belongs to the word in which it begins.
        """
        text, tokens = "", []
        for number in ids:
            if number < len(SPECIALS):
                tokens.append(Token(SPECIALS[number], len(text), len(text), special=True))
                continue
            piece = self.tokenizer.id_to_token(number).replace(SPACE, " ")
            piece = piece if text else piece.lstrip(" ")
            start = len(text) + (len(piece) - len(piece.lstrip(" ")) if piece.strip() else 0)
            text += piece
            tokens.append(Token(text[start:], start, len(text)))
        ends = [end for _, (_, end) in self.tokenizer.pre_tokenizer.pre_tokenize_str(text)]
        return text, tuple(t if t.special else replace(t, word=bisect_right(ends, t.start)) for t in tokens)

    def piece(self, number: int) -> str:
        """A piece as a reader sees it."""
        return self.tokenizer.id_to_token(number).replace(SPACE, " ").strip() or "␣"
