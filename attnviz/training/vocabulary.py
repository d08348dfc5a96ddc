"""The tokenizer that all mechanisms of a pair share: an existing one, the one of an initial checkpoint, or a new one.

It is written after all checks pass, so that a rejected run leaves no file.
"""

import json
from pathlib import Path

from tokenizers import Tokenizer, models

from attnviz.data.batching import pieces
from attnviz.data.corpora import Corpus
from attnviz.data.styles import STYLES
from attnviz.data.tokenizer import UNK, SubwordTokenizer, train_vocabulary
from attnviz.models import checkpoints
from attnviz.models.names import TOKENIZER
from attnviz.storage import atomic

SAMPLE = 1000  # training pairs in which `mismatches` looks for unknown characters
UNKNOWN_SHARE = 0.05  # a warning is given above this share of them


def choose(path: Path, corpus: Corpus, size: int, start: Path | None = None) -> SubwordTokenizer:
    """The tokenizer for a run; `path`, ROOT/PAIR/tokenizer.json, is where it belongs. A new one has at most `size`
    pieces.

    start : folder of the checkpoint with the initial weights, whose tokenizer is used. ValueError when `path` holds a
    different one; CheckpointError.
    """
    if start:
        if path.is_file() and path.read_bytes() != path_for(start).read_bytes():
            raise ValueError(f"{path} differs from the tokenizer of {start}; choose another --out")
        path = path_for(start)
    if path.is_file() or start:
        return checkpoints.load_tokenizer(path.parent.name, path.parent.parent)
    learnt = train_vocabulary(corpus.texts(), size, corpus.style)
    return SubwordTokenizer(Tokenizer.from_str(learnt.backend.to_str()))  # the same object as one read from the file


def save(path: Path, tokenizer: SubwordTokenizer, start: Path | None = None) -> None:
    """Write the tokenizer to `path` unless it is there. ValueError when another run has written a different one
    meanwhile."""
    if path.is_file():
        if SubwordTokenizer.load(path).backend.to_str() != tokenizer.backend.to_str():
            raise ValueError(f"another run started at the same time and wrote {path}; choose another --out")
    elif start:
        atomic.replace(path, lambda temporary: temporary.write_bytes(path_for(start).read_bytes()))
    else:
        atomic.replace(path, tokenizer.save)


def path_for(checkpoint: Path) -> Path:
    """The tokenizer file of the checkpoint in a folder ROOT/PAIR/MECHANISM."""
    return Path(checkpoint).resolve().parent / TOKENIZER


def mismatches(tokenizer: SubwordTokenizer, corpus: Corpus) -> list[str]:
    """In words, why an existing tokenizer may not suit a corpus; empty when it suits."""
    reasons, style = [], style_of(tokenizer)
    if style not in (None, corpus.style):
        reasons.append(f"it reads {style} text, and these sentences are {corpus.style} (--style)")
    sample = corpus.train[:SAMPLE]
    unknown = sum(any(UNK in ids for ids in row) for row in pieces(sample, tokenizer, corpus.labelled))
    if unknown > UNKNOWN_SHARE * len(sample):
        reasons.append(f"{unknown} of the first {len(sample)} training sentences have characters that it does not know")
    return reasons


def style_of(tokenizer: SubwordTokenizer) -> str | None:
    """The writing style that a tokenizer reads; None for a tokenizer of another kind."""
    return next(
        (name for name in STYLES if _preprocessing(_untrained(name)) == _preprocessing(tokenizer.backend)), None
    )


def _untrained(style: str) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer, tokenizer.pre_tokenizer = STYLES[style].normalizer, STYLES[style].pre_tokenizer
    return tokenizer


def _preprocessing(tokenizer: Tokenizer) -> list[dict]:
    """What a tokenizer does to a text before it splits words into pieces."""
    saved = json.loads(tokenizer.to_str())
    return [saved["normalizer"], saved["pre_tokenizer"]]
