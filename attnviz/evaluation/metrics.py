"""What translations are measured by: for each target language, or task, the figures that its papers print.

Every figure comes with a signature that says how it was made (sacreBLEU, Post 2018).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from sacrebleu.metrics import BLEU, CHRF
from sacremoses import MosesTokenizer
from sacremoses.corpus import NonbreakingPrefixes

from attnviz.data import tasks

Texts = Sequence[str]
Measure = Callable[[Texts, Texts], tuple[float, str]]


@dataclass(frozen=True)
class Metric:
    """key : its name in scores and cards. title : for readers. measure(found, references) -> 0 to 100, and its signature."""

    key: str
    title: str
    measure: Measure

    def __call__(self, found: Texts, references: Texts) -> float:
        """The figure alone."""
        return self.measure(found, references)[0]


def _sacre(metric: BLEU | CHRF) -> Measure:
    def measure(found: Texts, references: Texts) -> tuple[float, str]:
        return metric.corpus_score(list(found), [list(references)]).score, str(metric.get_signature())

    return measure


def _moses(language: str) -> Measure:
    """Lower-cased, then divided by the Moses tokenizer, then BLEU without a further one: "tok-lc" of the papers on Multi30K."""

    def measure(found: Texts, references: Texts) -> tuple[float, str]:
        divide, bleu = MosesTokenizer(language), BLEU(lowercase=True, tokenize="none", force=True)
        texts = [
            [divide.tokenize(text.lower(), return_str=True, escape=False) for text in side]
            for side in (found, references)
        ]
        score = bleu.corpus_score(texts[0], [texts[1]]).score
        return score, f"{bleu.get_signature()}|moses:{language}|sacremoses:{version('sacremoses')}"

    return measure


def _exact(found: Texts, references: Texts) -> tuple[float, str]:
    same = ["".join(a.split()) == "".join(b.split()) for a, b in zip(found, references, strict=True)]
    return 100 * sum(same) / len(same), "exact match, spaces apart"


def _accuracy(found: Texts, references: Texts) -> tuple[float, str]:
    return 100 * sum(a == b for a, b in zip(found, references, strict=True)) / len(found), "share of right labels"


_GIVEN = _sacre(BLEU(tokenize="none", force=True))  # for texts that come with their words apart
METRICS = {
    metric.key: metric
    for metric in (
        Metric("bleu", "BLEU", _sacre(BLEU())),
        Metric("bleu_lc", "BLEU lower-cased", _sacre(BLEU(lowercase=True))),
        Metric("bleu_morphemes", "BLEU, given morphemes", _GIVEN),
        Metric("bleu_words", "BLEU, given words", _GIVEN),
        Metric("bleu_char", "BLEU, characters", _sacre(BLEU(tokenize="char"))),
        Metric("chrf", "chrF", _sacre(CHRF())),
        Metric("exact_match", "exactly right (%)", _exact),
        Metric("accuracy", "accuracy (%)", _accuracy),
    )
}


def tok_lc(language: str) -> tuple[Metric, ...]:
    """The figure that papers on Multi30K print, where Moses knows the language."""
    known = language in NonbreakingPrefixes().available_langs.values()
    return (Metric("bleu_tok_lc", "BLEU tok-lc (Moses)", _moses(language)),) if known else ()


def written(language: str) -> tuple[Metric, ...]:
    """BLEU on 13a words, cased and lower-cased, and by Moses' words; chrF."""
    return METRICS["bleu"], METRICS["bleu_lc"], *tok_lc(language), METRICS["chrf"]


def of(pair: str) -> tuple[Metric, ...]:
    """The metrics of a language pair such as en-fr, or of another task such as reverse."""
    task = tasks.find(pair)
    return tuple(METRICS[key] for key in task.metric_keys) or written(task.target)


def score(pair: str, found: Texts, references: Texts) -> dict:
    """Every metric of the pair under its key, rounded to two digits, and its `_signature`.

    Without those on given words when no reference has a space: what stands in print is one word then, and nothing is right.
    """
    result, divided = {}, any(len(reference.split()) > 1 for reference in references)
    for metric in of(pair):
        if metric.measure is _GIVEN and not divided:
            continue
        value, signature = metric.measure(found, references)
        result |= {metric.key: round(value, 2), f"{metric.key}_signature": signature}
    return result
