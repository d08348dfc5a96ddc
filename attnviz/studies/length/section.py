"""The text of the study of sentence length."""

from attnviz.data.limits import LONGEST
from attnviz.mechanisms import MECHANISMS
from attnviz.studies.length import buckets
from attnviz.studies.measured_models import TEST
from attnviz.studies.tables import grouped, listed, mean, seeds, spread, table

BASELINE = "fixed-context"  # the mechanism without attention
_LIMITS = (
    "Joined texts are several sentences in one. No model saw such texts in training, and a model may stop before the "
    "last sentence, so their BLEU falls for that reason too. The long single captions, although few, and the loss say "
    "more about length alone. Different buckets hold different texts."
)


def text(results: dict) -> str:
    """Method and results in Markdown."""
    if not results["rows"]:
        return seeds([])
    parts = [
        _method(results),
        f"BLEU, 13a lower-cased / tok-lc:\n\n{_scores(results)}",
        _gain(results),
        _losses(results),
        _entropies(results),
        seeds(results["rows"]),
        _LIMITS,
    ]
    return "\n\n".join(part for part in parts if part)


def _method(results: dict) -> str:
    measured = _buckets(results)
    rows = [bucket.of(results["rows"])[0] for bucket in measured]
    counts = [
        f"{bucket.title}: {row['texts']} texts" + (f" from {row['sentences']} captions" if bucket.join else "")
        for bucket, row in zip(measured, rows)
    ]
    of_everyday = " and the everyday test sentences" if any(bucket.test != TEST for bucket in measured) else ""
    return (
        f"The {TEST} captions{of_everyday}, greedy decoding, in buckets by the number of source words "
        f"({'; '.join(counts)}). Captions are short, so longer texts are made by joining consecutive captions with a "
        "space, sources and references alike. A joined text that is longer than its bucket is left out; "
        f"{sum(row['left_out'] for row in rows)} more were left out because the models read at most {LONGEST} pieces."
    )


def _buckets(results: dict) -> list[buckets.Bucket]:
    """The buckets that were measured."""
    return [bucket for bucket in buckets.BUCKETS if bucket.of(results["rows"])]


def _head(results: dict) -> tuple[str, ...]:
    return "", *(bucket.title for bucket in _buckets(results))


def _scores(results: dict) -> str:
    lines = []
    for name, rows in grouped(results["rows"], "mechanism").items():
        cells = (
            " / ".join(spread(bucket.of(rows), key, 1) for key in ("bleu_lc", "bleu_tok_lc"))
            for bucket in _buckets(results)
        )
        lines.append((MECHANISMS[name].title, *cells))
    return table(_head(results), lines)


def _losses(results: dict) -> str:
    longest = [bucket for bucket in buckets.BUCKETS if bucket.drawn][-1]
    lines = []
    for name, rows in grouped(results["rows"], "mechanism").items():
        cells = (spread(bucket.of(rows), "loss") for bucket in _buckets(results))
        lines.append((MECHANISMS[name].title, *cells, spread(longest.of(rows), "length_ratio")))
    return (
        "Loss of the references, nats a token, with forced decoding, so it does not depend on where a model would "
        "stop. Last column: words in the translations for each word in the references, "
        f"{longest.title}.\n\n{table((*_head(results), 'length ratio'), lines)}"
    )


def _gain(results: dict) -> str:
    """The difference in BLEU between each model with attention and the one without, by bucket."""
    groups = grouped(results["rows"], "mechanism")
    if BASELINE not in groups:
        return "The gain over the model without attention is not shown, because that model is missing."
    gains = []
    for name in (name for name in groups if name != BASELINE):
        scores = [
            [mean(bucket.of(groups[each]), "bleu_lc") for each in (name, BASELINE)] for bucket in _buckets(results)
        ]
        differences = ["–" if None in pair else f"{pair[0] - pair[1]:+.1f}" for pair in scores]
        gains.append(f"{MECHANISMS[name].title} {' / '.join(differences)}")
    return f"Gain over the fixed context, BLEU 13a lower-cased, in the same buckets: {listed(gains)}." if gains else ""


def _entropies(results: dict) -> str:
    """The table of entropies and of their least-squares lines."""
    rows, fits = (grouped(results[key], "mechanism") for key in ("rows", "fits"))
    if not fits:
        return ""
    lines = [
        (
            MECHANISMS[name].title,
            *(spread(bucket.of(rows[name]), "entropy_nats") for bucket in _buckets(results)),
            *(spread(group, key) for key in ("slope", "intercept", "explained")),
        )
        for name, group in fits.items()
    ]
    return (
        "Entropy of cross-attention (nats). A text's entropy is the mean over its rows, heads and layers; a bucket's "
        "is the mean over its texts. The least-squares line is entropy of all texts on ln(source pieces, end mark "
        "included). Uniform attention has slope 1 and intercept 0; attention to a constant number of positions has "
        f"slope 0.\n\n{table((*_head(results), 'slope', 'intercept', 'variance explained'), lines)}"
    )
