"""Study: the learning curve of each model, from its card. Nothing is trained or measured."""

import math
from pathlib import Path

from attnviz.evaluation.metrics import METRICS
from attnviz.mechanisms import ALL, MECHANISMS
from attnviz.models import checkpoint_files
from attnviz.models.names import ModelName
from attnviz.studies.measured_models import StudyConfig
from attnviz.studies.report import Panel, Series, grouped, seeds, table

TITLE = "Learning curves"
DESCRIPTION = (
    "The score of every model on validation after each epoch, one panel for each language pair, and one for each kind "
    "of sentence where there are two"
)
COLUMNS = 2
SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)  # of the epochs
_METHOD = (
    "The score of greedy output on validation (for sst2 on dev) after a share of the epochs, from the cards. The epoch "
    "with the best score ships. The loss on validation is in nats a token, without dropout or label smoothing. A model "
    "that was trained in more than one run (*) shows the epochs of all runs that its card has; each run starts from "
    "the best epoch of the run before, and the best epoch of the last run ships. A model that was distilled from other "
    "models (†) shows its own epochs. Where validation has two kinds of sentences, the score is of both together, and "
    "the last column has the best epoch's score of each. Scores of different pairs, and of different metrics, cannot "
    "be compared."
)


def measure(config: StudyConfig) -> dict:
    """rows: by checkpoint, of all pairs, whose card has a history. scores : one an epoch, of the metric `metric`.

    It does not depend on the machine: the same cards give the same files. ValueError for more than one seed.
    """
    if config.seeds > 1:
        raise ValueError(
            f"the curves come from the cards, which have one run each; --seeds must be 1, got {config.seeds}"
        )
    rows = [row for name in checkpoint_files.names(config.root) if (row := _row(name, config.root))]
    return {"rows": rows, "missing": config.missing(())}


def _row(name: str, root: Path) -> dict | None:
    """None without curves, and for a model that writes, because bits per character do not score its output.

    passes_before : epochs of runs whose history is unknown. passes_last : epochs of the last run.

    parts : the scores of each kind of sentence; none if validation has one kind.
    """
    card, model = checkpoint_files.read_card(name, root), ModelName.parse(name)
    if model.mechanism not in ALL or ALL[model.mechanism].writes or not card.get("history"):
        return None
    key = next(key for key in card["history"][0] if key.startswith("val_") and key != "val_loss")
    histories, epochs_before = _histories(checkpoint_files.runs(card), key)
    history = [epoch for run in histories for epoch in run]
    return {
        "pair": model.pair,
        "mechanism": model.mechanism,
        "seed": card.get("seed"),
        "fine_tuned": bool(card.get("start")),
        "taught": bool(checkpoint_files.teachers(card)),
        "passes_before": epochs_before,
        "passes_last": len(histories[-1]),
        "metric": key.removeprefix("val_"),
        "scores": [epoch[key] for epoch in history],
        "parts": {
            part.removeprefix(f"{key}_"): [epoch.get(part) for epoch in history]
            for part in history[-1]
            if part.startswith(f"{key}_")
        },
        **{f"{kind}_losses": [epoch[f"{kind}_loss"] for epoch in history] for kind in ("val", "train")},
        "weights_sha256": checkpoint_files.fingerprint(name, root),
    }


def _histories(runs: list[dict], key: str) -> tuple[list[list[dict]], int]:
    """The histories of the last runs on the same data with the same metric, and the number of epochs before them, if
    known."""
    histories = []
    for run in reversed(runs):
        history = run.get("history") or []
        if not history or run.get("data") != runs[-1].get("data") or any(key not in epoch for epoch in history):
            break
        histories.insert(0, history)
    epochs_before = [run.get("epochs") for run in runs[: len(runs) - len(histories)]]
    return histories, sum(epochs for epochs in epochs_before if isinstance(epochs, int))


def text(results: dict) -> str:
    """Method and results in Markdown."""
    head = (
        "",
        "score",
        "epochs",
        *(f"after {100 * share:g} %" for share in SHARES),
        "best epoch",
        "smallest loss on validation",
        "in epoch",
        "of each kind",
    )
    lines = [_line(row) for row in results["rows"]]
    return "\n\n".join([_METHOD, table(head, lines), seeds(results["rows"])])


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
        ", ".join(f"{part} {of_part[best]:.1f}" for part, of_part in row["parts"].items()) or "–",
    )


def panels(results: dict) -> list[Panel]:
    """A panel for each pair, and for each kind of its sentences if there are two.

    Classifiers are left out, because there is no ninth colour.
    """
    rows, shown = [row for row in results["rows"] if row["mechanism"] in MECHANISMS], []
    for pair, of_pair in grouped(rows, "pair").items():
        unit = METRICS[of_pair[0]["metric"]].title
        shown.append(Panel(pair, tuple(_series(row, row["scores"]) for row in of_pair), "epochs", unit))
        for part in dict.fromkeys(part for row in of_pair for part in row["parts"]):
            series = tuple(_series(row, row["parts"][part]) for row in of_pair if part in row["parts"])
            shown.append(Panel(f"{pair}, {part}", series, "epochs", unit))
    return shown


def _series(row: dict, scores: list[float | None]) -> Series:
    """Scores by epoch; an epoch without one is left out."""
    points = [(epoch, score) for epoch, score in enumerate(scores, row["passes_before"] + 1) if score is not None]
    x, y = map(tuple, zip(*points))
    return Series(MECHANISMS[row["mechanism"]].title, x, y, marks=False)
