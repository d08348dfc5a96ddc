"""The runs that a checkpoint's weights went through: the last one, and those whose weights it began with; and its
teachers."""

from collections.abc import Sequence
from pathlib import Path

from attnviz.models import checkpoint_files

_CURVE = ("epoch", "train_loss")  # of each pass, beside its figures on validation
_BEFORE = ("start", "teachers")
_KEPT = ("command", "settings", "data", "epochs", "seconds", "weights_sha256")


def begun(folder: Path | None) -> dict:
    """What a card has more when the run began with the checkpoint in `folder` (root/pair/mechanism): `start`, with what
    that one's card says of its training, and so on back; nothing when it began at random (None). Raises
    CheckpointError."""
    if folder is None:
        return {}
    card = checkpoint_files.read_card(*checkpoint_files.locate(folder))
    return {"start": _kept(card) | {"history": _curve(card.get("history"))}}


def taught(folders: Sequence[Path]) -> dict:
    """What a card has more when the run learnt from the checkpoints in `folders`: `teachers`, with what the card of
    each says of its training; nothing without teachers. Raises CheckpointError."""
    cards = [checkpoint_files.read_card(*checkpoint_files.locate(folder)) for folder in folders]
    return {"teachers": [_kept(card) | {"best": card.get("best")} for card in cards]} if folders else {}


def _kept(card: dict) -> dict:
    return {key: card.get(key) for key in _KEPT} | {key: card[key] for key in _BEFORE if key in card}


def _curve(history: list | None) -> list[dict]:
    """What each pass over the data led to, without what it cost."""
    passes = [entry for entry in history if isinstance(entry, dict)] if isinstance(history, list) else []
    return [{key: value for key, value in entry.items() if key in _CURVE or key.startswith("val_")} for entry in passes]


def teachers(card: dict) -> list[dict]:
    """What a card says of each model that its own learnt from."""
    cards = card.get("teachers")
    return [teacher for teacher in cards if isinstance(teacher, dict)] if isinstance(cards, list) else []


def runs(card: dict) -> list[dict]:
    """What a card says of each run, the first one first, the card itself last."""
    cards = [card]
    while isinstance(start := cards[0].get("start"), dict) and start:
        cards.insert(0, start)
    return cards
