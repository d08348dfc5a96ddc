"""The card of a model as HTML, one click away beside its name. Any field of a card may be missing.

A `details` element, which the browser opens without a request to the server.
"""

from collections.abc import Iterable, Iterator

from attnviz.confidence.calibration import BEST, FLAGGED
from attnviz.data import tasks
from attnviz.models import checkpoint_files
from attnviz.models.checkpoint_files import unfinished
from dashboard.markup.tables import table
from dashboard.markup.text import escape

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
    "bits_a_character": "bits a character",
    "nats_a_character": "nats a character",
}  # attnviz.evaluation say what they are
FORMS = dict.fromkeys(("bits_a_character", "nats_a_character"), "{:.3f}")


def show(card: dict) -> str:
    """card : as training wrote it, and `bytes`, the size of the weights. An unfinished model also has a visible line
    that says so."""
    scores, tenths = _scores(_dict(card, "scores")), reliability(_dict(card, "confidence"))
    body = f"{_list(_facts(card))}{scores}{tenths}{_list(_how(card))}"
    body = body or "<p>This model has no card.</p>"
    state = unfinished(card)
    notice = f'<p class="notice">Training is {escape(state)}.</p>' if state else ""
    return f'<details class="card" name="card"><summary>Card</summary><div>{body}</div></details>{notice}'


def _list(facts: Iterable[tuple[str, str]]) -> str:
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in facts if text)
    return rows and f"<dl>{rows}</dl>"


def _facts(card: dict) -> Iterator[tuple[str, str]]:
    task = tasks.find(str(card.get("pair")))
    kind = "sentences" if task.classifies else "texts" if task.writes else "sentence pairs"
    yield "Training", _continued(card)
    yield "Parameters", _number(card, "parameters", "{:,.0f}")
    yield "Weights", _number(card, "bytes", "{:.1f} MB on disk", 1e6)
    corpora = dict.fromkeys(name.partition("/")[0] for name in _dict(card, "data"))
    yield (
        "Trained on",
        " · ".join(filter(None, [", ".join(corpora), _number(card, "training_pairs", f"{{:,.0f}} {kind}")])),
    )
    yield "Training", _training(card)
    yield "Alignment error", _alignment(_dict(card, "alignment"))
    yield "Flagged as unusual", how_well(_dict(card, "confidence"))
    yield "Copied unchanged", _copied(_dict(_dict(card, "copied"), "beam_5"))
    yield "Remark", str(card.get("remark") or "")


def _how(card: dict) -> Iterator[tuple[str, str]]:
    """How to repeat the training."""
    yield "Model", _listed(_dict(card, "options"))
    yield "Settings", _settings(_dict(card, "settings"))
    for start in checkpoint_files.runs(card)[:-1]:
        yield "Started from", str(start.get("command") or "")
    for teacher in checkpoint_files.teachers(card):
        yield "Distilled from", str(teacher.get("command") or "")
    yield "Command", str(card.get("command") or "")


def _continued(card: dict) -> str:
    """The progress of an unfinished training, and how to finish it; "" for a finished one."""
    how = ". The same train command goes on with it; with --patience 0 it accepts the best epoch so far."
    return (state := unfinished(card)) and state + how


def _training(card: dict) -> str:
    best = _number(_dict(card, "best"), "epoch", " (best: epoch {:.0f})")
    epochs = _number(card, "epochs", "{:.0f} epochs") + best
    before = [
        _number(start, "seconds", "started from weights trained for {:,.0f} min", 60)
        + _number(start, "epochs", " ({:.0f} epochs)")
        for start in checkpoint_files.runs(card)[:-1]
    ]
    times = [teacher.get("seconds") for teacher in checkpoint_files.teachers(card)]
    took = sum(time for time in times if isinstance(time, int | float))
    before.append(
        f"distilled from {len(times)} trained model{'s' * (len(times) > 1)} ({took / 60:,.0f} min of training in all)"
        if times
        else ""
    )
    return " · ".join(
        filter(None, [*before, _number(card, "seconds", "{:,.0f} min", 60), epochs, str(card.get("device") or "")])
    )


def _settings(settings: dict) -> str:
    """The settings of the training, and which parameters have a learning rate of their own."""
    elsewhere = ("epochs", "start", "teachers")
    numbers = {
        name: value
        for name, value in settings.items()
        if name not in elsewhere and not isinstance(value, dict) and value != 0
    }
    slow = [f"learning rate of {name} × {value}" for name, value in _dict(settings, "rates").items()]
    return ", ".join(filter(None, [_listed(numbers), *slow]))


def _listed(named: dict) -> str:
    return ", ".join(
        f"{name.replace('_', ' ')} {value}"
        for name, value in named.items()
        if value not in (None, "") and name != "mechanism"
    )


def _alignment(report: dict) -> str:
    """The alignment error rate on sentences aligned by hand, beside that of the diagonal, which is the baseline."""
    error = _number(_dict(report, "best_head"), "error_rate", "{:.3f}")
    return error and error + _number(_dict(report, "diagonal"), "error_rate", "; of the diagonal {:.3f}") + _number(
        report, "pairs", " (forced decoding, {:.0f} sentences aligned by hand)"
    )


def _copied(counts: dict) -> str:
    """How many names and numbers of gold/copying.tsv are copied unchanged (attnviz.evaluation)."""
    kinds = [kind for kind in ("names", "numbers") if _number(counts, kind, "{}") not in ("", "0")]
    parts = [
        _number(counts, f"{kind}_right", "{:,.0f}") + _number(counts, kind, f" of {{:,.0f}} {kind}") for kind in kinds
    ]
    without = "; names are not counted, because this language writes them in a script of its own"
    return f"{', '.join(parts)} (beam 5){without if kinds == ['numbers'] else ''}" if kinds else ""


def _scores(scores: dict) -> str:
    """A row for each text and way of decoding, a column for each metric that any of them has; their signatures
    below."""
    measured = dict(_measured(scores))
    metrics = [key for key in METRICS if any(_number(entry, key, "{}") for entry in measured.values())]
    if not metrics:
        return ""
    forms = [(key, FORMS.get(key, "{:.1f}")) for key in metrics]
    rows = [(name, [_number(entry, key, form) or "–" for key, form in forms]) for name, entry in measured.items()]
    signed = {
        key: entry[f"{key}_signature"] for entry in measured.values() for key in metrics if f"{key}_signature" in entry
    }
    signatures = "".join(f"<li><b>{METRICS[key]}</b> {escape(str(text))}</li>" for key, text in signed.items())
    return table("Scores", [METRICS[key] for key in metrics], rows) + (f"<ul>{signatures}</ul>" if signatures else "")


def _measured(scores: dict) -> Iterator[tuple[str, dict]]:
    """text and way of decoding, in words -> its scores; then those on its sentences that are not in the training
    data."""
    for key in scores:
        entry = _dict(scores, key)
        beam = _number(entry, "beam", "{}")
        name = key.removesuffix(f"_beam_{beam}").replace("_", " ") + {"": "", "1": ", greedy"}.get(
            beam, f", beam {beam}"
        )
        yield name, entry
        if unseen := _dict(entry, "unseen"):
            yield name + _number(unseen, "sentences", ", {} sentences not seen in training"), unseen


def _dict(card: dict, key: str) -> dict:
    value = card.get(key)
    return value if isinstance(value, dict) else {}


def _number(card: dict, key: str, form: str, unit: float = 1) -> str:
    """The number under a key, in words; "" if there is none."""
    value = card.get(key)
    return form.format(value / unit if unit != 1 else value) if isinstance(value, int | float) else ""


def how_well(card: dict) -> str:
    """card : `confidence` of a card. The shares of poor and of good translations that are flagged, and the share that
    is missed."""
    worst, best, count = card.get("worst_tenth"), card.get("best_half"), card.get("sentences")
    if not _is_share(worst) or not _is_share(best):
        return ""
    where = f"{count:,} validation sentences" if type(count) is int else "the validation sentences"
    words = f"of {where}, by chrF: {worst:.0%} of the worst tenth, {best:.1%} of the best half"
    aims = [f"at least {FLAGGED:.0%} of the worst tenth"] * (worst < FLAGGED)
    aims += [f"at most {BEST:.0%} of the best half"] * (best > BEST)
    return f"{words}. This misses the aim: {' and '.join(aims)}" if aims else words


def reliability(card: dict) -> str:
    """The reliability diagram as a table with bars: a tenth of the validation sentences in each row, by risk."""
    rows = "".join(map(_reliability_row, filter(_is_bin, _as_list(card.get("bins")))))
    if not rows:
        return ""
    caption = "Estimated risk of a poor translation, and share that is poor: validation sentences in order of the risk"
    head = "".join(f'<th scope="col">{name}</th>' for name in ("risk", "actually poor", "sentences"))
    return (
        f'<div class="scroll" tabindex="0"><table class="numbers shares"><caption>{caption}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _reliability_row(row: list) -> str:
    risk, poor, count = row
    shares = "".join(f'<td style="--share:{share:.1%}">{share:.0%}</td>' for share in (risk, poor))
    return f"<tr>{shares}<td>{count:,}</td></tr>"


def _as_list(value: object) -> list:
    return value if isinstance(value, list) else []


def _is_bin(row: object) -> bool:
    return isinstance(row, list) and len(row) == 3 and all(map(_is_share, row[:2])) and type(row[2]) is int


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 1
