"""Study: the mechanisms compared on the same test, with the same vocabulary."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from attnviz import alignment, gold
from attnviz.data import corpora
from attnviz.evaluation import TIMED, latency
from attnviz.evaluation.translation import score
from attnviz.mechanisms import MECHANISMS
from attnviz.models import checkpoint_files
from attnviz.studies.measured_models import TEST, MeasuredModel, StudyConfig, link_counts, models, record
from attnviz.studies.report import Panel, Series, grouped, listed, seeds, spread, table, values

TITLE = "Mechanisms compared"
DESCRIPTION = (
    "Mechanisms compared: BLEU on captions and on everyday sentences, alignment error rate, entropy, maximum weight, "
    "time to translate a sentence, training time"
)
COLUMNS = 4
_SCORES = ("bleu", "bleu_lc", "bleu_tok_lc", "chrf", "entropy_nats", "max_weight")
_COLUMNS: dict[str, tuple] = {  # of the table: title -> number, its digits and scale
    "BLEU 13a lc": ("bleu_lc", 1),
    "BLEU tok-lc": ("bleu_tok_lc", 1),
    "chrF": ("chrf", 1),
    "everyday, BLEU 13a lc": ("everyday_bleu_lc", 1),
    "AER": ("error_rate", 2),
    "entropy (nats)": ("entropy_nats", 2),
    "max. weight": ("max_weight", 2),
    "parameters": ("parameters", 0),
    "epochs": ("epochs", 0),
    "training (min)": ("seconds", 0, 1 / 60),
    "peak memory (MB)": ("peak_memory_mb", 0),
    "ms per sentence": ("ms_per_sentence", 1),
}
_PANELS = (
    ("Captions, BLEU tok-lc", "bleu_tok_lc", 1),
    ("Everyday sentences, BLEU 13a lc", "everyday_bleu_lc", 1),
    ("Alignment error rate", "error_rate", 1),
    ("Entropy (nats)", "entropy_nats", 1),
    ("Maximum weight", "max_weight", 1),
    ("Milliseconds per sentence", "ms_per_sentence", 1),
    ("Training, minutes", "seconds", 1 / 60),
)


def measure(config: StudyConfig) -> dict:
    """rows: by model. seconds, epochs : of all runs of its training, from its card. peak_memory_mb : of the last
    run."""
    measured = list(models(config, MECHANISMS))
    pairs = gold.shipped(config.pair)
    return {
        "rows": [measure_model(model, config, pairs) for model in measured],
        "links": link_counts(pairs),
        **record(config, measured, MECHANISMS),
    }


def measure_model(model: MeasuredModel, config: StudyConfig, pairs: Sequence[gold.LinkedPair]) -> dict:
    """The row of a model. pairs : with words aligned by hand."""
    card, scores = model.translator.card, scores_on_test(model, config)
    everyday_scores = scores_on_test(model, config, corpora.EVERYDAY) if corpora.EVERYDAY in config.read.tests else {}
    report = alignment.report(model.translator, pairs)
    return {
        **model.label,
        **{key: scores[key] for key in _SCORES},
        "everyday_bleu_lc": everyday_scores.get("bleu_lc"),
        "error_rate": report and report["best_head"]["error_rate"],
        "parameters": sum(p.numel() for p in model.translator.model.parameters()),
        **{key: _total(card, key) for key in ("epochs", "seconds")},
        "peak_memory_mb": card.get("peak_memory_mb"),
        "device": card.get("device"),
        "ms_per_sentence": latency(model.translator, [source for source, _ in config.read.val[:TIMED]]),
        "remark": card.get("remark"),
    }


def _total(card: dict, key: str) -> float | None:
    """The sum over all runs of the training; None when the card lacks it for one of them."""
    numbers: list[Any] = [run.get(key) for run in checkpoint_files.runs(card)]
    return sum(numbers) if all(isinstance(number, int | float) for number in numbers) else None


def scores_on_test(model: MeasuredModel, config: StudyConfig, test: str = TEST) -> dict:
    """Greedy scores on a test: from the card when it has all of them for the same files, otherwise measured now."""
    card, files = model.translator.card, {name: sha for name, sha in config.read.files.items() if test in name}
    scores = card.get("scores", {}).get(test, {})
    same = files.items() <= card.get("data", {}).items()
    if same and all(key in scores for key in _SCORES):
        return scores
    sources, references = zip(*config.read.tests[test])
    return score(model.translator, sources, references, progress=True)


def text(results: dict) -> str:
    """Method and results in Markdown."""
    groups = grouped(results["rows"], "mechanism")
    lines = [(MECHANISMS[name].title, *_cells(rows)) for name, rows in groups.items()]
    parts = [
        _method(results["links"]),
        table(("", *_COLUMNS), lines) if lines else "",
        seeds(results["rows"]),
        _limits(results["rows"]),
    ]
    return "\n\n".join(part for part in parts if part)


def _method(links: dict) -> str:
    return (
        f"Greedy translations of the {TEST} captions, scored with sacreBLEU (13a, lower-cased), BLEU on Moses words "
        "(tok-lc, as papers on Multi30K report it) and chrF; beside them the everyday test sentences (13a, "
        "lower-cased). Entropy and maximum weight are means over all cross-attention rows, heads and layers of the "
        "translations of the captions; for several heads this is the mean of each head's mean. AER: alignment error "
        f"rate on {links['pairs']} sentence pairs with {links['sure']} sure links "
        "set by hand, with forced decoding, each target word aligned to the source word it attends to most; of several "
        "heads the best one, chosen on other sentences. The diagonal, which uses no attention, has "
        f"{links['diagonal']:.2f}. Milliseconds: median of {TIMED} validation captions, one at a time, attention "
        "weights kept, all models in this one run. Scores come from the cards, or are measured now when a card lacks "
        "them. Alignment is measured now. Epochs and training time come from the cards and cover all runs of the "
        "training; peak memory is that of the last run."
    )


def _cells(rows: list[dict]) -> list[str]:
    return [
        spread(rows[:1] if key in ("parameters", "epochs") else rows, key, *form) for key, *form in _COLUMNS.values()
    ]


def _limits(rows: list[dict]) -> str:
    """Differences in training that limit the comparison of rows, from the cards."""
    if not rows:
        return ""
    devices, epochs = ({row[key] for row in rows if row[key]} for key in ("device", "epochs"))
    machines = listed(sorted(devices)) or "unknown"
    sentences = [f"Training times and memory depend on the machine: {machines}."]
    if len(epochs) > 1:
        numbers = listed([str(count) for count in sorted(epochs)])
        sentences.append(
            f"The models were trained for {numbers} epochs, so rows compare these models, not mechanisms with equal "
            "training."
        )
    remarks = [f"{MECHANISMS[row['mechanism']].title}: {row['remark']}" for row in rows if row["remark"]]
    return " ".join([*sentences, *(["From the cards:"] if remarks else []), *remarks])


def panels(results: dict) -> list[Panel]:
    """A panel for each number that some model has, with a row for each mechanism."""
    groups = grouped(results["rows"], "mechanism")
    names = tuple(MECHANISMS[name].title for name in groups)
    result = []
    for title, key, scale in _PANELS:
        series = []
        for place, rows in enumerate(groups.values()):
            if numbers := values(rows, key):
                low, high = ((scale * end(numbers),) if len(numbers) > 1 else () for end in (min, max))
                middle = scale * fmean(numbers)
                series.append(Series(names[place], (middle,), (place,), low, high, line=False))
        result += [Panel(title, tuple(series), rows=names)] if series else []
    return result
