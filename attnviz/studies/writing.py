"""Study: models that write. The effect of more context, the roles of heads, and when induction appears in training."""

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from attnviz import loading, moments
from attnviz.data import corpora
from attnviz.data.tasks import TASKS
from attnviz.data.tokenizer import BOS, EOS
from attnviz.evaluation.language import spread
from attnviz.mechanisms import ALL
from attnviz.models import checkpoint_files
from attnviz.models.names import ModelName
from attnviz.models.writer import Writer
from attnviz.networks.decoder_only import DecoderOnly
from attnviz.studies.measured_models import StudyConfig, load, record
from attnviz.studies.report import Panel, Series, grouped, listed, table

TITLE = "Models that write"
DESCRIPTION = (
    "Of models that write: the loss by the place in the context, and, where moments are at hand, heads over the "
    "updates of training"
)
COLUMNS = 2
WINDOWS = 96  # of the whole context, from validation
SEQUENCES = 16  # random ones, each read twice in a row
SEED = 1
_LEAST = 0.1  # below it no head is said to have a role
_SHOWN = 12  # moments in a table
ROLES = {"previous": "previous token", "first": "first token", "duplicate": "duplicate token", "induction": "induction"}
_METHOD = (
    "The loss is in nats a token, on windows of the whole context that do not overlap, from validation. A place is "
    "the number of tokens before the token that is predicted. *Previous token* and *first token* are mean weights on "
    "these windows. For *duplicate token* and *induction* a model reads {sequences} random sequences of tokens, each "
    "twice in a row: a token of the second copy looks at the same token of the first copy, or at the token after that "
    "one (Olsson et al. 2022). The scores are mean weights, from 0 to 1. A head that gives each token the same weight "
    "has almost 0 there."
)


def measure(config: StudyConfig) -> dict:
    """rows : one a model, with the loss (nats a token) by place. heads : the scores of every head, counted from 0.
    training : by moment, the losses and the best head of each score; for all saved moments if the run's folder is
    given, else for the packed ones. ValueError for moments of a missing model."""
    names = [name for name in checkpoint_files.names(config.root) if _writes(name)]
    if absent := [name for name, _ in config.moments if name not in names]:
        raise ValueError(f"moments must be of models that write, {listed(names)}; got {absent[0]!r:.80}")
    measured = [load(name, config.root) for name in names]
    rows, heads, training = [], [], []
    for model in measured:
        writer, windows = model.translator, _windows(model.translator, config.data, config.sentences)
        first = {"model": writer.name, **model.label}
        losses = _losses(writer.model, windows).mean(0)
        rows.append(first | {"windows": len(windows), "context": writer.limit, "by_place": _by_place(losses)})
        heads += [first | scores for scores in _heads(writer.model, windows, _twice(writer))]
        rows_of = _training(writer, windows, _moments_of(writer.name, config))
        training += [{"model": writer.name, **model.label, **row} for row in rows_of]
    return {"rows": rows, "heads": heads, "training": training, "sequences": SEQUENCES, **record(config, measured)}


def _writes(name: str) -> bool:
    model = ModelName.parse(name)
    return model.pair in TASKS and model.mechanism in ALL and ALL[model.mechanism].writes


def _windows(writer: Writer, data: Path | None, count: int | None) -> Tensor:
    """Windows of validation (N, T), T the context, spread evenly over its texts. ValueError when it has none."""
    texts = [text for text, _ in corpora.load(writer.pair, data).val]
    return torch.tensor(spread(writer.tokenizer, texts, writer.limit, count or WINDOWS))


def _twice(writer: Writer) -> Tensor:
    """Random tokens (SEQUENCES, 2 n), each sequence of n twice in a row; n is a quarter of the context."""
    generator = torch.Generator().manual_seed(SEED)
    once = torch.randint(EOS + 1, len(writer.tokenizer), (SEQUENCES, writer.limit // 4), generator=generator)
    return torch.cat([once, once], dim=1)


def _read(target: Tensor) -> Tensor:
    """The input of a model for predicting target (N, T)."""
    return F.pad(target[:, :-1], (1, 0), value=BOS)


@torch.inference_mode()
def _losses(model: DecoderOnly, target: Tensor) -> np.ndarray:
    """The nats of each token of target (N, T)."""
    parts = []
    for part in target.split(8):
        logits = model.logits(model.readouts(_read(part))).float()
        parts.append(F.cross_entropy(logits.transpose(1, 2), part, reduction="none"))
    return torch.cat(parts).numpy()


def _by_place(losses: np.ndarray) -> list[dict]:
    """The mean loss after 0, 1, 2 to 3, 4 to 7 … tokens. losses (T,): nats by place."""
    bounds = [0, *(2**power for power in range(len(losses).bit_length()) if 2**power < len(losses)), len(losses)]
    return [
        {"first": first, "last": end - 1, "nats": round(float(losses[first:end].mean()), 4)}
        for first, end in itertools.pairwise(bounds)
    ]


@torch.inference_mode()
def _heads(model: DecoderOnly, windows: Tensor, twice: Tensor) -> list[dict]:
    """The scores of every head, by layer and head from 0. twice (N, 2 n): sequences of length n, repeated once."""
    n = twice.shape[1] // 2
    maps = zip(_mean_weights(model, windows[:SEQUENCES]), _mean_weights(model, twice))
    rows = []
    for layer, (of_text, of_copy) in enumerate(maps):
        second = slice(n + 1, 2 * n)  # <bos> is at place 0, so a token of the first copy at 1 to n
        scores = {
            "previous": np.diagonal(of_text, -1, 1, 2)[:, 1:].mean(-1),
            "first": of_text[:, 2:, 0].mean(-1),
            "duplicate": np.diagonal(of_copy, -n, 1, 2)[:, 1:].mean(-1),
            "induction": np.diagonal(of_copy[:, second], 2, 1, 2)[:, : n - 1].mean(-1),
        }
        for head in range(len(of_text)):
            rows.append(
                {"layer": layer, "head": head} | {key: round(float(value[head]), 4) for key, value in scores.items()}
            )
    return rows


def _mean_weights(model: DecoderOnly, target: Tensor) -> Iterator[np.ndarray]:
    """The mean weights (H, T, T) of each layer over texts (N, T); a row is an input position, <bos> first."""
    totals: list = []
    for part in _read(target).split(2):
        sums = [weights.double().sum(0) for weights in model.read(part).maps]
        totals = [a + b for a, b in zip(totals, sums)] if totals else sums
    return ((total / len(target)).numpy() for total in totals)


def measure_moments(name: str, root: Path, data: Path) -> list[dict]:
    """Of each packed moment of a model that writes: its update, its losses (nats a token), and of each score the best
    head. ValueError for no moments."""
    listed = moments.moments(name, root)
    if not listed:
        raise ValueError(f"{name} has no packed moments to measure")
    writer: Any = loading.load(name, root)
    restored = ((listed[number].update, network) for number, network in moments.restored(name, root))
    rows = _training(writer, _windows(writer, data, SEQUENCES), restored)
    return sorted(rows, key=lambda row: row["update"])


def _training(writer: Writer, windows: Tensor, networks: Iterable[tuple[int, Any]]) -> list[dict]:
    """Of every moment, an update and a network: its losses (nats a token), and of each score the best head."""
    twice, few, rows = _twice(writer), windows[:SEQUENCES], []
    n = twice.shape[1] // 2
    for update, network in networks:
        copies, text = _losses(network, twice), _losses(network, few)
        numbers = {
            "loss": text.mean(),
            "early": text[:, : writer.limit // 16].mean(),
            "late": text[:, writer.limit // 2 :].mean(),
            "first_copy": copies[:, 1:n].mean(),
            "second_copy": copies[:, n + 1 :].mean(),
        }
        heads = _heads(network, few, twice)
        best = {key: max(row[key] for row in heads) for key in ROLES}
        rows.append({"update": update, **{key: round(float(value), 4) for key, value in numbers.items()}, **best})
    return rows


def _moments_of(name: str, config: StudyConfig) -> Iterator[tuple[int, Any]]:
    """The update of each moment, and the model as it was before it."""
    if folder := dict(config.moments).get(name):
        settings = checkpoint_files.read_config(name, config.root)
        for path in moments.files(folder):
            yield moments.update_of(path), moments.as_kept(path, settings)
    else:
        for number, moment in enumerate(moments.moments(name, config.root)):
            yield moment.update, moments.restore(name, number, config.root)


def text(results: dict) -> str:
    """Method and results in Markdown."""
    parts = [_METHOD.format(sequences=results["sequences"])]
    for row in results["rows"]:
        heads = [head for head in results["heads"] if head["model"] == row["model"]]
        training = [moment for moment in results["training"] if moment["model"] == row["model"]]
        parts += [f"**{row['model']}** ({row['windows']} windows of {row['context']} tokens)", _places(row)]
        parts += [_roles(heads)] + ([_moments(training)] if training else [])
    return "\n\n".join(parts)


def _places(row: dict) -> str:
    names = [
        f"{part['first']}" if part["first"] == part["last"] else f"{part['first']}–{part['last']}"
        for part in row["by_place"]
    ]
    return table(("tokens before", *names), [("nats a token", *(f"{part['nats']:.2f}" for part in row["by_place"]))])


def _roles(heads: list[dict]) -> str:
    """The three best heads of each score, counted from 1 as on the page."""
    lines = []
    for key, title in ROLES.items():
        best = sorted(heads, key=lambda head: -head[key])[:3]
        lines.append((title, *(f"{head['layer'] + 1}.{head['head'] + 1}: {head[key]:.2f}" for head in best)))
    shown = table(("score", "best head (layer.head)", "second", "third"), lines)
    absent = [title for key, title in ROLES.items() if max(head[key] for head in heads) < _LEAST]
    return f"{shown}\n\nNo head has a score of {_LEAST} for {listed(absent)}." if absent else shown


def _moments(training: list[dict]) -> str:
    """A dozen of the moments, at about equal distances in the loss, and when induction appears in all of them."""
    places = moments.spaced([row["loss"] for row in training], min(_SHOWN, len(training)))
    shown = [training[place] for place in places]
    head = ("update", "loss", "early in the window", "late in the window", "first copy", "second copy", *ROLES.values())
    keys = ("loss", "early", "late", "first_copy", "second_copy", *ROLES)
    rows = table(head, [(f"{row['update']}", *(f"{row[key]:.2f}" for key in keys)) for row in shown])
    when = " ".join(_when(training, key) for key in ("previous", "induction"))
    return f"{rows}\n\nOf {len(training)} moments of training, a dozen are in the table. {when}"


def _when(training: list[dict], key: str) -> str:
    """When the first head of a kind appears in training, and the share of the loss decrease by then."""
    best = max(training, key=lambda row: row[key])
    first = next((row for row in training if row[key] >= _LEAST), None)
    if first is None:
        return f"None of them has a head with a score of {_LEAST} for {ROLES[key]}; the highest is {best[key]:.2f}."
    start, end = training[0]["loss"], min(row["loss"] for row in training)
    fallen = 100 * (start - first["loss"]) / (start - end)
    return (
        f"A score of {_LEAST} for {ROLES[key]} first appears before update {first['update']}, when the loss has fallen "
        f"from {start:.2f} to {first['loss']:.2f} nats: {fallen:.0f} % of its way to {end:.2f}."
    )


def panels(results: dict) -> list[Panel]:
    """Per model a panel of the loss by place, and one of its training if moments are packed."""
    training, charts = grouped(results["training"], "model"), []
    for row in results["rows"]:
        places = tuple(part["first"] for part in row["by_place"][1:])
        nats = tuple(part["nats"] for part in row["by_place"][1:])
        series: tuple[Series, ...] = (Series("loss (nats a token)", places, nats),)
        charts.append(Panel(row["model"], series, "tokens before", "nats a token", log=True))
        rows = [moment for moment in training.get(row["model"], []) if moment["update"]]
        updates = tuple(moment["update"] for moment in rows)
        shown = {"best previous-token head": "previous", "best induction head": "induction"}
        series = tuple(Series(name, updates, tuple(moment[key] for moment in rows)) for name, key in shown.items())
        gain = tuple(1 - min(1.0, moment["second_copy"] / moment["first_copy"]) for moment in rows)
        series += (Series("of the loss, saved in a second copy", updates, gain),)
        start = training[row["model"]][0]["loss"] if rows else 1
        series += (Series("loss, of the untrained model's", updates, tuple(m["loss"] / start for m in rows)),)
        if rows:
            charts.append(Panel(f"{row['model']}, training", series, "updates", "0 to 1", log=True))
    return charts
