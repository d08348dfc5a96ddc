"""Study: how each model learnt, pass by pass, as its card has it; nothing is trained or measured anew."""

import math

from attnviz import checkpoints, lineage
from attnviz.mechanisms import CLASSIFIERS, MECHANISMS
from attnviz.metrics import METRICS
from attnviz.studies.pictures import Panel, Series
from attnviz.studies.setting import Setting, provenance
from attnviz.studies.tables import grouped, seeds, table

TITLE = "Learning curves"
DESCRIPTION = "The score on validation after each pass over the data, of every model, one panel a language pair"
COLUMNS = 2
SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)  # of the passes
_KNOWN = MECHANISMS | CLASSIFIERS
_METHOD = (
    "The score on validation (of sst2 on dev) of greedy answers after a share of the passes over the training data, as the cards have "
    "them. The pass with the best score ships. The loss on validation is in nats a token, without dropout or smoothing. A model that "
    "began with another's weights (*) shows its own passes only, in the picture after those of the runs before. Scores of different pairs, and of different kinds, do not compare."
)


def measure(setting: Setting) -> dict:
    """rows: every checkpoint, of all pairs, whose card has its history; `metric` names its scores, of which there is one a pass.

    ValueError when more than one seed is asked for.
    """
    if setting.seeds > 1:
        raise ValueError(f"the curves are those of the cards, a run each, so --seeds must be 1; got {setting.seeds}")
    rows = []
    for name in checkpoints.names(setting.root):
        card, (pair, mechanism) = checkpoints.read_card(name, setting.root), name.split("/")
        if mechanism in _KNOWN and (history := card.get("history")):
            key = next(key for key in history[0] if key.startswith("val_") and key != "val_loss")
            rows.append({
                "pair": pair, "mechanism": mechanism, "seed": card.get("seed"), "fine_tuned": bool(card.get("start")),
                "passes_before": _before(card),
                "metric": key.removeprefix("val_"), "scores": [epoch[key] for epoch in history],
                **{f"{kind}_losses": [epoch[f"{kind}_loss"] for epoch in history] for kind in ("val", "train")},
                "weights_sha256": checkpoints.fingerprint(name, setting.root),
            })  # fmt: skip
    beside = provenance(setting, ())
    return {"rows": rows, **{key: beside[key] for key in ("missing", "versions", "device")}}


def _before(card: dict) -> int:
    """Passes of the runs whose weights this one began with, as far as they are known."""
    told = [run.get("epochs") for run in lineage.runs(card)[:-1]]
    return sum(passes for passes in told if isinstance(passes, int))


def text(found: dict) -> str:
    head = ("", "score", "passes", *(f"after {100 * share:g} %" for share in SHARES), "best pass", "least loss on validation", "in pass")
    lines = [_line(row) for row in found["rows"]]
    return "\n\n".join([_METHOD, table(head, lines), seeds(found["rows"])])


def _line(row: dict) -> tuple[str, ...]:
    scores, losses = row["scores"], row["val_losses"]
    after = (scores[math.ceil(share * len(scores)) - 1] for share in SHARES)
    name = f"{row['pair']} · {_KNOWN[row['mechanism']].title}{' *' if row['fine_tuned'] else ''}"
    return (name, METRICS[row["metric"]].title, f"{len(scores)}", *(f"{score:.1f}" for score in after),
            f"{scores.index(max(scores)) + 1}", f"{min(losses):.3f}", f"{losses.index(min(losses)) + 1}")  # fmt: skip


def panels(found: dict) -> list[Panel]:
    """Of translators alone: a classifier has no colour of its own beside eight mechanisms."""
    rows = [row for row in found["rows"] if row["mechanism"] in MECHANISMS]
    return [Panel(pair, tuple(map(_series, of)), "passes over the data", METRICS[of[0]["metric"]].title)
            for pair, of in grouped(rows, "pair").items()]  # fmt: skip


def _series(row: dict) -> Series:
    passes = tuple(range(row["passes_before"] + 1, row["passes_before"] + len(row["scores"]) + 1))
    return Series(MECHANISMS[row["mechanism"]].title, passes, tuple(row["scores"]), marks=False)
