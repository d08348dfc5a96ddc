"""The runs that a checkpoint's weights went through: the last one, and those whose weights it began with."""

from pathlib import Path

from attnviz import files

_CURVE = ("epoch", "train_loss")  # of each pass, beside its figures on validation
_KEPT = ("command", "settings", "data", "epochs", "seconds", "weights_sha256")


def begun(folder: Path | None) -> dict:
    """What a card has more when the run began with the checkpoint in `folder` (root/pair/mechanism): `start`, with what that one's
    card says of its training, and so on back; nothing when it began at random (None). Raises CheckpointError."""
    if folder is None:
        return {}
    folder = Path(folder).resolve()
    known = files.read_card("/".join(folder.parts[-2:]), folder.parent.parent)
    kept = {key: known.get(key) for key in _KEPT} | {"history": _curve(known.get("history"))}
    return {"start": kept | ({"start": known["start"]} if "start" in known else {})}


def _curve(history: list | None) -> list[dict]:
    """What each pass over the data led to, without what it cost."""
    passes = [one for one in history if isinstance(one, dict)] if isinstance(history, list) else []
    return [{key: value for key, value in one.items() if key in _CURVE or key.startswith("val_")} for one in passes]


def runs(card: dict) -> list[dict]:
    """What a card says of each run, the first one first, the card itself last."""
    found = [card]
    while isinstance(start := found[0].get("start"), dict) and start:
        found.insert(0, start)
    return found
