"""Study: the mechanisms beside each other, on the same test, with the same vocabulary."""

from attnviz import alignment, gold
from attnviz.evaluation.translation import TIMED, latency, score
from attnviz.mechanisms import MECHANISMS
from attnviz.models import provenance as lineage
from attnviz.studies.pictures import Panel, Series
from attnviz.studies.setting import TEST, Model, Setting, links, models, provenance
from attnviz.studies.tables import grouped, listed, mean, seeds, spread, table, values

TITLE = "Mechanisms compared"
DESCRIPTION = "Mechanisms beside each other: BLEU, alignment error rate, entropy, maximum weight, time of a sentence, training time"
COLUMNS = 3
_SCORES = ("bleu", "bleu_lc", "bleu_tok_lc", "chrf", "entropy_nats", "max_weight")
_PANELS = (
    ("BLEU tok-lc", "bleu_tok_lc", 1),
    ("Alignment error rate", "error_rate", 1),
    ("Entropy (nats)", "entropy_nats", 1),
    ("Maximum weight", "max_weight", 1),
    ("Milliseconds a sentence", "ms_per_sentence", 1),
    ("Training, minutes", "seconds", 1 / 60),
)


def measure(setting: Setting) -> dict:
    """rows: a model each. seconds, epochs : of its training, from its card, with the runs that it began with. peak_memory_mb : of
    the last of these."""
    measured = list(models(setting, MECHANISMS))
    pairs = gold.shipped(setting.pair)
    return {
        "rows": [_row(model, setting, pairs) for model in measured],
        "links": links(pairs),
        **provenance(setting, measured, MECHANISMS),
    }


def _row(model: Model, setting: Setting, pairs) -> dict:
    card, scores = model.translator.card, _scores(model, setting)
    report = alignment.report(model.translator, pairs)
    return {
        **model.label,
        **{key: scores[key] for key in _SCORES},
        "error_rate": report and report["best_head"]["error_rate"],
        "parameters": sum(p.numel() for p in model.translator.model.parameters()),
        **{key: _whole(card, key) for key in ("epochs", "seconds")},
        "peak_memory_mb": card.get("peak_memory_mb"),
        "device": card.get("device"),
        "ms_per_sentence": latency(model.translator, [source for source, _ in setting.corpus.val[:TIMED]]),
        "remark": card.get("remark"),
    }


def _whole(card: dict, key: str) -> float | None:
    """What the card says of all runs that the weights went through, together; None when of one it says nothing."""
    told = [run.get(key) for run in lineage.runs(card)]
    return sum(told) if all(isinstance(value, int | float) for value in told) else None


def _scores(model: Model, setting: Setting) -> dict:
    """Greedy figures on the test: the card's, when it has them all and they are of the same files; else measured now."""
    card, files = model.translator.card, {name: sha for name, sha in setting.corpus.files.items() if TEST in name}
    found = card.get("scores", {}).get(TEST, {})
    same = files.items() <= card.get("data", {}).items()
    if same and all(key in found for key in _SCORES):
        return found
    return score(model.translator, *zip(*setting.test), progress=True)


def text(found: dict) -> str:
    groups = grouped(found["rows"], "mechanism")
    head = (
        "",
        "BLEU 13a lc",
        "BLEU tok-lc",
        "chrF",
        "AER",
        "entropy (nats)",
        "max. weight",
        "parameters",
        "epochs",
        "training (min)",
        "peak memory (MB)",
        "ms a sentence",
    )
    lines = [(MECHANISMS[name].title, *_cells(rows)) for name, rows in groups.items()]
    parts = [_method(found["links"]), table(head, lines) if lines else "", seeds(found["rows"]), _limits(found["rows"])]
    return "\n\n".join(part for part in parts if part)


def _method(links: dict) -> str:
    return (
        f"Greedy translations of the {TEST} captions, scored by sacreBLEU (13a, lower-cased), by BLEU on Moses' words (tok-lc, "
        "as papers on Multi30K print it) and chrF. Entropy and maximum weight are means over every cross-attention row, head "
        "and layer of these translations; of many heads they are the mean of each head's own. AER: alignment error rate on "
        f"{links['pairs']} pairs with {links['sure']} sure links set by hand, the target forced, each word linked to the word "
        "it looks at most; of many heads the best, chosen on other sentences than those scored. The diagonal, which looks at "
        f"nothing, has {links['diagonal']:.2f}. Milliseconds: median of {TIMED} validation captions, one at a time, weights "
        "kept, all models measured in this one run. Scores are the cards', and measured now where a card lacks them; alignment "
        "is measured now; epochs and training time are the cards', of all runs that the weights went through, peak memory of the "
        "last one."
    )


def _cells(rows: list[dict]) -> list[str]:
    kinds = (
        ("bleu_lc", 1),
        ("bleu_tok_lc", 1),
        ("chrf", 1),
        ("error_rate", 2),
        ("entropy_nats", 2),
        ("max_weight", 2),
        ("parameters", 0),
        ("epochs", 0),
    )
    cells = [spread(rows[:1] if key in ("parameters", "epochs") else rows, key, digits) for key, digits in kinds]
    return [
        *cells,
        spread(rows, "seconds", 0, 1 / 60),
        spread(rows, "peak_memory_mb", 0),
        spread(rows, "ms_per_sentence", 1),
    ]


def _limits(rows: list[dict]) -> str:
    """What keeps the rows from being compared, as far as the cards tell."""
    if not rows:
        return ""
    devices, epochs = ({row[key] for row in rows if row[key]} for key in ("device", "epochs"))
    said = (
        f"Training times and memory compare as far as the machines did: {listed(sorted(devices)) or 'none is named'}."
    )
    if len(epochs) > 1:
        said += (
            f" The models were trained for {listed([str(count) for count in sorted(epochs)])} epochs, so rows compare these "
            "models, not mechanisms given the same time."
        )
    remarks = [f"{MECHANISMS[row['mechanism']].title}: {row['remark']}" for row in rows if row["remark"]]
    return " ".join([said, *(["From the cards:"] if remarks else []), *remarks])


def panels(found: dict) -> list[Panel]:
    groups = grouped(found["rows"], "mechanism")
    names = tuple(MECHANISMS[name].title for name in groups)
    result = []
    for title, key, scale in _PANELS:
        series = []
        for place, rows in enumerate(groups.values()):
            if numbers := values(rows, key):
                bar = {"low": (scale * min(numbers),), "high": (scale * max(numbers),)} if len(numbers) > 1 else {}
                series.append(Series(names[place], (scale * mean(rows, key),), (place,), line=False, **bar))
        result.append(Panel(title, tuple(series), rows=names))
    return result if groups else []
