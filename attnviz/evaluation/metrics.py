"""The metrics of each target language or task, as reported in papers. Every value has a signature that records how it
was computed (sacreBLEU, Post 2018).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from sacrebleu.metrics import BLEU, CHRF

from attnviz.data import tasks

Texts = Sequence[str]
Measure = Callable[[Texts, Texts], tuple[float, str]]


@dataclass(frozen=True)
class Metric:
    """key : its name in scores and cards. title : for readers. measure(hypotheses, references) -> 0 to 100, and its
    signature."""

    key: str
    title: str
    measure: Measure

    def __call__(self, hypotheses: Texts, references: Texts) -> float:
        """The value without its signature."""
        return self.measure(hypotheses, references)[0]


def _sacre(metric: BLEU | CHRF) -> Measure:
    def measure(hypotheses: Texts, references: Texts) -> tuple[float, str]:
        return metric.corpus_score(list(hypotheses), [list(references)]).score, str(metric.get_signature())

    return measure


def _moses(language: str) -> Measure:
    """BLEU on lower-cased words of the Moses tokenizer: "tok-lc" of the papers on Multi30K."""

    def measure(hypotheses: Texts, references: Texts) -> tuple[float, str]:
        from sacremoses import MosesTokenizer  # a second that few commands need

        tokenizer, bleu = MosesTokenizer(language), BLEU(lowercase=True, tokenize="none", force=True)
        texts = [
            [tokenizer.tokenize(text.lower(), return_str=True, escape=False) for text in side]
            for side in (hypotheses, references)
        ]
        score = bleu.corpus_score(texts[0], [texts[1]]).score
        return score, f"{bleu.get_signature()}|moses:{language}|sacremoses:{version('sacremoses')}"

    return measure


def _exact(hypotheses: Texts, references: Texts) -> tuple[float, str]:
    same = ["".join(a.split()) == "".join(b.split()) for a, b in zip(hypotheses, references, strict=True)]
    return 100 * sum(same) / len(same), "exact match, spaces apart"


def _accuracy(hypotheses: Texts, references: Texts) -> tuple[float, str]:
    return 100 * sum(a == b for a, b in zip(hypotheses, references, strict=True)) / len(
        hypotheses
    ), "share of right labels"


_GIVEN = _sacre(BLEU(tokenize="none", force=True))  # for texts whose words are separated already
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


ANY = tuple(METRICS[key] for key in ("bleu", "bleu_lc", "bleu_char", "chrf"))  # where the language is not known


def tok_lc(language: str) -> tuple[Metric, ...]:
    """The metric that papers on Multi30K report, for the languages that the Moses tokenizer knows."""
    from sacremoses.corpus import NonbreakingPrefixes

    supported = language in NonbreakingPrefixes().available_langs.values()
    return (Metric("bleu_tok_lc", "BLEU tok-lc (Moses)", _moses(language)),) if supported else ()


def written(language: str) -> tuple[Metric, ...]:
    """For languages written with spaces: BLEU on 13a words, cased and lower-cased, BLEU on Moses words, chrF."""
    return METRICS["bleu"], METRICS["bleu_lc"], *tok_lc(language), METRICS["chrf"]


def for_pair(pair: str) -> tuple[Metric, ...]:
    """The metrics of a language pair such as en-fr, or of another task such as reverse."""
    task = tasks.find(pair)
    return tuple(METRICS[key] for key in task.metric_keys) or written(task.target)


def score(pair: str, hypotheses: Texts, references: Texts) -> dict:
    """Every metric of the pair under its key, rounded to two digits, and its `_signature`.

    Metrics on given words are left out when no reference has a space: each text would count as one word.
    """
    return measured(for_pair(pair), hypotheses, references)


def measured(wanted: Sequence[Metric], hypotheses: Texts, references: Texts) -> dict:
    """`score` with the given metrics."""
    result, with_spaces = {}, any(len(reference.split()) > 1 for reference in references)
    for metric in wanted:
        if metric.measure is _GIVEN and not with_spaces:
            continue
        value, signature = metric.measure(hypotheses, references)
        result |= {metric.key: round(value, 2), f"{metric.key}_signature": signature}
    return result
