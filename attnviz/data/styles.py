"""The styles in which a corpus is written. A style says which characters the tokenizer treats as equal, and where a
word begins.

written     as people write: spaces mean what they say, so that a translation is spaced as in print.
tokenised   lower-cased, with a space before every word and mark ("don 't you ?"): spaces between them are ignored, so
            typed text ("Don't you?") is read like the corpus. Chinese and Japanese keep their spaces, which say
            where a word begins.
plain       as tokenised, without accents and with no marks but , ' " ? and !: any other mark becomes a space. For
            corpora that were cleaned in this way ("a must see", not "a must-see."): typed text is then read like the
            corpus.
symbols     every character is a word.
prose       as written, for texts of several lines: a line break is a piece, whatever blanks are round it, and the word
            after it begins as words after a space do. Long dashes stay.
letters     every character is a piece, as it was typed: capitals, spaces and line breaks too.

Everything here ends up in the pair's tokenizer.json; a loaded tokenizer does not know its style.
"""

import math
import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

SPECIALS = ("<pad>", "<bos>", "<eos>", "<unk>")
OF_TEXTS = ("prose", "letters")  # of several lines, which models write on; the others are of sentences
SPACE = "▁"  # how a piece writes the space before a word
# Chinese and Japanese: letters, marks and full-width forms. Their texts have no spaces, except in corpora.
UNSPACED = "\u3001-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff01-\uffef\U00020000-\U0003ffff"

_SAME = {"[’‘‛ʼ`´]": "'", "[“”„«»]": '"', "[‐‑‒–—―]": "-", "…": "...", r"[\s\p{Z}\p{C}]+": " "}
_CONTRACTED = r"'(?:t|s|re|ve|ll|d|m)(?![\p{L}\p{M}])"
# A word keeps its apostrophe: English contractions whole ("don't"), French elisions on the left ("l'" + "homme").
_WRITTEN = (
    rf"{SPACE}?[\p{{L}}\p{{M}}]+{_CONTRACTED}"
    rf"|{SPACE}?[\p{{L}}\p{{M}}]+'?|{SPACE}?\p{{N}}+|{SPACE}?[^\s\p{{L}}\p{{M}}\p{{N}}{SPACE}]"
)
_TOKENISED = (
    rf"[{UNSPACED}]+|[\p{{L}}\p{{M}}&&[^{UNSPACED}]]+(?:{_CONTRACTED}|'clock)?"
    rf"|[\p{{N}}&&[^{UNSPACED}]]+(?:[.,]\p{{N}}+)*|\S"
)
_BARE = {r"[^\p{L}\p{M}\p{N}\s,'\"?!]+": " ", r" (?=n't(?!\p{L}))": ""}  # "do n't"
_TYPED = {"''": '"', r"(?<=\p{Latin})？": "?", r"(?<=\p{Latin})！": "!", rf" (?={_CONTRACTED}|'clock)": ""}


_PROSE = {
    **{pattern: plain for pattern, plain in _SAME.items() if plain not in "- "},
    "[‐‑‒–]": "-",
    r"[\p{Z}\p{C}&&[^\n]]+": " ",
    r" ?\n[ \n]*": "\n",
    r"\A[ \n]+| +\z": "",
    r"\n(?=[^\n])": "\n ",
}
_LETTERS = {**{pattern: plain for pattern, plain in _SAME.items() if plain in "'\""}, r"\r\n?": "\n", "\t": " "}


@dataclass(frozen=True)
class Style:
    """The steps that a tokenizer takes before its model, and how the pieces of that model are learnt."""

    normalizer: normalizers.Normalizer
    pre_tokenizer: pre_tokenizers.PreTokenizer
    learn: Callable[[Tokenizer, list[str], int], None]


def _replace(table: dict[str, str]) -> list[normalizers.Normalizer]:
    return [normalizers.Replace(Regex(pattern), plain) for pattern, plain in table.items()]


def _isolated(word: str) -> pre_tokenizers.PreTokenizer:
    """Every match of `word` is a word with its mark, with or without a space before it."""
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\s+"), behavior="removed"),
            pre_tokenizers.Split(Regex(word), behavior="isolated"),
            pre_tokenizers.Metaspace(SPACE, prepend_scheme="always", split=False),
        ]
    )


# What people in Europe write names with; NFKC leaves each of them as it is.
_LATIN = "".join(c for c in map(chr, range(0x21, 0x180)) if c.isprintable() and unicodedata.normalize("NFKC", c) == c)
EUROPEAN = f"{_LATIN}€£"
ROOM = 10  # an alphabet is given to a vocabulary of at least so many times as many pieces


def byte_pairs(tokenizer: Tokenizer, texts: list[str], size: int, alphabet: str = "") -> None:
    """Byte-pair encoding (Sennrich et al. 2016), on characters.

    Every digit is a piece, so that any number can be copied. alphabet : characters that get a piece even where no text
    has them, so that a name with them is not unknown.
    """
    tokenizer.model = models.BPE(unk_token="<unk>", fuse_unk=True)
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(SPECIALS),
        show_progress=False,
        min_frequency=2,
        initial_alphabet=list(alphabet) if len(alphabet) * ROOM <= size else [],
    )
    words = tokenizer.pre_tokenizer
    digits = pre_tokenizers.Split(Regex(rf"{SPACE}?\p{{N}}"), behavior="isolated")
    # for learning only: a number is one word in a text
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, digits])
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.pre_tokenizer = words


def unigram(tokenizer: Tokenizer, texts: list[str], size: int, alphabet: str = "") -> None:
    """The pieces of `byte_pairs`, with the log of their share of the texts: a unigram model (Kudo 2018).

    It divides a word nearly as byte pairs do. From the shares, `SubwordTokenizer` finds words in text without spaces.
    """
    byte_pairs(tokenizer, texts, size, alphabet)
    counts = Counter(number for encoding in tokenizer.encode_batch(texts) for number in encoding.ids)
    pieces = [tokenizer.id_to_token(number) or "" for number in range(tokenizer.get_vocab_size())]
    shares = [math.log(max(counts[number], 0.1) / counts.total()) for number in range(len(pieces))]
    tokenizer.model = models.Unigram(list(zip(pieces, shares)), SPECIALS.index("<unk>"), False)


def whole_words(tokenizer: Tokenizer, texts: list[str], size: int) -> None:
    """Every word a piece."""
    tokenizer.model = models.WordLevel(unk_token="<unk>")
    trainer = trainers.WordLevelTrainer(vocab_size=size, special_tokens=list(SPECIALS), show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)


STYLES = {
    "written": Style(
        normalizers.Sequence([normalizers.NFKC(), *_replace(_SAME), normalizers.Strip()]),
        pre_tokenizers.Sequence(
            [
                pre_tokenizers.Metaspace(SPACE, prepend_scheme="always", split=False),
                pre_tokenizers.Split(Regex(_WRITTEN), behavior="isolated"),
            ]
        ),
        partial(byte_pairs, alphabet=EUROPEAN),
    ),
    # NFC, not NFKC: Japanese is printed with full-width marks and digits.
    "tokenised": Style(
        normalizers.Sequence(
            [normalizers.NFC(), *_replace(_SAME), normalizers.Lowercase(), *_replace(_TYPED), normalizers.Strip()]
        ),
        _isolated(_TOKENISED),
        partial(unigram, alphabet=EUROPEAN.lower()),
    ),
    "plain": Style(
        normalizers.Sequence(
            [
                normalizers.NFKD(),
                normalizers.StripAccents(),
                *_replace(_SAME),
                normalizers.Lowercase(),
                *_replace(_BARE),
                *_replace(_TYPED),
                normalizers.Strip(),
            ]
        ),
        _isolated(_TOKENISED),
        byte_pairs,
    ),
    "symbols": Style(
        normalizers.Sequence([normalizers.NFKC(), *_replace(_SAME), normalizers.Lowercase(), normalizers.Strip()]),
        _isolated("."),
        whole_words,
    ),
    "prose": Style(
        normalizers.Sequence([normalizers.NFKC(), *_replace(_PROSE)]),
        pre_tokenizers.Sequence(
            [
                pre_tokenizers.Metaspace(SPACE, prepend_scheme="always", split=False),
                pre_tokenizers.Split(Regex(_WRITTEN), behavior="isolated"),
            ]
        ),
        partial(byte_pairs, alphabet=f"{EUROPEAN}—\n"),
    ),
    "letters": Style(
        normalizers.Sequence([normalizers.NFC(), *_replace(_LETTERS)]),
        pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated"),
        whole_words,
    ),
}
