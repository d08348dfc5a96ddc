"""Study: how each model learnt, pass by pass, as its card has it; nothing is trained or measured anew."""

import math
from pathlib import Path

from attnviz.evaluation.metrics import METRICS
from attnviz.mechanisms import ALL, MECHANISMS
from attnviz.models import checkpoints
from attnviz.models import provenance as lineage
from attnviz.models.names import ModelName
from attnviz.studies.pictures import Panel, Series
from attnviz.studies.setting import Setting, provenance
from attnviz.studies.tables import grouped, seeds, table

TITLE = "Learning curves"
DESCRIPTION = "The score on validation after each pass over the data, of every model, one panel a language pair"
COLUMNS = 2
SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)  # of the passes
_METHOD = (
    "The score on validation (of sst2 on dev) of greedy answers after a share of the passes over the training data, as the cards have "
    "them. The pass with the best score ships. The loss on validation is in nats a token, without dropout or smoothing. A model that "
    "took more than one run (*) shows the passes of all of them, as far as its card has them; each run goes on from the best pass of "
    "the one before, and the best of the last one ships. One that learnt from what other models say (†) "
    "shows its own passes. Scores of different pairs, and of different kinds, do not compare."
)


def measure(setting: Setting) -> dict:
    """rows: every checkpoint, of all pairs, whose card has its history; `metric` names its scores, of which there is one a pass.

    ValueError when more than one seed is asked for.
    """
    if setting.seeds > 1:
        raise ValueError(f"the curves are those of the cards, a run each, so --seeds must be 1; got {setting.seeds}")
    rows = [row for name in checkpoints.names(setting.root) if (row := _row(name, setting.root))]
    beside = provenance(setting, ())
    return {"rows": rows, **{key: beside[key] for key in ("missing", "versions", "device")}}


def _row(name: str, root: Path) -> dict | None:
    """passes_before : of runs whose history is not known. passes_last : of the run that ships."""
    card, model = checkpoints.read_card(name, root), ModelName.parse(name)
    if model.mechanism not in ALL or not card.get("history"):
        return None
    key = next(key for key in card["history"][0] if key.startswith("val_") and key != "val_loss")
    known, unknown = _histories(lineage.runs(card), key)
    history = [one for run in known for one in run]
    return {
        "pair": model.pair,
        "mechanism": model.mechanism,
        "seed": card.get("seed"),
        "fine_tuned": bool(card.get("start")),
        "taught": bool(lineage.teachers(card)),
        "passes_before": unknown,
        "passes_last": len(known[-1]),
        "metric": key.removeprefix("val_"),
        "scores": [one[key] for one in history],
        **{f"{kind}_losses": [one[f"{kind}_loss"] for one in history] for kind in ("val", "train")},
        "weights_sha256": checkpoints.fingerprint(name, root),
    }


def _histories(runs: list[dict], key: str) -> tuple[list[list[dict]], int]:
    """The histories of the last runs, on the same data and scored by `key`, and how many passes those before had, if that is known."""
    known = []
    for run in reversed(runs):
        history = run.get("history") or []
        if not history or run.get("data") != runs[-1].get("data") or any(key not in one for one in history):
            break
        known.insert(0, history)
    told = [run.get("epochs") for run in runs[: len(runs) - len(known)]]
    return known, sum(passes for passes in told if isinstance(passes, int))


def text(found: dict) -> str:
    head = (
        "",
        "score",
        "passes",
        *(f"after {100 * share:g} %" for share in SHARES),
        "best pass",
        "least loss on validation",
        "in pass",
    )
    lines = [_line(row) for row in found["rows"]]
    return "\n\n".join([_METHOD, table(head, lines), seeds(found["rows"])])


def _line(row: dict) -> tuple[str, ...]:
    scores, losses, before = row["scores"], row["val_losses"], row["passes_before"]
    last = scores[-row["passes_last"] :]
    best = len(scores) - len(last) + last.index(max(last))
    after = (scores[math.ceil(share * len(scores)) - 1] for share in SHARES)
    name = f"{row['pair']} · {ALL[row['mechanism']].title}{' *' * row['fine_tuned']}{' †' * row['taught']}"
    return (
        name,
        METRICS[row["metric"]].title,
        f"{before + len(scores)}",
        *(f"{score:.1f}" for score in after),
        f"{before + best + 1}",
        f"{min(losses):.3f}",
        f"{before + losses.index(min(losses)) + 1}",
    )


def panels(found: dict) -> list[Panel]:
    """Of translators alone: a classifier has no colour of its own beside eight mechanisms."""
    rows = [row for row in found["rows"] if row["mechanism"] in MECHANISMS]
    return [
        Panel(pair, tuple(map(_series, of)), "passes over the data", METRICS[of[0]["metric"]].title)
        for pair, of in grouped(rows, "pair").items()
    ]


def _series(row: dict) -> Series:
    passes = tuple(range(row["passes_before"] + 1, row["passes_before"] + len(row["scores"]) + 1))
    return Series(MECHANISMS[row["mechanism"]].title, passes, tuple(row["scores"]), marks=False)
