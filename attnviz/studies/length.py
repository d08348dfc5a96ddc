"""Study: what the length of a sentence does to translations and to attention; with and without attention."""

import math
import statistics
from dataclasses import dataclass

import numpy as np

from attnviz.data.readers import Pairs
from attnviz.data.limits import LONGEST
from attnviz.data.tokenizer import Text
from attnviz.evaluation import metrics, translation
from attnviz.evaluation.attention_metrics import BySentence
from attnviz.mechanisms import MECHANISMS
from attnviz.studies.pictures import Panel, Series
from attnviz.studies.setting import TEST, Model, Setting, models, provenance
from attnviz.studies.tables import grouped, listed, mean, seeds, spread, table, titles, values
from attnviz.training import train

TITLE = "Sentence length"
DESCRIPTION = (
    "BLEU and loss against the length of the source for each mechanism, and entropy against the logarithm of length"
)
COLUMNS = 3
NONE = "fixed-context"  # the mechanism without attention
BATCH = 32  # texts whose loss is computed at once


@dataclass(frozen=True)
class Bucket:
    """Texts of `low` to `high` words: captions as they are, or joined. drawn : is it in the picture?"""

    low: int
    high: int
    join: bool
    drawn: bool = True

    @property
    def key(self) -> dict:
        """What rows of figures say of it."""
        return {"low": self.low, "high": self.high, "joined": self.join}

    @property
    def title(self) -> str:
        return f"{self.low}–{self.high} words{', joined' if self.join else ''}"

    def of(self, rows: list[dict]) -> list[dict]:
        """Those rows that are of this bucket."""
        return [row for row in rows if self.key.items() <= row.items()]


_LIMITS = (
    "The joined texts are several sentences in one, which no model saw in training, and a model may stop before the last of them: their "
    "BLEU falls for that reason too. The captions that are long by themselves, few as they are, and the loss tell more of length "
    "alone. Texts of different buckets are different texts."
)
# The second is there to tell what joining does from what length does.
BUCKETS = (Bucket(5, 10, False), Bucket(20, 30, False, drawn=False), Bucket(20, 30, True), Bucket(50, 100, True))


@dataclass(frozen=True)
class Texts:
    """The texts of a bucket, of how many captions they are made, and how many more the models could not read."""

    bucket: Bucket
    pairs: Pairs
    captions: int
    left_out: int


def single(pairs: Pairs, low: int, high: int) -> list[Pairs]:
    """The pairs whose source has `low` to `high` words, each by itself."""
    return [[pair] for pair in pairs if low <= len(pair[0].split()) <= high]


def joined(pairs: Pairs, low: int, high: int) -> list[Pairs]:
    """Consecutive pairs together, until their sources have `low` words; those that then have more than `high` are left out."""
    found, parts, words = [], [], 0
    for pair in pairs:
        parts, words = [*parts, pair], words + len(pair[0].split())
        if words >= low:
            found += [parts] if words <= high else []
            parts, words = [], 0
    return found


def texts(pairs: Pairs, text: Text) -> list[Texts]:
    """For every bucket its texts that have no more pieces than the models read."""
    result = []
    for bucket in BUCKETS:
        groups = (joined if bucket.join else single)(pairs, bucket.low, bucket.high)
        made = [tuple(" ".join(side) for side in zip(*group)) for group in groups]
        fit = [i for i, (source, _) in enumerate(made) if len(text.ids(source)) <= LONGEST]
        captions = sum(len(groups[i]) for i in fit)
        result.append(Texts(bucket, [made[i] for i in fit], captions, len(made) - len(fit)))
    return result


def measure(setting: Setting) -> dict:
    """rows: a model and bucket each. fits: a model each. points: a model and number of source pieces each. signatures: of scores."""
    measured, rows, fits, points, signatures = [], [], [], [], {}
    for model in models(setting, MECHANISMS):
        measured.append(model)
        sentences = []
        for found in texts(setting.test, model.translator.text):
            row, entropies = _row(model, found)
            signatures |= {
                key: row.pop(key) for key in list(row) if key.endswith("_signature")
            }  # the same for all rows
            rows.append(row)
            sentences += entropies
        if sentences:
            points += [{**model.label, **point} for point in by_pieces(sentences)]
            fits.append({**model.label, **fit(sentences)})
    return {
        "rows": rows,
        "fits": fits,
        "points": points,
        "signatures": signatures,
        **provenance(setting, measured, MECHANISMS),
    }


def _row(model: Model, texts: Texts) -> tuple[dict, list[tuple[int, float]]]:
    """The figures of a model on a bucket, and of each text its pieces and entropy (see `BySentence`).

    loss : nats a token of the reference, which the model is made to produce. length_ratio : words produced for each of it.
    """
    row = {
        **model.label,
        **texts.bucket.key,
        "sentences": len(texts.pairs),
        "captions": texts.captions,
        "left_out": texts.left_out,
    }
    if not texts.pairs:
        return row, []
    translator, (sources, references) = model.translator, zip(*texts.pairs)
    found, beside = translation.translations(translator, sources, progress=True, also=(BySentence,))
    words, produced, wanted = (sum(len(text.split()) for text in side) for side in (sources, found, references))
    scores = metrics.score(translator.pair, found, references)
    loss = train.loss(translator.model, translator.text, texts.pairs, "cpu", BATCH)
    row |= {
        "words": round(words / len(sources), 2),
        **scores,
        "length_ratio": round(produced / wanted, 4),
        "loss": round(loss, 4),
    }
    sentences = beside["by_sentence"] or []
    if sentences:
        pieces, entropies = zip(*sentences)
        row |= {
            "pieces": round(statistics.geometric_mean(pieces), 2),
            "entropy_nats": round(statistics.fmean(entropies), 4),
        }
    return row, sentences


def by_pieces(sentences: list[tuple[int, float]]) -> list[dict]:
    """(pieces, entropy) of sentences -> the mean entropy of those with as many pieces, shortest first."""
    groups: dict[int, list[float]] = {}
    for pieces, entropy in sorted(sentences):
        groups.setdefault(pieces, []).append(entropy)
    return [
        {"pieces": pieces, "sentences": len(found), "entropy_nats": round(statistics.fmean(found), 4)}
        for pieces, found in groups.items()
    ]


def fit(sentences: list[tuple[int, float]]) -> dict:
    """Least squares of entropy (nats) on ln(pieces): slope, intercept and the share of the variance it explains.

    None for all three when the sentences have fewer than two lengths. Uniform attention has slope 1, intercept 0.
    """
    pieces, entropy = np.array(sentences, dtype=float).T
    size = {"sentences": len(sentences), "from": int(pieces.min()), "to": int(pieces.max())}
    if len(set(pieces)) < 2:
        return {**size, "slope": None, "intercept": None, "explained": None}
    slope, intercept = np.polyfit(np.log(pieces), entropy, 1)
    left, whole = entropy - intercept - slope * np.log(pieces), entropy - entropy.mean()
    explained = float(1 - (left @ left) / (whole @ whole)) if whole.any() else None
    return {**size, "slope": float(slope), "intercept": float(intercept), "explained": explained}


def text(found: dict) -> str:
    groups = grouped(found["rows"], "mechanism")
    drawn = [bucket for bucket in BUCKETS if bucket.drawn]
    scores = [
        (MECHANISMS[name].title, *(_both(bucket.of(rows)) for bucket in BUCKETS)) for name, rows in groups.items()
    ]
    losses = [
        (
            MECHANISMS[name].title,
            *(spread(bucket.of(rows), "loss") for bucket in BUCKETS),
            spread(drawn[-1].of(rows), "length_ratio"),
        )
        for name, rows in groups.items()
    ]
    head = ("", *(bucket.title for bucket in BUCKETS))
    if not groups:
        return seeds([])
    parts = [
        _method(found),
        f"BLEU, 13a lower-cased / tok-lc:\n\n{table(head, scores)}",
        _gap(found),
        "Loss, nats a token, of the references, which the models are made to produce: it does not depend on where a model would "
        f"stop. Last column: words that it produces by itself for each word of the reference, {drawn[-1].title}.\n\n"
        f"{table((*head, 'words produced'), losses)}",
        _attention(found),
        seeds(found["rows"]),
        _LIMITS,
    ]
    return "\n\n".join(part for part in parts if part)


def _both(rows: list[dict]) -> str:
    return " / ".join(spread(rows, key, 1) for key in ("bleu_lc", "bleu_tok_lc"))


def _method(found: dict) -> str:
    first = found["rows"][: len(BUCKETS)]
    counts = [
        f"{bucket.title}: {row['sentences']} from {row['captions']} captions" for bucket, row in zip(BUCKETS, first)
    ]
    out = sum(row["left_out"] for row in first)
    return (
        f"The {TEST} captions, greedy decoding, in buckets by the words of the source ({'; '.join(counts)}). Captions "
        "are short, so longer texts are made by joining captions that follow each other, sources and references alike, with a "
        f"space, until they are long enough. A join that overshoots its bucket is left out; {out} more were left out because the "
        f"models read at most {LONGEST} pieces."
    )


def _gap(found: dict) -> str:
    """How far each model with attention is above the one without, by bucket."""
    groups = grouped(found["rows"], "mechanism")
    if NONE not in groups:
        return "How far attention is above no attention is not shown: the model without it is not there."
    said = []
    for name in (name for name in groups if name != NONE):
        scores = [[mean(bucket.of(groups[which]), "bleu_lc") for which in (name, NONE)] for bucket in BUCKETS]
        gaps = ["–" if None in pair else f"{pair[0] - pair[1]:+.1f}" for pair in scores]
        said.append(f"{MECHANISMS[name].title} {' / '.join(gaps)}")
    return f"Above the fixed context, BLEU 13a lower-cased, in the same buckets: {listed(said)}." if said else ""


def _attention(found: dict) -> str:
    """The table of entropies, and their slopes."""
    rows, fits = (grouped(found[key], "mechanism") for key in ("rows", "fits"))
    lines = [
        (
            MECHANISMS[name].title,
            *(spread(bucket.of(rows[name]), "entropy_nats") for bucket in BUCKETS),
            spread(group, "slope"),
            spread(group, "intercept"),
            spread(group, "explained"),
        )
        for name, group in fits.items()
    ]
    head = ("", *(bucket.title for bucket in BUCKETS), "slope", "intercept", "variance explained")
    return (
        (
            "Entropy of cross-attention (nats): of each text the mean over its rows, heads and layers; of a bucket the mean over its "
            "texts; and the least-squares line of all texts' entropy on ln(pieces of the source, end mark included). Attention that "
            "stays uniform has slope 1 and intercept 0; attention that looks at as many places however long the text, slope 0.\n\n"
            f"{table(head, lines)}"
        )
        if lines
        else ""
    )


def panels(found: dict) -> list[Panel]:
    groups, fits = grouped(found["rows"], "mechanism"), grouped(found["fits"], "mechanism")
    if not groups:
        return []
    x, ticks = "words of the source (mean of the bucket)", tuple(range(10, 101, 10))
    widest = max(values(found["rows"], "words"), default=0)
    quality = [
        Panel(
            title,
            tuple(_points(name, rows, "words", key) for name, rows in groups.items()),
            x,
            unit,
            ticks=tuple(tick for tick in ticks if tick <= widest + 5),
        )
        for title, key, unit in (
            ("BLEU by length", "bleu_lc", "BLEU, 13a lower-cased"),
            ("Loss of the reference by length", "loss", "nats a token"),
        )
    ]
    spreads = [_points(name, groups[name], "pieces", "entropy_nats", line=False) for name in fits]
    ends = (min(row["from"] for row in found["fits"]), max(row["to"] for row in found["fits"])) if fits else ()
    for name, group in fits.items():
        if (slope := mean(group, "slope")) is not None:
            y = tuple(mean(group, "intercept") + slope * math.log(x) for x in ends)
            spreads.append(Series(titles([name]), ends, y, marks=False))
    uniform = ("uniform attention, ln(pieces)", ends, tuple(map(math.log, ends))) if fits else None
    entropy = Panel(
        "Entropy by log-length",
        tuple(spreads),
        "pieces of the source (log scale)",
        "entropy (nats)",
        ticks=(5, 10, 20, 50, 100, 200),
        log=True,
        reference=uniform,
    )
    return [*quality, entropy] if fits else quality


def _points(mechanism: str, rows: list[dict], x: str, y: str, line: bool = True) -> Series:
    """A point for each bucket that is drawn: the mean over seeds, with a bar from the least to the most."""
    cells = [bucket.of(rows) for bucket in BUCKETS if bucket.drawn]
    cells = [cell for cell in cells if values(cell, x) and values(cell, y)]
    several = any(len(values(cell, y)) > 1 for cell in cells)
    low, high = (tuple(of(values(cell, y)) for cell in cells) if several else () for of in (min, max))
    return Series(
        titles([mechanism]),
        tuple(mean(cell, x) for cell in cells),
        tuple(mean(cell, y) for cell in cells),
        low,
        high,
        line=line,
    )
