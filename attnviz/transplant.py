"""A trained model with another vocabulary: what to begin training with when the sentences change (Gee et al. 2022).

A piece that both vocabularies have keeps its row of the embedding; a new one begins as the mean of the rows of the pieces that the
old tokenizer makes of it. All other weights stay as they are.
"""

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from attnviz import checkpoints, files
from attnviz.text import UNK, Text

PER_PIECE = ("embedding.weight", "output_bias")  # those with a row for each piece


def rows(old: Text, new: Text) -> list[list[int]]:
    """For each piece of the new vocabulary, the pieces of the old one that spell it."""
    known, spelt = old.tokenizer.get_vocab(), []
    for number in range(len(new)):
        piece = new.tokenizer.id_to_token(number)
        if piece in known:
            spelt.append([known[piece]])
        else:
            parts = [token.id for token in old.tokenizer.model.tokenize(piece)]
            spelt.append([part for part in parts if part != UNK] or [UNK])
    return spelt


def transplanted(weights: dict[str, Tensor], old: Text, new: Text) -> dict[str, Tensor]:
    """The weights of a model for the vocabulary `new`."""
    spelt = rows(old, new)
    moved = {key: torch.stack([weights[key][parts].mean(dim=0) for parts in spelt]) for key in PER_PIECE if key in weights}
    return weights | moved


def transplant(start: Path, tokenizer: Path, out: Path, pair: str = "") -> Path:
    """Write the checkpoint in the folder `start` (root/pair/mechanism) below `out` with another tokenizer; -> its folder.

    pair : another language pair that the tokenizer is of, whose model learns sooner from this one (Zoph et al. 2016). Its card stays that of `start`: it says what the weights went through. Raises CheckpointError.
    """
    name, root = files.place(start)
    own, mechanism = name.split("/")
    model, _ = checkpoints.load_model(name, root)
    new = Text.load(tokenizer)
    weights = transplanted(model.state_dict(), checkpoints.load_text(own, root), new)
    config = replace(checkpoints.read_config(name, root), vocabulary=len(new))
    folder = Path(out) / (pair or own) / mechanism
    checkpoints.save_model(folder, config, weights)
    files.replace(folder.parent / "tokenizer.json", lambda temporary: temporary.write_bytes(Path(tokenizer).read_bytes()))
    checkpoints.write_json(folder / "card.json", files.read_card(name, root))
    return folder
