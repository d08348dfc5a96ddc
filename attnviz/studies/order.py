"""Study: does it matter when a decoder looks? Bahdanau's order and Luong's with the same score."""

import numpy as np

from attnviz import alignment, gold
from attnviz.alignment import SHIFTS, Counts
from attnviz.mechanisms import MECHANISMS
from attnviz.studies.pictures import Panel, Series
from attnviz.studies.setting import Model, Setting, links, models, provenance
from attnviz.studies.tables import grouped, listed, mean, seeds, spread, table, titles, values

TITLE = "Order of attending"
DESCRIPTION = (
    "Alignment error rate of Bahdanau's and Luong's order, with rows as they are and shifted by one step either way"
)
COLUMNS = 1
ORDERS = ("bahdanau", "luong-concat")
SAMPLES = 1000  # of the pairs, with replacement


def measure(setting: Setting) -> dict:
    """rows: a model and shift each. differences: seeds that both have, and shifts: Bahdanau's error less Luong's. low, high :
    between them are 95 % of the error rates of `SAMPLES` samples of the pairs, the same samples for all."""
    measured, pairs, rows, sampled = list(models(setting, ORDERS)), gold.shipped(setting.pair), [], {}
    for model in measured:
        for shift, counts in counted(model, pairs).items():
            rates = resampled(counts)
            total = sum(counts[1:], counts[0])
            rows.append({**model.label, "shift": shift, **total.to_dict(), **interval(rates)})
            sampled[model.mechanism, model.seed, shift] = total.error_rate, rates
    differences = []
    for (mechanism, seed, shift), (rate, rates) in sampled.items():
        if mechanism == ORDERS[0] and (other := sampled.get((ORDERS[1], seed, shift))):
            differences.append(
                {"seed": seed, "shift": shift, "difference": round(rate - other[0], 4), **interval(rates - other[1])}
            )
    return {
        "rows": rows,
        "differences": differences,
        "samples": SAMPLES,
        "links": links(pairs),
        **provenance(setting, measured, ORDERS),
    }


def counted(model: Model, pairs) -> dict[int, list[Counts]]:
    """Counts of each pair at each shift, for the one head of a model; the target is forced."""
    traces = [model.translator.trace(pair.source, pair.target) for pair in pairs]
    return {
        shift: [
            alignment.count(alignment.argmax(alignment.on_words(trace, pair, shift)[0, 0]), pair)
            for trace, pair in zip(traces, pairs)
        ]
        for shift in SHIFTS
    }


def resampled(counts: list[Counts]) -> np.ndarray:
    """Error rates of `SAMPLES` samples of the pairs, as many with replacement as there are; the same ones every time."""
    chosen = np.random.default_rng(0).integers(len(counts), size=(SAMPLES, len(counts)))
    numbers = np.array([(c.predicted, c.sure, c.predicted_sure, c.predicted_possible) for c in counts])
    predicted, sure, predicted_sure, predicted_possible = numbers[chosen].sum(1).T
    return 1 - (predicted_sure + predicted_possible) / (predicted + sure)


def interval(rates: np.ndarray) -> dict:
    low, high = np.percentile(rates, (2.5, 97.5))
    return {"low": round(float(low), 4), "high": round(float(high), 4)}


def text(found: dict) -> str:
    lines = [
        (
            MECHANISMS[name].title,
            _said(shift),
            spread(rows, "error_rate", 3),
            _between(rows),
            spread(rows, "precision", 3),
            spread(rows, "recall", 3),
        )
        for (name, shift), rows in grouped(found["rows"], "mechanism", "shift").items()
    ]
    head = ("", "rows", "error rate", f"95 % of {found['samples']:,} samples of the pairs", "precision", "recall")
    limits = (
        "The order is not all that differs: Luong's decoder also feeds its attentional vector into the next step and reads its "
        "output from that vector alone, and was trained by itself."
    )
    parts = [
        _method(found["links"]),
        table(head, lines) if lines else "",
        _best(found),
        _apart(found),
        seeds(found["rows"]),
        limits,
    ]
    return "\n\n".join(part for part in parts if part)


def _method(links: dict) -> str:
    return (
        "Bahdanau's decoder looks first, with the state before the step, which has not seen the last token produced; Luong's "
        "steps first, and looks with the new state, which has. Both ask with the same score here, v · tanh(W [s; h]) "
        f"({titles(ORDERS)}). Alignment error rate on {links['pairs']} pairs with {links['sure']} sure links set by hand, the "
        "target forced, each target word linked to the source word it looks at most. A shift of +1 reads a word's links from "
        "the row one step later than the one that produced it, −1 from the row one step earlier: attention that runs behind or "
        f"ahead has its least error there. The diagonal, which looks at nothing, has {links['diagonal']:.3f}."
    )


def _said(shift: int) -> str:
    return "as they are" if not shift else f"{shift:+d} step".replace("-", "−")


def _between(rows: list[dict]) -> str:
    """The interval of a model; over seeds from the lowest end to the highest."""
    return f"{min(row['low'] for row in rows):.3f} to {max(row['high'] for row in rows):.3f}"


def _best(found: dict) -> str:
    """Where each order has its least error."""
    said = []
    for name, rows in grouped(found["rows"], "mechanism").items():
        rates = {shift: mean(group, "error_rate") for shift, group in grouped(rows, "shift").items()}
        shift = min(rates, key=rates.get)
        said.append(
            f"{MECHANISMS[name].title} has its least error with rows {_said(shift) if not shift else 'shifted by ' + _said(shift)} "
            f"({rates[shift]:.3f})"
        )
    return f"{'; '.join(said)}." if said else ""


def _apart(found: dict) -> str:
    """Bahdanau's error less Luong's with rows as they are, for each seed."""
    said = [
        f"{row['difference']:+.3f} ({row['low']:+.3f} to {row['high']:+.3f} in 95 % of the samples)"
        for row in found["differences"]
        if row["shift"] == 0
    ]
    return f"Bahdanau's error less Luong's, rows as they are: {listed(said)}." if said else ""


def panels(found: dict) -> list[Panel]:
    series = []
    for aside, (name, rows) in zip(
        (-0.04, 0.04), grouped(found["rows"], "mechanism").items()
    ):  # so that no bar hides another
        groups = grouped(rows, "shift")
        several = any(len(values(group, "error_rate")) > 1 for group in groups.values())
        low = tuple(min(values(group, "error_rate" if several else "low")) for group in groups.values())
        high = tuple(max(values(group, "error_rate" if several else "high")) for group in groups.values())
        x = tuple(shift + aside for shift in groups)
        series.append(
            Series(titles([name]), x, tuple(mean(group, "error_rate") for group in groups.values()), low, high)
        )
    diagonal = ("diagonal", (SHIFTS[0], SHIFTS[-1]), (found["links"]["diagonal"],) * 2)
    bars = "seeds" if len({row["seed"] for row in found["rows"]}) > 1 else "95 % of samples"
    return (
        [
            Panel(
                "Alignment error rate",
                tuple(series),
                "rows shifted by (steps)",
                f"error rate (bars: {bars})",
                ticks=SHIFTS,
                reference=diagonal,
            )
        ]
        if series
        else []
    )
