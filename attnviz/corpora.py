"""Data folder to batches: parallel text read by path, plain or gzipped, in length-sorted batches.

PAIRS says which corpora a pair is trained and measured on.
"""

import gzip
import hashlib
import random
import re
import string
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from attnviz.division import Divider, without_doubles
from attnviz.mechanisms import LABELS
from attnviz.styles import UNSPACED
from attnviz.text import PAD, Text

Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class Corpus:
    """Parallel sentences of a pair, or sentences with their label, and the files (name -> SHA-256) they came from.

    tests : name -> pairs. metric : what the best epoch is chosen by, one of metrics.METRICS. style : how the text is
    written, one of styles.STYLES.
    """

    train: Pairs
    val: Pairs
    tests: dict[str, Pairs]
    files: dict[str, str]
    metric: str = "bleu_lc"
    style: str = "written"
    labelled: bool = False  # the second of a pair is no text but a label
    parts: tuple[str, ...] = ()  # of which part of the data each pair of val is, where there are several

    def texts(self) -> list[str]:
        """All texts of train, for a vocabulary."""
        return [side for pair in self.train for side in (pair[:1] if self.labelled else pair)]


def read_lines(path: Path) -> list[str]:
    """Lines of a UTF-8 text, with or without a byte-order mark, plain or gzipped (by its first bytes, not its name).

    ValueError when it is neither.
    """
    try:
        text = unpack(Path(path).read_bytes(), path).decode("utf-8-sig")
        end = "\n" if "\n" in text else "\r"  # the line ends of old Macs
        return text.removesuffix(end).split(end) if text else []
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be UTF-8 text; got byte {error.object[error.start]:#04x} at {error.start}") from None
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from None


def unpack(content: bytes, name: str | Path) -> bytes:
    """The content of a gzip file, and any other content as it is. ValueError, which says `name`, when it is damaged."""
    try:
        return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{name} is a damaged gzip file: {error}") from None


def find(folder: Path, name: str) -> Path | None:
    """The file `name` or `name`.gz in a folder, None when there is neither."""
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def read_parallel(source: Path, target: Path) -> Pairs:
    """Line-aligned files as pairs; pairs with an empty side are left out."""
    return whole(parallel_rows(source, target))


def parallel_rows(source: Path, target: Path) -> Pairs:
    """The lines of two files beside each other. ValueError when one has more."""
    sources, targets = read_lines(source), read_lines(target)
    if len(sources) != len(targets):
        raise ValueError(f"{source} has {len(sources)} lines and {target} has {len(targets)}; they must be aligned")
    return [(a.strip(), b.strip()) for a, b in zip(sources, targets)]


def read_tsv(path: Path) -> Pairs:
    """Pairs from the first two columns of a tab-separated file; lines without both are left out."""
    return whole(tsv_rows(path))


def tsv_rows(path: Path) -> Pairs:
    """The first two columns of every line, "" where there is none."""
    rows = ([field.strip() for field in line.split("\t")] for line in read_lines(path))
    return [(row[0], row[1] if len(row) > 1 else "") for row in rows]


def whole(rows: Pairs) -> Pairs:
    """Those of which both sides hold something."""
    return [row for row in rows if all(row)]


def read_labelled(path: Path) -> Pairs:
    """Sentences with one of LABELS, from lines of sentence<TAB>number of the label. Empty lines are left out.

    ValueError, which says file and line, for a line without a label or with another one.
    """
    pairs = []
    for number, line in enumerate(read_lines(path), start=1):
        sentence, _, label = (field.strip() for field in line.partition("\t"))
        if not (sentence or label):
            continue
        if not sentence or label not in map(str, range(len(LABELS))):
            wanted = " or ".join(f"{i} ({name})" for i, name in enumerate(LABELS))
            raise ValueError(f"{path} line {number} must be a sentence, a tab, and its label, {wanted}; got {line!r}")
        pairs.append((sentence, LABELS[int(label)]))
    return pairs


class Folder:
    """A folder of the data; notes the hash of every file that is read."""

    def __init__(self, data: Path, name: str):
        self.path, self.files = Path(data) / name, {}

    def _noted(self, name: str) -> Path:
        path = find(self.path, name)
        if path is None:
            raise FileNotFoundError(f"no {name} or {name}.gz in {self.path}; point --data at the folder that holds the corpora, "
                                    "or fetch them: python -m attnviz download")  # fmt: skip
        self.files[f"{self.path.name}/{path.name}"] = sha256(path)
        return path

    def split(self, name: str, source: str, target: str) -> Pairs:
        return read_parallel(self._noted(f"{name}.{source}"), self._noted(f"{name}.{target}"))

    def table(self, name: str) -> Pairs:
        return read_tsv(self._noted(name))

    def labelled(self, name: str) -> Pairs:
        return read_labelled(self._noted(name))


def captions(source: str, target: str, data: Path) -> Corpus:
    """Multi30K, and beside it everyday sentences of Tatoeba where the data has them for the pair.

    multi30k/{train,val,test_2016_flickr,test_2017_flickr}.LANG[.gz], everyday_SOURCETARGET/{train,val,test}.tsv[.gz] or, without
    that, tatoeba_SOURCETARGET/pairs.tsv[.gz]. Beside everyday sentences, of which there are several times as many, a pass has
    every caption twice.
    """
    folder, everyday = Folder(data, "multi30k"), Folder(data, f"everyday_{source}{target}")
    train, val = (folder.split(name, source, target) for name in ("train", "val"))
    tests = {name: folder.split(name, source, target) for name in ("test_2016_flickr", "test_2017_flickr")}
    if everyday.path.is_dir():
        more, unseen = everyday.table("train.tsv"), everyday.table("val.tsv")
        tests["everyday"] = everyday.table("test.tsv")
        parts = ("captions",) * len(val) + ("everyday",) * len(unseen)
        return Corpus(2 * train + more, val + unseen, tests, folder.files | everyday.files, parts=parts)
    few = Folder(data, f"tatoeba_{source}{target}")
    more = few.table("pairs.tsv") if few.path.is_dir() else []
    return Corpus(train + more, val, tests, folder.files | few.files)


def tanaka(data: Path) -> Corpus:
    """English to Japanese of the Tanaka corpus, both sides tokenised, English lower-cased; and everyday sentences of Tatoeba
    where the data has them, whose Japanese is divided into words as that of the corpus is (division.py).

    tanaka_enja/{train,dev,test}.{en,ja}[.gz], everyday_enja/{train,val,test}.tsv[.gz]; scored on the morphemes as given, or,
    with the everyday sentences, on characters.
    """
    folder, everyday = Folder(data, "tanaka_enja"), Folder(data, "everyday_enja")
    train, dev, test = (folder.split(name, "en", "ja") for name in ("train", "dev", "test"))
    if not everyday.path.is_dir():
        return Corpus(train, dev, {"test": test}, folder.files, "bleu_morphemes", "tokenised")
    divider = Divider([japanese for _, japanese in train])
    more, val, unseen = (divider.pairs(everyday.table(f"{name}.tsv")) for name in ("train", "val", "test"))
    parts = ("tanaka",) * len(dev) + ("everyday",) * len(val)
    return Corpus(without_doubles(train + more), dev + val, {"test": test, "everyday": unseen}, folder.files | everyday.files,
                  "bleu_char", "tokenised", parts=parts)  # fmt: skip


def reviews(data: Path) -> Corpus:
    """Sentences of film reviews, positive or negative: the Stanford Sentiment Treebank with two classes, whole sentences.

    sst2/{train,dev}.tsv[.gz]. It comes without a test set: what dev chooses, dev also measures.
    """
    folder = Folder(data, "sst2")
    train, dev = (folder.labelled(f"{name}.tsv") for name in ("train", "dev"))
    return Corpus(train, dev, {}, folder.files, "accuracy", "plain", True)


def reverse(data: Path | None = None, count: int = 20_000, seed: int = 1) -> Corpus:
    """Letters in reverse order, 1 to 20 of them, generated: `count` sequences, no two alike, so the shortest are few.

    A fortieth is val, a twentieth test, the rest train.
    """
    chance, found = random.Random(f"reverse/{seed}"), {}
    while len(found) < count:
        letters = chance.choices(string.ascii_lowercase, k=chance.randint(1, 20))
        found[" ".join(letters)] = " ".join(reversed(letters))
    pairs = list(found.items())
    chance.shuffle(pairs)
    digest = hashlib.sha256("\n".join(source for source, _ in pairs).encode()).hexdigest()
    held = count // 40
    return Corpus(pairs[3 * held :], pairs[:held], {"test": pairs[held : 3 * held]}, {f"generated, seed {seed}": digest},
                  "exact_match", "symbols")  # fmt: skip


PAIRS: dict[str, Callable[[Path], Corpus]] = {
    "en-fr": partial(captions, "en", "fr"),
    "en-de": partial(captions, "en", "de"),
    "en-ja": tanaka,
    "reverse": reverse,
    "sst2": reviews,
}
GENERATED = {"reverse"}  # need no data folder
LABELLED = {"sst2"}  # sentences with a label rather than a translation


def own(pairs: Pairs, files: dict[str, str], val_size: int | None = None, style: str = "written") -> Corpus:
    """A person's own sentences: `val_size` of them are val (unless given, a twentieth, at most 1,000; of few a fifth, at most 20),
    the same ones every time.

    No source sentence of val stays in train. ValueError when one of the two would be empty.
    """
    size = max(1, min(20, len(pairs) // 5), min(1000, len(pairs) // 20)) if val_size is None else val_size
    if not 1 <= size < len(pairs):
        raise ValueError(f"of {len(pairs)} pairs of sentences at least one must be for validation and one for training; "
                         f"got {size} for validation")  # fmt: skip
    val = [pairs[i] for i in sorted(random.Random(0).sample(range(len(pairs)), size))]
    held = {source for source, _ in val}
    train = [pair for pair in pairs if pair[0] not in held]
    if not train:
        raise ValueError("every source sentence is among those for validation; give more sentences that differ")
    return Corpus(train, val, {}, files, _metric([b for _, b in val], style), style)


def own_labelled(pairs: Pairs, files: dict[str, str], val_size: int | None = None, style: str = "plain") -> Corpus:
    """`own`, of sentences with labels."""
    return replace(own(pairs, files, val_size, style), metric="accuracy", labelled=True)


def _metric(targets: list[str], style: str) -> str:
    """What suits the targets: BLEU on words where spaces show them, else on characters."""
    if style != "written":
        return {"tokenised": "bleu_words", "plain": "bleu_words", "symbols": "exact_match"}[style]
    text = "".join(targets)
    return "bleu_char" if len(re.findall(f"[{UNSPACED}]", text)) > len(text) / 2 else "bleu_lc"


def load(pair: str, data: Path | None) -> Corpus:
    """The corpora of a pair below the folder `data`; None will do for a pair that is generated.

    Raises ValueError for a pair that has none, FileNotFoundError where the folder lacks a file.
    """
    if pair not in PAIRS:
        raise ValueError(f"there are no corpora for {pair}; choose one of {', '.join(PAIRS)}, or give files of your own")
    return PAIRS[pair](data)


def sha256(path: Path) -> str:
    """Hex digest of a file's bytes."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def encode(pairs: Pairs, text: Text) -> list[tuple[list[int], list[int]]]:
    """Pairs as piece ids, <eos> last on both sides."""
    return list(zip(text.batch_ids([a for a, _ in pairs]), text.batch_ids([b for _, b in pairs])))


def pieces(pairs: Pairs, text: Text, labelled: bool) -> list[tuple[list[int], ...]]:
    """The texts of each pair as piece ids, <eos> last: both sides, or that beside the label."""
    return list(zip(*(text.batch_ids([pair[side] for pair in pairs]) for side in range(1 if labelled else 2))))


def batches(lengths: list[int], tokens: int, generator: random.Random) -> list[list[int]]:
    """Indices in batches of about `tokens` padded target tokens, like lengths together, in random order."""
    order = sorted(range(len(lengths)), key=lambda i: (lengths[i], generator.random()))
    result, batch = [], []
    for i in order:
        if batch and (len(batch) + 1) * lengths[i] > tokens:
            result.append(batch)
            batch = []
        batch.append(i)
    result.append(batch)
    generator.shuffle(result)
    return result


def pad(rows: list[list[int]]) -> Tensor:
    """Ragged ids as one matrix (B, longest), padded at the end."""
    width = max(map(len, rows))
    return torch.tensor([row + [PAD] * (width - len(row)) for row in rows])
