"""Study: how each model learnt, pass by pass, as its card has it; nothing is trained or measured anew."""

import math

from attnviz import checkpoints
from attnviz.mechanisms import CLASSIFIERS, MECHANISMS
from attnviz.metrics import METRICS
from attnviz.studies.pictures import Panel, Series
from attnviz.studies.setting import Setting, provenance
from attnviz.studies.tables import grouped, table

TITLE = "Learning curves"
DESCRIPTION = "The score on validation after each pass over the data, of every model, one panel a language pair"
COLUMNS = 2
SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)  # of the passes
_KNOWN = MECHANISMS | CLASSIFIERS


def measure(setting: Setting) -> dict:
    """rows: a pass each of every checkpoint whose card has its history, of all pairs."""
    rows, models = [], []
    for name in checkpoints.names(setting.root):
        card, (pair, mechanism) = checkpoints.read_card(name, setting.root), name.split("/")
        if mechanism in _KNOWN and card.get("history"):
            rows += [_row(pair, mechanism, epoch) for epoch in card["history"]]
            models.append({"pair": pair, "mechanism": mechanism, "seed": card.get("seed"), "began_with": card.get("start"),
                           "weights_sha256": checkpoints.fingerprint(name, setting.root)})  # fmt: skip
    return {"rows": rows, **provenance(setting, ()), "models": models}


def _row(pair: str, mechanism: str, epoch: dict) -> dict:
    key = next(key for key in epoch if key.startswith("val_") and key != "val_loss")
    return {"pair": pair, "mechanism": mechanism, "epoch": epoch["epoch"], "metric": key.removeprefix("val_"), "score": epoch[key],
            "val_loss": epoch["val_loss"], "train_loss": epoch["train_loss"]}  # fmt: skip


def text(found: dict) -> str:
    again = {(entry["pair"], entry["mechanism"]) for entry in found["models"] if entry["began_with"]}
    head = ("", "score", "passes", *(f"after {100 * share:g} %" for share in SHARES), "best pass", "least loss on validation", "in pass")
    lines = [_line(pair, mechanism, rows, (pair, mechanism) in again)
             for (pair, mechanism), rows in grouped(found["rows"], "pair", "mechanism").items()]  # fmt: skip
    return "\n\n".join([_METHOD, table(head, lines) if lines else "No card has the history of its training."])


_METHOD = (
    "The score on validation (of sst2 on dev) of greedy answers after a share of the passes over the training data, as the cards have "
    "them. The pass with the best score ships. The loss on validation is in nats a token, without dropout or smoothing. A model that "
    "began with another's weights (*) shows its own passes only. Scores of different pairs, and of different kinds, do not compare."
)


def _line(pair: str, mechanism: str, rows: list[dict], again: bool) -> tuple[str, ...]:
    scores, losses = [row["score"] for row in rows], [row["val_loss"] for row in rows]
    after = (scores[max(0, math.ceil(share * len(rows)) - 1)] for share in SHARES)
    best, least = max(range(len(rows)), key=scores.__getitem__), min(range(len(rows)), key=losses.__getitem__)
    return (f"{pair} · {_KNOWN[mechanism].title}{' *' if again else ''}", METRICS[rows[0]["metric"]].title, f"{len(rows)}",
            *(f"{score:.1f}" for score in after), f"{rows[best]['epoch']}", f"{losses[least]:.3f}", f"{rows[least]['epoch']}")  # fmt: skip


def panels(found: dict) -> list[Panel]:
    """Of translators alone: a classifier has no colour of its own beside eight mechanisms."""
    rows = [row for row in found["rows"] if row["mechanism"] in MECHANISMS]
    return [Panel(pair, tuple(_series(*item) for item in grouped(of, "mechanism").items()), "passes over the data",
                  METRICS[of[0]["metric"]].title) for pair, of in grouped(rows, "pair").items()]  # fmt: skip


def _series(mechanism: str, rows: list[dict]) -> Series:
    x, y = (tuple(row[key] for row in rows) for key in ("epoch", "score"))
    return Series(MECHANISMS[mechanism].title, x, y, marks=False)
