"""The card of a model as HTML, one click away in the head of its column. A card may lack anything.

A `details` element: the browser opens it, so that the page asks the server for nothing and draws nothing again.
"""

import html
from collections.abc import Iterable, Iterator

from attnviz.data import tasks
from attnviz.models import provenance
from dashboard.markup.tables import table

METRICS = {
    "bleu": "BLEU",
    "bleu_lc": "BLEU lc",
    "bleu_tok_lc": "tok-lc",
    "bleu_morphemes": "BLEU morphemes",
    "bleu_words": "BLEU words",
    "bleu_char": "BLEU characters",
    "chrf": "chrF",
    "exact_match": "exact %",
    "antidiagonal": "anti-diagonal %",
    "accuracy": "accuracy %",
}  # attnviz.evaluation say what they are


def show(known: dict) -> str:
    """known : the card, and `bytes`, the size of the weights."""
    body = f"{_list(_facts(known))}{_scores(_dict(known, 'scores'))}{_list(_how(known))}"
    body = body or "<p>Nothing is known of this model: it has no card.</p>"
    return f'<details class="card" name="card"><summary>Card</summary><div>{body}</div></details>'


def _list(facts: Iterable[tuple[str, str]]) -> str:
    rows = "".join(f"<dt>{html.escape(name)}</dt><dd>{html.escape(text)}</dd>" for name, text in facts if text)
    return rows and f"<dl>{rows}</dl>"


def _facts(known: dict) -> Iterator[tuple[str, str]]:
    kind = "sentences" if tasks.find(str(known.get("pair"))).classifies else "sentence pairs"
    yield "Parameters", _number(known, "parameters", "{:,.0f}")
    yield "Weights", _number(known, "bytes", "{:.1f} MB on disk", 1e6)
    corpora = dict.fromkeys(name.partition("/")[0] for name in _dict(known, "data"))
    yield (
        "Trained on",
        " · ".join(filter(None, [", ".join(corpora), _number(known, "training_pairs", f"{{:,.0f}} {kind}")])),
    )
    yield "Training", _training(known)
    yield "Alignment error", _alignment(_dict(known, "alignment"))
    yield "Remark", str(known.get("remark") or "")


def _how(known: dict) -> Iterator[tuple[str, str]]:
    """What it takes to train it again."""
    yield "Model", _listed(_dict(known, "options"))
    yield "Settings", _settings(_dict(known, "settings"))
    for start in provenance.runs(known)[:-1]:
        yield "Begun by", str(start.get("command") or "")
    for teacher in provenance.teachers(known):
        yield "Learnt from", str(teacher.get("command") or "")
    yield "Command", str(known.get("command") or "")


def _training(known: dict) -> str:
    best = _number(_dict(known, "best"), "epoch", ", the one of epoch {:.0f} kept")
    epochs = _number(known, "epochs", "{:.0f} epochs") + best
    before = [
        _number(start, "seconds", "begun with weights of {:,.0f} min", 60)
        + _number(start, "epochs", " and {:.0f} epochs")
        for start in provenance.runs(known)[:-1]
    ]
    times = [teacher.get("seconds") for teacher in provenance.teachers(known)]
    took = sum(time for time in times if isinstance(time, int | float))
    before.append(
        f"learnt from {len(times)} trained model{'s' * (len(times) > 1)}, of {took / 60:,.0f} min in all"
        if times
        else ""
    )
    return " · ".join(
        filter(None, [*before, _number(known, "seconds", "{:,.0f} min", 60), epochs, str(known.get("device") or "")])
    )


def _settings(settings: dict) -> str:
    """What the training was set to, and which parameters learnt at a rate of their own."""
    elsewhere = ("epochs", "start", "teachers")
    numbers = {
        name: value
        for name, value in settings.items()
        if name not in elsewhere and not isinstance(value, dict) and value != 0
    }
    slow = [f"{name} at {value} of the rate" for name, value in _dict(settings, "rates").items()]
    return ", ".join(filter(None, [_listed(numbers), *slow]))


def _listed(named: dict) -> str:
    return ", ".join(
        f"{name.replace('_', ' ')} {value}"
        for name, value in named.items()
        if value not in (None, "") and name != "mechanism"
    )


def _alignment(report: dict) -> str:
    """The error rate on the sentences linked by hand, beside the diagonal's, which costs nothing."""
    found = _number(_dict(report, "best_head"), "error_rate", "{:.3f}")
    return found and found + _number(_dict(report, "diagonal"), "error_rate", ", of the diagonal {:.3f}") + _number(
        report, "pairs", " (forced decoding, {:.0f} sentences linked by hand)"
    )


def _scores(scores: dict) -> str:
    """A row for each text and way of decoding, a column for each metric that any of them has; their signatures below."""
    measured = dict(_measured(scores))
    metrics = [key for key in METRICS if any(_number(entry, key, "{}") for entry in measured.values())]
    if not metrics:
        return ""
    rows = [(name, [_number(entry, key, "{:.1f}") or "–" for key in metrics]) for name, entry in measured.items()]
    signed = {
        key: entry[f"{key}_signature"] for entry in measured.values() for key in metrics if f"{key}_signature" in entry
    }
    signatures = "".join(f"<li><b>{METRICS[key]}</b> {html.escape(str(text))}</li>" for key, text in signed.items())
    return table("Scores", [METRICS[key] for key in metrics], rows) + (f"<ul>{signatures}</ul>" if signatures else "")


def _measured(scores: dict) -> Iterator[tuple[str, dict]]:
    """In words which text, decoded how -> its scores; then those on the sentences of it that training has not seen."""
    for key in scores:
        entry = _dict(scores, key)
        beam = _number(entry, "beam", "{}")
        name = key.removesuffix(f"_beam_{beam}").replace("_", " ") + {"": "", "1": ", greedy"}.get(
            beam, f", beam {beam}"
        )
        yield name, entry
        if unseen := _dict(entry, "unseen"):
            yield name + _number(unseen, "sentences", ", {} unseen"), unseen


def _dict(known: dict, key: str) -> dict:
    found = known.get(key)
    return found if isinstance(found, dict) else {}


def _number(known: dict, key: str, form: str, unit: float = 1) -> str:
    """The number under a key, in words; nothing when there is none."""
    found = known.get(key)
    return form.format(found / unit if unit != 1 else found) if isinstance(found, int | float) else ""
