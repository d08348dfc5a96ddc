"""What a card says of sentences that visitors type: names and numbers copied, and how well the model knows when it is unsure."""

from attnviz import copying, metrics
from attnviz.calibration import calibrate
from attnviz.confidence import signs
from attnviz.corpora import Pairs
from attnviz.evaluate import BEAM, translations
from attnviz.familiar import Familiar
from attnviz.translator import Translator


def figures(translator: Translator, val: Pairs, known: Familiar) -> dict:
    """copied : see `copied`. confidence : see `calibration.Calibration`."""
    return {"copied": copied(translator), "confidence": confidence(translator, val, known)}


def copied(translator: Translator) -> dict:
    """Names and numbers of the sentences made for it that came out as they went in, greedy and with a beam."""
    cases, result = copying.read(), {}
    for beam in (1, BEAM):
        found = copying.measure(cases, translations(translator, [case.text for case in cases], beam)[0])
        result[f"beam_{beam}"] = {"names": found.names, "names_right": found.names_right, "numbers": found.numbers,
                                  "numbers_right": found.numbers_right, "share": round(found.share, 4)}  # fmt: skip
    return result


def confidence(translator: Translator, val: Pairs, known: Familiar) -> dict:
    """The scale of the model's confidence and how it does, by chrF of its greedy translations of validation, spaces apart."""
    traces = [translator.trace(source) for source, _ in val]
    chrf = [metrics.METRICS["chrf"](["".join(trace.translation.split())], ["".join(target.split())]) for trace, (_, target) in zip(traces, val)]
    return calibrate([signs(trace, known) for trace in traces], chrf).to_dict()
