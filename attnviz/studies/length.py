"""Study: how translations and attention change with the length of a sentence, with and without attention.

The texts are single sentences, captions and everyday language, and consecutive captions joined.
"""

import math
import statistics
from dataclasses import dataclass

import numpy as np

from attnviz.data import MOST_PIECES, corpora
from attnviz.data.readers import Pairs
from attnviz.data.tokenizer import SubwordTokenizer
from attnviz.evaluation import metrics, translation
from attnviz.evaluation.translation import EntropyBySentence
from attnviz.mechanisms import MECHANISMS
from attnviz.studies.measured_models import TEST, MeasuredModel, StudyConfig, models, record
from attnviz.studies.report import Panel, Series, grouped, listed, mean, seeds, spread, table, titles, values
from attnviz.training.validation import mean_loss

TITLE = "Sentence length"
DESCRIPTION = (
    "BLEU and loss against the length of the source for each mechanism, and entropy against the logarithm of length"
)
COLUMNS = 3
BATCH = 32  # texts whose loss is computed at once
BASELINE = "fixed-context"  # the mechanism without attention
_LIMITS = (
    "Joined texts are several sentences in one. No model saw such texts in training, and a model may stop before the "
    "last sentence, so their BLEU falls for that reason too. The long single captions, although few, and the loss say "
    "more about length alone. Different buckets hold different texts."
)
_QUALITY = (
    ("BLEU by length", "bleu_lc", "BLEU, 13a lower-cased"),
    ("Loss of the reference by length", "loss", "nats a token"),
)


@dataclass(frozen=True)
class Bucket:
    """Sources of `low` to `high` words. join : are texts made of consecutive sentences? test : the test that they are
    from.

    in_picture : are they part of the picture?
    """

    low: int
    high: int
    join: bool
    test: str = TEST
    in_picture: bool = True

    @property
    def key(self) -> dict:
        """The entries by which a row of numbers names its bucket."""
        return {"low": self.low, "high": self.high, "joined": self.join, "test": self.test}

    @property
    def title(self) -> str:
        return (
            f"{'everyday, ' if self.test == corpora.EVERYDAY else ''}{self.low}–{self.high} words"
            f"{', joined' if self.join else ''}"
        )

    def rows_of(self, rows: list[dict]) -> list[dict]:
        """The rows of this bucket."""
        return [row for row in rows if self.key.items() <= row.items()]


# The second bucket separates the effect of joining from the effect of length. Everyday sentences are not drawn: they
# are of another kind than captions, so no line leads from one to the other.
BUCKETS = (
    Bucket(5, 10, False),
    Bucket(20, 30, False, in_picture=False),
    Bucket(20, 30, True),
    Bucket(50, 100, True),
    Bucket(4, 9, False, corpora.EVERYDAY, in_picture=False),
    Bucket(12, 20, False, corpora.EVERYDAY, in_picture=False),
)


@dataclass(frozen=True)
class BucketTexts:
    """The texts of a bucket. sentences : the number of sentences in them. left_out : number of texts too long for the
    models."""

    bucket: Bucket
    pairs: Pairs
    sentences: int
    left_out: int


def single(pairs: Pairs, low: int, high: int) -> list[Pairs]:
    """The pairs whose source has `low` to `high` words, each as a group of one."""
    return [[pair] for pair in pairs if low <= len(pair[0].split()) <= high]


def joined(pairs: Pairs, low: int, high: int) -> list[Pairs]:
    """Groups of consecutive pairs whose sources have at least `low` words; groups with more than `high` are left
    out."""
    groups: list[Pairs] = []
    group: Pairs = []
    words = 0
    for pair in pairs:
        group, words = [*group, pair], words + len(pair[0].split())
        if words >= low:
            groups += [group] if words <= high else []
            group, words = [], 0
    return groups


def bucket_texts(tests: dict[str, Pairs], tokenizer: SubwordTokenizer) -> list[BucketTexts]:
    """The texts of each bucket that are short enough for the models; buckets of a missing test are left out."""
    result = []
    for bucket in (bucket for bucket in BUCKETS if bucket.test in tests):
        groups = (joined if bucket.join else single)(tests[bucket.test], bucket.low, bucket.high)
        made = [(" ".join(a for a, _ in group), " ".join(b for _, b in group)) for group in groups]
        short = [i for i, (source, _) in enumerate(made) if len(tokenizer.ids(source)) <= MOST_PIECES]
        sentences = sum(len(groups[i]) for i in short)
        result.append(BucketTexts(bucket, [made[i] for i in short], sentences, len(made) - len(short)))
    return result


def measure(config: StudyConfig) -> dict:
    """rows: by model and bucket. fits: by model. points: by model and number of source pieces. signatures: of the
    scores."""
    measured, rows, fits, points, signatures = [], [], [], [], {}
    for model in models(config, MECHANISMS):
        measured.append(model)
        sentences = []
        for texts in bucket_texts(config.read.tests, model.translator.tokenizer):
            row, entropies = measure_bucket(model, texts)
            signatures |= {key: row.pop(key) for key in list(row) if key.endswith("_signature")}  # the same in all rows
            rows.append(row)
            sentences += entropies
        if sentences:
            points += [{**model.label, **point} for point in by_pieces(sentences)]
            fits.append({**model.label, **fit(sentences)})
    results = {"rows": rows, "fits": fits, "points": points, "signatures": signatures}
    return results | record(config, measured, MECHANISMS)


def measure_bucket(model: MeasuredModel, texts: BucketTexts) -> tuple[dict, list[tuple[int, float]]]:
    """The row of a model and a bucket, and the pieces and entropy of each text (see `EntropyBySentence`).

    loss : nats a token of the reference, with forced decoding. length_ratio : words of the translations, divided by
    those of the references.
    """
    row = {
        **model.label,
        **texts.bucket.key,
        "texts": len(texts.pairs),
        "sentences": texts.sentences,
        "left_out": texts.left_out,
    }
    if not texts.pairs:
        return row, []
    translator, (sources, references) = model.translator, zip(*texts.pairs)
    hypotheses, attention = translation.translations(translator, sources, progress=True, also=(EntropyBySentence,))
    source_words, words, reference_words = (_words(list(side)) for side in (sources, hypotheses, references))
    row |= {
        "words": round(source_words / len(sources), 2),
        **metrics.score(translator.pair, hypotheses, references),
        "length_ratio": round(words / reference_words, 4),
        "loss": round(mean_loss(translator.model, translator.tokenizer, texts.pairs, "cpu", BATCH), 4),
    }
    sentences = attention["by_sentence"] or []
    if sentences:
        pieces, entropies = zip(*sentences)
        row["pieces"] = round(statistics.geometric_mean(pieces), 2)
        row["entropy_nats"] = round(statistics.fmean(entropies), 4)
    return row, sentences


def _words(texts: list[str]) -> int:
    return sum(len(text.split()) for text in texts)


def by_pieces(sentences: list[tuple[int, float]]) -> list[dict]:
    """(pieces, entropy) of sentences -> the mean entropy of sentences with the same number of pieces, shortest
    first."""
    groups: dict[int, list[float]] = {}
    for pieces, entropy in sorted(sentences):
        groups.setdefault(pieces, []).append(entropy)
    return [
        {"pieces": pieces, "sentences": len(entropies), "entropy_nats": round(statistics.fmean(entropies), 4)}
        for pieces, entropies in groups.items()
    ]


def fit(sentences: list[tuple[int, float]]) -> dict:
    """Least squares of entropy (nats) on ln(pieces): slope, intercept, and the share of the variance that is explained.

    All three are None for sentences of a single length. Uniform attention has slope 1 and intercept 0.
    """
    pieces, entropy = np.array(sentences, dtype=float).T
    size = {"sentences": len(sentences), "from": int(pieces.min()), "to": int(pieces.max())}
    if len(set(pieces)) < 2:
        return {**size, "slope": None, "intercept": None, "explained": None}
    slope, intercept = np.polyfit(np.log(pieces), entropy, 1)
    residual, centred = entropy - intercept - slope * np.log(pieces), entropy - entropy.mean()
    explained = float(1 - (residual @ residual) / (centred @ centred)) if centred.any() else None
    return {**size, "slope": float(slope), "intercept": float(intercept), "explained": explained}


def panels(results: dict) -> list[Panel]:
    """BLEU and loss by length, and entropy by the logarithm of length where there is attention."""
    groups = grouped(results["rows"], "mechanism")
    if not groups:
        return []
    widest = max(values(results["rows"], "words"), default=0)
    ticks = tuple(tick for tick in range(10, 101, 10) if tick <= widest + 5)
    quality = []
    for title, key, unit in _QUALITY:
        series = tuple(_points(name, rows, "words", key) for name, rows in groups.items())
        quality.append(Panel(title, series, "words of the source (mean of the bucket)", unit, ticks=ticks))
    return [*quality, _entropy_panel(results, groups)] if results["fits"] else quality


def _entropy_panel(results: dict, groups: dict) -> Panel:
    """Entropy by bucket, the least-squares lines, and the entropy of uniform attention."""
    fits = grouped(results["fits"], "mechanism")
    series = [_points(name, groups[name], "pieces", "entropy_nats", line=False) for name in fits]
    ends = min(row["from"] for row in results["fits"]), max(row["to"] for row in results["fits"])
    for name, group in fits.items():
        slope, intercept = mean(group, "slope"), mean(group, "intercept")
        if slope is not None and intercept is not None:
            y = tuple(intercept + slope * math.log(x) for x in ends)
            series.append(Series(titles([name]), ends, y, marks=False))
    return Panel(
        "Entropy by log-length",
        tuple(series),
        "pieces of the source (log scale)",
        "entropy (nats)",
        ticks=(5, 10, 20, 50, 100, 200),
        log=True,
        reference=("uniform attention, ln(pieces)", ends, tuple(map(math.log, ends))),
    )


def _points(mechanism: str, rows: list[dict], x: str, y: str, line: bool = True) -> Series:
    """A point for each bucket in the picture: the mean over seeds, with a bar from the smallest to the largest
    value."""
    cells = [bucket.rows_of(rows) for bucket in BUCKETS if bucket.in_picture]
    cells = [cell for cell in cells if values(cell, x) and values(cell, y)]
    several = any(len(values(cell, y)) > 1 for cell in cells)
    low, high = (tuple(end(values(cell, y)) for cell in cells) if several else () for end in (min, max))
    across, up = (tuple(mean(cell, key) for cell in cells) for key in (x, y))
    return Series(titles([mechanism]), across, up, low, high, line=line)


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
    rows = [bucket.rows_of(results["rows"])[0] for bucket in measured]
    counts = [
        f"{bucket.title}: {row['texts']} texts" + (f" from {row['sentences']} captions" if bucket.join else "")
        for bucket, row in zip(measured, rows)
    ]
    of_everyday = " and the everyday test sentences" if any(bucket.test != TEST for bucket in measured) else ""
    return (
        f"The {TEST} captions{of_everyday}, greedy decoding, in buckets by the number of source words "
        f"({'; '.join(counts)}). Captions are short, so longer texts are made by joining consecutive captions with a "
        "space, sources and references alike. A joined text that is longer than its bucket is left out; "
        f"{sum(row['left_out'] for row in rows)} more were left out because the models read at most {MOST_PIECES} "
        "pieces."
    )


def _buckets(results: dict) -> list[Bucket]:
    """The buckets that were measured."""
    return [bucket for bucket in BUCKETS if bucket.rows_of(results["rows"])]


def _head(results: dict) -> tuple[str, ...]:
    return "", *(bucket.title for bucket in _buckets(results))


def _scores(results: dict) -> str:
    lines = []
    for name, rows in grouped(results["rows"], "mechanism").items():
        cells = (
            " / ".join(spread(bucket.rows_of(rows), key, 1) for key in ("bleu_lc", "bleu_tok_lc"))
            for bucket in _buckets(results)
        )
        lines.append((MECHANISMS[name].title, *cells))
    return table(_head(results), lines)


def _losses(results: dict) -> str:
    longest = [bucket for bucket in BUCKETS if bucket.in_picture][-1]
    lines = []
    for name, rows in grouped(results["rows"], "mechanism").items():
        cells = (spread(bucket.rows_of(rows), "loss") for bucket in _buckets(results))
        lines.append((MECHANISMS[name].title, *cells, spread(longest.rows_of(rows), "length_ratio")))
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
            [mean(bucket.rows_of(groups[mechanism]), "bleu_lc") for mechanism in (name, BASELINE)]
            for bucket in _buckets(results)
        ]
        differences = ["–" if a is None or b is None else f"{a - b:+.1f}" for a, b in scores]
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
            *(spread(bucket.rows_of(rows[name]), "entropy_nats") for bucket in _buckets(results)),
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
