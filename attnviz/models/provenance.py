"""Where a checkpoint's weights come from: its training runs (the last one, and those that it started from), and its
teachers."""

from collections.abc import Sequence
from pathlib import Path

from attnviz.models import checkpoint_files

_CURVE = ("epoch", "train_loss")  # of each pass, beside its scores on validation
_BEFORE = ("start", "teachers")
_KEPT = ("command", "settings", "data", "epochs", "seconds", "weights_sha256")


def begun(folder: Path | None) -> dict:
    """The entry `start` for the card of a run that started from the checkpoint in `folder` (root/pair/mechanism).

    It holds what the card of that checkpoint says of its own training, which may have a `start` too. {} for a run that
    started from random weights (None). Raises CheckpointError.
    """
    if folder is None:
        return {}
    card = checkpoint_files.read_card(*checkpoint_files.locate(folder))
    return {"start": _kept(card) | {"history": _curve(card.get("history"))}}


def taught(folders: Sequence[Path]) -> dict:
    """The entry `teachers` for the card of a run that learnt from the checkpoints in `folders`.

    It holds what the card of each says of its training. {} without teachers. Raises CheckpointError.
    """
    cards = [checkpoint_files.read_card(*checkpoint_files.locate(folder)) for folder in folders]
    return {"teachers": [_kept(card) | {"best": card.get("best")} for card in cards]} if folders else {}


def _kept(card: dict) -> dict:
    return {key: card.get(key) for key in _KEPT} | {key: card[key] for key in _BEFORE if key in card}


def _curve(history: list | None) -> list[dict]:
    """The scores after each epoch, without times and memory."""
    passes = [entry for entry in history if isinstance(entry, dict)] if isinstance(history, list) else []
    return [{key: value for key, value in entry.items() if key in _CURVE or key.startswith("val_")} for entry in passes]


def teachers(card: dict) -> list[dict]:
    """The entries of a card about its teachers."""
    cards = card.get("teachers")
    return [teacher for teacher in cards if isinstance(teacher, dict)] if isinstance(cards, list) else []


def runs(card: dict) -> list[dict]:
    """The entries of a card about each run, the first run first; the card itself is the last."""
    cards = [card]
    while isinstance(start := cards[0].get("start"), dict) and start:
        cards.insert(0, start)
    return cards
