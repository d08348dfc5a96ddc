"""The first weights of a training run, taken from a trained model: as they are, or with another vocabulary.

With another vocabulary (Gee et al. 2022), a piece that both vocabularies have keeps its row of the embedding. A new
piece begins as the mean of the rows of the pieces that the old tokenizer makes of it. All other weights stay as they
are.
"""

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from attnviz import storage
from attnviz.data import tokenizer_rules
from attnviz.data.tokenizer import UNK, SubwordTokenizer
from attnviz.mechanisms import Config
from attnviz.models import checkpoint_files, checkpoints
from attnviz.models.names import CARD, TOKENIZER, ModelName
from attnviz.storage import atomic

_ALWAYS = ("embedding.", "encoder.")  # what two mechanisms must have in common
PER_PIECE = ("embedding.weight", "output_bias")  # the tensors with a row for each piece


def taken_from(start: Path, config: Config, own: dict[str, Tensor]) -> tuple[dict[str, Tensor], list[str]]:
    """The weights to begin with, and the names of those that stay random.

    start : folder of the checkpoint. config : of the model to train. own : its random weights. A checkpoint of the same
    mechanism gives all its weights. One of another mechanism gives those that have the same name and shape, so that a
    Luong model can begin with the encoder and the decoder of another one. ValueError when the embedding or the encoder
    does not fit, in width for instance; CheckpointError.
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

    pair : the language pair of the tokenizer, when it is another one: its model learns sooner from this one (Zoph et
    al. 2016). The card stays that of `start`, because it says which runs the weights went through. Raises
    CheckpointError, OSError.
    """
    name, root = checkpoint_files.locate(start)
    own = ModelName.parse(name)
    model, _ = checkpoints.load_model(name, root)
    content = storage.read(tokenizer, tokenizer_rules.LARGEST)
    new = SubwordTokenizer.load(tokenizer)
    weights = transplanted(model.state_dict(), checkpoints.load_tokenizer(own.pair, root), new)
    config = replace(checkpoints.read_config(name, root), vocabulary=len(new))
    folder = Path(out) / (pair or own.pair) / own.mechanism
    atomic.replace(folder.parent / TOKENIZER, lambda temporary: temporary.write_bytes(content))
    checkpoints.save_model(folder, config, weights)
    checkpoints.write_json(folder / CARD, checkpoints.read_card(name, root))
    return folder
