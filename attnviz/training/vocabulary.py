"""The tokenizer that all mechanisms of a pair share: kept where there is one, taken from the checkpoint to begin with, or learnt.

It is written once nothing more of the run can be refused, so that a refused one leaves none behind.
"""

import json
from pathlib import Path

from tokenizers import Tokenizer, models

from attnviz import atomic
from attnviz.data.batching import pieces
from attnviz.data.corpora import Corpus
from attnviz.data.styles import STYLES
from attnviz.data.tokenizer import UNK, Text, train_vocabulary
from attnviz.models import checkpoints

READ = 1000  # pairs that are read to see whether a tokenizer knows their characters
STRANGE = 0.05  # share of them with unknown ones that is worth a word


def choose(path: Path, corpus: Corpus, size: int, start: Path | None = None) -> Text:
    """The tokenizer for a run below `path`, ROOT/PAIR/tokenizer.json, of at most `size` pieces when it has to be learnt.

    start : folder of the checkpoint to begin with, whose tokenizer it must be. ValueError when another is at `path`; CheckpointError.
    """
    if start:
        if path.is_file() and path.read_bytes() != beside(start).read_bytes():
            raise ValueError(f"{path} is not the tokenizer of {start}; choose another --out")
        path = beside(start)
    if path.is_file() or start:
        return checkpoints.load_text(path.parent.name, path.parent.parent)
    learnt = train_vocabulary(corpus.texts(), size, corpus.style)
    return Text(Tokenizer.from_str(learnt.tokenizer.to_str()))  # as it will be read from its file


def settle(path: Path, text: Text, start: Path | None = None) -> None:
    """Put the tokenizer at `path` unless it is there. ValueError when a run beside this one has put another there."""
    if path.is_file():
        if Text.load(path).tokenizer.to_str() != text.tokenizer.to_str():
            raise ValueError(f"{path} is of another run, which began at the same time; choose another --out")
    elif start:
        atomic.replace(path, lambda temporary: temporary.write_bytes(beside(start).read_bytes()))
    else:
        atomic.replace(path, text.save)


def beside(checkpoint: Path) -> Path:
    """The tokenizer of the pair that a checkpoint's folder is of."""
    return Path(checkpoint).resolve().parent / "tokenizer.json"


def doubts(text: Text, corpus: Corpus) -> list[str]:
    """In words, why a tokenizer that was learnt elsewhere may not suit a corpus; nothing when it does."""
    found, style = [], style_of(text)
    if style not in (None, corpus.style):
        found.append(f"it reads text as {style}, and these sentences are {corpus.style} (--style)")
    pairs = corpus.train[:READ]
    strange = sum(any(UNK in ids for ids in row) for row in pieces(pairs, text, corpus.labelled))
    if strange > STRANGE * len(pairs):
        found.append(
            f"of the first {len(pairs)} sentences for training {strange} have characters that it does not know"
        )
    return found


def style_of(text: Text) -> str | None:
    """The style that a tokenizer reads text in; None for one of another kind."""
    return next((name for name in STYLES if _steps(_bare(name)) == _steps(text.tokenizer)), None)


def _bare(style: str) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer, tokenizer.pre_tokenizer = STYLES[style].normalizer, STYLES[style].pre_tokenizer
    return tokenizer


def _steps(tokenizer: Tokenizer) -> list[dict]:
    """What a tokenizer does to a text before its model sees it."""
    saved = json.loads(tokenizer.to_str())
    return [saved["normalizer"], saved["pre_tokenizer"]]
