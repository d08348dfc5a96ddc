"""Data folder to batches: parallel text read by path, plain or gzipped, in length-sorted batches."""

import gzip
import hashlib
import random
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from attnviz.text import PAD, Text

Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class Corpus:
    """Parallel sentences of a language pair and the files (name -> SHA-256) they came from."""

    train: Pairs
    val: Pairs
    tests: dict[str, Pairs]
    files: dict[str, str]


def read_lines(path: Path) -> list[str]:
    """Lines of a UTF-8 text, plain or gzipped (by its first bytes, not its name)."""
    data = Path(path).read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    return data.decode("utf-8").removesuffix("\n").split("\n")


def find(folder: Path, name: str) -> Path:
    """The file `name` or `name`.gz in a folder."""
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise FileNotFoundError(f"no {name} or {name}.gz in {folder}; point --data at the folder that holds the corpora")


def read_parallel(source: Path, target: Path) -> Pairs:
    """Line-aligned files as pairs; pairs with an empty side are left out."""
    sources, targets = read_lines(source), read_lines(target)
    if len(sources) != len(targets):
        raise ValueError(f"{source} has {len(sources)} lines and {target} has {len(targets)}; they must be aligned")
    pairs = [(a.strip(), b.strip()) for a, b in zip(sources, targets)]
    return [pair for pair in pairs if all(pair)]


def read_tsv(path: Path) -> Pairs:
    """Pairs from the first two columns of a tab-separated file."""
    pairs = [tuple(field.strip() for field in line.split("\t")[:2]) for line in read_lines(path)]
    return [pair for pair in pairs if len(pair) == 2 and all(pair)]


def load(pair: str, data: Path) -> Corpus:
    """The corpora of a pair below the folder `data`: Multi30K, and Tatoeba for en-fr.

    A pair is `source-target`, such as en-fr. Folders: multi30k/{train,val,test_*}.LANG[.gz], tatoeba_enfr/pairs.tsv[.gz].
    """
    source, target = pair.split("-")
    folder, files = Path(data) / "multi30k", {}

    def split(name: str) -> Pairs:
        paths = [find(folder, f"{name}.{language}") for language in (source, target)]
        files.update({f"multi30k/{path.name}": sha256(path) for path in paths})
        return read_parallel(*paths)

    train, val = split("train"), split("val")
    tests = {name: split(name) for name in ("test_2016_flickr", "test_2017_flickr")}
    everyday = Path(data) / f"tatoeba_{source}{target}"
    if everyday.is_dir():
        path = find(everyday, "pairs.tsv")
        files[f"{everyday.name}/{path.name}"] = sha256(path)
        train = train + read_tsv(path)
    return Corpus(train, val, tests, files)


def sha256(path: Path) -> str:
    """Hex digest of a file's bytes."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def encode(pairs: Pairs, text: Text) -> list[tuple[list[int], list[int]]]:
    """Pairs as piece ids, <eos> last on both sides."""
    return list(zip(text.batch_ids([a for a, _ in pairs]), text.batch_ids([b for _, b in pairs])))


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
