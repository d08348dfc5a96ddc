"""Study: attention before or after the decoder step, Bahdanau's order and Luong's, with the same score function."""

from typing import Any

import numpy as np

from attnviz import alignment, gold
from attnviz.alignment import SHIFTS, Counts
from attnviz.mechanisms import MECHANISMS
from attnviz.studies.measured_models import MeasuredModel, StudyConfig, link_counts, models, record
from attnviz.studies.report import Panel, Series, grouped, listed, mean, seeds, spread, table, titles, values

TITLE = "Attention before or after the decoder step"
DESCRIPTION = (
    "Alignment error rate of Bahdanau's and Luong's order, with rows as they are and shifted by one step either way"
)
COLUMNS = 1
ORDERS = ("bahdanau", "luong-concat")
SAMPLES = 1000  # of the pairs, with replacement


def measure(config: StudyConfig) -> dict:
    """rows: by model and shift. differences: Bahdanau's error rate minus Luong's, by shift, for seeds that both have.

    low, high : the 95 % bootstrap interval over `SAMPLES` samples of the pairs, the same samples for all.
    """
    measured, pairs, rows, bootstrap = list(models(config, ORDERS)), gold.shipped(config.pair), [], {}
    for model in measured:
        for shift, counts in alignment_counts(model, pairs).items():
            rates = resampled(counts)
            total = sum(counts[1:], counts[0])
            rows.append({**model.label, "shift": shift, **total.to_dict(), **interval(rates)})
            bootstrap[model.mechanism, model.seed, shift] = total.error_rate, rates
    return {
        "rows": rows,
        "differences": _differences(bootstrap),
        "samples": SAMPLES,
        "links": link_counts(pairs),
        **record(config, measured, ORDERS),
    }


def _differences(bootstrap: dict) -> list[dict]:
    """bootstrap : (mechanism, seed, shift) -> error rate, and error rates of the samples."""
    differences = []
    for (mechanism, seed, shift), (rate, rates) in bootstrap.items():
        if mechanism == ORDERS[0] and (other := bootstrap.get((ORDERS[1], seed, shift))):
            difference = {"difference": round(rate - other[0], 4), **interval(rates - other[1])}
            differences.append({"seed": seed, "shift": shift, **difference})
    return differences


def alignment_counts(model: MeasuredModel, pairs) -> dict[int, list[Counts]]:
    """Alignment counts of each pair at each shift, for the one head of a model, with forced decoding."""
    traces = [model.translator.trace(pair.source, pair.target) for pair in pairs]
    return {
        shift: [
            alignment.count(alignment.argmax(alignment.on_words(trace, pair, shift)[0, 0]), pair)
            for trace, pair in zip(traces, pairs)
        ]
        for shift in SHIFTS
    }


def resampled(counts: list[Counts]) -> np.ndarray:
    """Error rates of `SAMPLES` bootstrap samples of the pairs, the same samples every time."""
    chosen = np.random.default_rng(0).integers(len(counts), size=(SAMPLES, len(counts)))
    numbers = np.array([(c.predicted, c.sure, c.predicted_sure, c.predicted_possible) for c in counts])
    predicted, sure, predicted_sure, predicted_possible = numbers[chosen].sum(1).T
    return 1 - (predicted_sure + predicted_possible) / (predicted + sure)


def interval(rates: np.ndarray) -> dict:
    """The 2.5th and the 97.5th percentile."""
    low, high = np.percentile(rates, (2.5, 97.5))
    return {"low": round(float(low), 4), "high": round(float(high), 4)}


def text(results: dict) -> str:
    """Method and results in Markdown."""
    lines = [
        (
            MECHANISMS[name].title,
            _shift_label(shift),
            spread(rows, "error_rate", 3),
            # of several seeds from the lowest to the highest end
            f"{min(row['low'] for row in rows):.3f} to {max(row['high'] for row in rows):.3f}",
            spread(rows, "precision", 3),
            spread(rows, "recall", 3),
        )
        for (name, shift), rows in grouped(results["rows"], "mechanism", "shift").items()
    ]
    head = (
        "",
        "rows",
        "error rate",
        f"95 % interval, {results['samples']:,} samples of the pairs",
        "precision",
        "recall",
    )
    limits = (
        "The models differ in more than the order: Luong's decoder also feeds its attentional vector into the next "
        "step and predicts from that vector alone. Each was trained separately."
    )
    parts = [
        _method(results["links"]),
        table(head, lines) if lines else "",
        _best_shifts(results),
        _difference(results),
        seeds(results["rows"]),
        limits,
    ]
    return "\n\n".join(part for part in parts if part)


def _method(links: dict) -> str:
    return (
        "Bahdanau's decoder attends first, with the state before the step, which has not seen the last token. Luong's "
        "decoder steps first and attends with the new state, which has seen it. Both use the same score here, v · "
        f"tanh(W [s; h]) ({titles(ORDERS)}). Alignment error rate on {links['pairs']} sentence pairs with "
        f"{links['sure']} sure links set by hand, with forced decoding, each target word aligned to the source word it "
        "attends to most. A shift of +1 takes a word's attention from the row one step later, −1 from the row one step "
        "earlier: attention that is late or early has its smallest error there. The diagonal, which uses no attention, "
        f"has {links['diagonal']:.3f}."
    )


def _shift_label(shift: int) -> str:
    return "not shifted" if not shift else f"{shift:+d} step".replace("-", "−")


def _best_shifts(results: dict) -> str:
    """The shift at which each order has its smallest error."""
    sentences = []
    for name, rows in grouped(results["rows"], "mechanism").items():
        rates: dict[int, Any] = {shift: mean(group, "error_rate") for shift, group in grouped(rows, "shift").items()}
        shift = min(rates, key=rates.__getitem__)
        rows_at = f"rows {'shifted by ' if shift else ''}{_shift_label(shift)}"
        sentences.append(f"{MECHANISMS[name].title} has its smallest error with {rows_at} ({rates[shift]:.3f})")
    return f"{'; '.join(sentences)}." if sentences else ""


def _difference(results: dict) -> str:
    """Bahdanau's error minus Luong's, rows not shifted, for each seed."""
    differences = [
        f"{row['difference']:+.3f} ({row['low']:+.3f} to {row['high']:+.3f} in 95 % of the samples)"
        for row in results["differences"]
        if row["shift"] == 0
    ]
    return f"Bahdanau's error minus Luong's, rows not shifted: {listed(differences)}." if differences else ""


def panels(results: dict) -> list[Panel]:
    """Error rate by shift, with the diagonal as reference."""
    series = []
    offsets = (-0.04, 0.04)  # so that bars do not overlap
    for offset, (name, rows) in zip(offsets, grouped(results["rows"], "mechanism").items()):
        groups = grouped(rows, "shift")
        several = any(len(values(group, "error_rate")) > 1 for group in groups.values())
        low = tuple(min(values(group, "error_rate" if several else "low")) for group in groups.values())
        high = tuple(max(values(group, "error_rate" if several else "high")) for group in groups.values())
        x = tuple(shift + offset for shift in groups)
        y = tuple(mean(group, "error_rate") for group in groups.values())
        series.append(Series(titles([name]), x, y, low, high))
    if not series:
        return []
    diagonal = ("diagonal", (SHIFTS[0], SHIFTS[-1]), (results["links"]["diagonal"],) * 2)
    bars = "seeds" if len({row["seed"] for row in results["rows"]}) > 1 else "95 % of samples"
    axes = ("rows shifted by (steps)", f"error rate (bars: {bars})")
    return [Panel("Alignment error rate", tuple(series), *axes, ticks=SHIFTS, reference=diagonal)]
