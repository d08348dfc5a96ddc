"""The start of a training run: its tokenizer, and its initial weights if taken from a trained model.

All mechanisms of a pair share a tokenizer: an existing one, the one of an initial checkpoint, or a new one. It is
written after all checks pass, so that a rejected run leaves no file.

The weights are those of the trained model, unchanged or with another vocabulary. With another vocabulary (Gee et al.
2022), a piece that both vocabularies have keeps its row of the embedding. A new piece begins as the mean of the rows of
the pieces that the old tokenizer makes of it. All other weights are unchanged.
"""

import json
from dataclasses import replace
from pathlib import Path

import torch
from tokenizers import Tokenizer, models
from torch import Tensor

from attnviz import storage
from attnviz.data import tokenizer_rules
from attnviz.data.batching import pieces
from attnviz.data.corpora import Corpus
from attnviz.data.styles import STYLES
from attnviz.data.tokenizer import UNK, SubwordTokenizer, train_vocabulary
from attnviz.mechanisms import Config
from attnviz.models import checkpoint_files, checkpoints
from attnviz.models.names import CARD, TOKENIZER, ModelName

SAMPLE = 1000  # training pairs in which `mismatches` looks for unknown characters
UNKNOWN_SHARE = 0.05  # a warning is given above this share of them


def choose_tokenizer(path: Path, corpus: Corpus, size: int, start: Path | None = None) -> SubwordTokenizer:
    """The tokenizer for a run; `path`, ROOT/PAIR/tokenizer.json, is its file. A new one has at most `size`
    pieces.

    start : folder of the checkpoint with the initial weights, whose tokenizer is used. ValueError when `path` holds a
    different one; CheckpointError.
    """
    if start:
        if path.is_file() and path.read_bytes() != tokenizer_path(start).read_bytes():
            raise ValueError(f"{path} differs from the tokenizer of {start}; choose another --out")
        path = tokenizer_path(start)
    if path.is_file() or start:
        return checkpoints.load_tokenizer(path.parent.name, path.parent.parent)
    learnt = train_vocabulary(corpus.texts(), size, corpus.style)
    return SubwordTokenizer(Tokenizer.from_str(learnt.backend.to_str()))  # the same object as one read from the file


def save_tokenizer(path: Path, tokenizer: SubwordTokenizer, start: Path | None = None) -> None:
    """Write the tokenizer to `path` unless it is there. ValueError if another run has written a different one in the
    meantime."""
    if path.is_file():
        if SubwordTokenizer.load(path).backend.to_str() != tokenizer.backend.to_str():
            raise ValueError(f"another run started at the same time and wrote {path}; choose another --out")
    elif start:
        storage.replace(path, lambda temporary: temporary.write_bytes(tokenizer_path(start).read_bytes()))
    else:
        storage.replace(path, tokenizer.save)


def tokenizer_path(checkpoint: Path) -> Path:
    """The tokenizer file of the checkpoint in a folder ROOT/PAIR/MECHANISM."""
    return Path(checkpoint).resolve().parent / TOKENIZER


def mismatches(tokenizer: SubwordTokenizer, corpus: Corpus) -> list[str]:
    """In words, why an existing tokenizer may not suit a corpus; empty if it does."""
    reasons, style = [], style_of(tokenizer)
    if style not in (None, corpus.style):
        reasons.append(f"it reads {style} text, and these sentences are {corpus.style} (--style)")
    sample = corpus.train[:SAMPLE]
    unknown = sum(any(UNK in ids for ids in row) for row in pieces(sample, tokenizer, corpus.labelled))
    if unknown > UNKNOWN_SHARE * len(sample):
        reasons.append(f"{unknown} of the first {len(sample)} training sentences have characters that it does not know")
    return reasons


def style_of(tokenizer: SubwordTokenizer) -> str | None:
    """The writing style of a tokenizer; None for another kind of tokenizer."""
    return next(
        (name for name in STYLES if _preprocessing(_untrained(name)) == _preprocessing(tokenizer.backend)), None
    )


def _untrained(style: str) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer, tokenizer.pre_tokenizer = STYLES[style].normalizer, STYLES[style].pre_tokenizer
    return tokenizer


def _preprocessing(tokenizer: Tokenizer) -> list[dict]:
    """The steps of a tokenizer before it splits words into pieces."""
    saved = json.loads(tokenizer.to_str())
    return [saved["normalizer"], saved["pre_tokenizer"]]


_ALWAYS = ("embedding.", "encoder.")  # what two mechanisms must have in common
PER_PIECE = ("embedding.weight", "output_bias")  # the tensors with a row for each piece


def taken_from(start: Path, config: Config, own: dict[str, Tensor]) -> tuple[dict[str, Tensor], list[str]]:
    """The initial weights, and the names of those that remain random.

    start : folder of the checkpoint. config : of the model to train. own : its random weights. A checkpoint of the same
    mechanism gives all its weights. One of another mechanism gives those that have the same name and shape, so that a
    Luong model can begin with the encoder and the decoder of another one. ValueError if the embedding or the encoder
    does not fit, for instance in width; CheckpointError.
    """
    model, other = checkpoints.load_model(*checkpoint_files.locate(start))
    weights = model.state_dict()
    fitting = {name: value for name, value in weights.items() if name in own and own[name].shape == value.shape}
    random = [name for name in own if name not in fitting]
    same = other["mechanism"] == config.mechanism
    if any(same or name.startswith(_ALWAYS) for name in random) or (same and len(fitting) < len(weights)):
        raise ValueError(f"{start} holds a different model ({other}) from the one to train ({config.to_dict()})")
    return own | fitting, random


def spellings(old: SubwordTokenizer, new: SubwordTokenizer) -> list[list[int]]:
    """For each piece of the new vocabulary, the pieces of the old one that spell it."""
    numbers, result = old.backend.get_vocab(), []
    for number in range(len(new)):
        piece = new.backend.id_to_token(number)
        if piece in numbers:
            result.append([numbers[piece]])
        else:
            parts = [token.id for token in old.backend.model.tokenize(piece)]
            result.append([part for part in parts if part != UNK] or [UNK])
    return result


def transplanted(weights: dict[str, Tensor], old: SubwordTokenizer, new: SubwordTokenizer) -> dict[str, Tensor]:
    """The weights of a model for the vocabulary `new`."""
    spelt = spellings(old, new)
    rows = {
        name: torch.stack([weights[name][parts].mean(dim=0) for parts in spelt])
        for name in PER_PIECE
        if name in weights
    }
    return weights | rows


def transplant(start: Path, tokenizer: Path, out: Path, pair: str | None = None) -> Path:
    """Write the checkpoint in `start` (ROOT/PAIR/MECHANISM) below `out` with another tokenizer; returns its folder.

    pair : the language pair of the tokenizer, if different; its model learns faster from these weights (Zoph et al.
    2016). The card is that of `start`, because it records the runs of the weights. Raises CheckpointError, OSError.
    """
    name, root = checkpoint_files.locate(start)
    own = ModelName.parse(name)
    model, _ = checkpoints.load_model(name, root)
    content = storage.read(tokenizer, tokenizer_rules.LARGEST)
    new = SubwordTokenizer.load(tokenizer)
    weights = transplanted(model.state_dict(), checkpoints.load_tokenizer(own.pair, root), new)
    config = replace(checkpoint_files.read_config(name, root), vocabulary=len(new))
    folder = Path(out) / (pair or own.pair) / own.mechanism
    storage.replace(folder.parent / TOKENIZER, lambda temporary: temporary.write_bytes(content))
    checkpoints.save_model(folder, config, weights)
    checkpoint_files.write_json(folder / CARD, checkpoint_files.read_card(name, root))
    return folder
