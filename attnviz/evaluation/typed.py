"""What a card says about sentences that visitors type: names and numbers that are copied, and confidence."""

from collections.abc import Sequence

from attnviz.confidence.agreement import SAMPLES
from attnviz.confidence.calibration import Calibration, calibrate
from attnviz.confidence.signs import signs
from attnviz.confidence.training_words import TrainingWords
from attnviz.data.readers import Pairs
from attnviz.evaluation import copying
from attnviz.evaluation.evaluate import BEAM
from attnviz.evaluation.metrics import METRICS
from attnviz.models.model import TextError
from attnviz.models.translator import Translator


def copied(translator: Translator) -> dict:
    """Of the names and numbers of gold/copying.tsv, those that came out as they went in: greedy, and with a beam.

    Names are left out where the target language does not copy them, see copying.py.
    """
    cases, result = copying.read(), {}
    for beam in (1, BEAM):
        traces = translator.traces((case.text for case in cases), beam=beam, keep=("statistics",))
        counts = copying.measure(cases, [trace.translation for trace in traces], translator.task.copies_names)
        result[f"beam_{beam}"] = {
            "names": counts.names,
            "names_right": counts.names_right,
            "numbers": counts.numbers,
            "numbers_right": counts.numbers_right,
            "share": round(counts.share, 4),
        }
    return result


def confidence(
    translator: Translator,
    val: Pairs,
    known_words: TrainingWords,
    samplers: Sequence[Translator] = (),
    target_words: TrainingWords | None = None,
) -> Calibration:
    """The scale of the model's confidence, fitted to the chrF (without spaces) of its greedy translations of `val`.

    samplers : draw other translations of each sentence. Sentences that the model cannot read are left out. ValueError
    for fewer than `calibration.FEWEST`.
    """
    chrf, rows, scores = METRICS["chrf"], [], []
    traces = translator.traces(source for source, _ in val)
    for result, (_, target) in zip(traces, val, strict=True):
        if not isinstance(result, TextError):
            drawn = [sample for sampler in samplers for sample in sampler.samples(result.text, SAMPLES)]
            rows.append(signs(result, known_words, drawn, target_words))
            scores.append(chrf(["".join(result.translation.split())], ["".join(target.split())]))
    return calibrate(rows, scores)
