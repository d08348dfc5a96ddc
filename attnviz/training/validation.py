"""The score and the loss of a model on validation: after each epoch, with a report; also for the moments of a run."""

from pathlib import Path
from typing import Any

import torch

from attnviz import alignment, gold, mechanisms, moments, select, stats
from attnviz.data import batching, corpora
from attnviz.data.readers import Pairs
from attnviz.data.tokenizer import SubwordTokenizer
from attnviz.evaluation import language
from attnviz.evaluation.language import BITS
from attnviz.evaluation.metrics import METRICS
from attnviz.evaluation.translation import translate
from attnviz.figures.labels import plain
from attnviz.loading import model_class
from attnviz.models import checkpoint_files, checkpoints
from attnviz.models.model import TextError
from attnviz.models.names import ModelName
from attnviz.networks.decoder_only import DecoderOnly
from attnviz.training.trainer import Trainer, token_loss

WORDS = (8, 4, 12, 16)  # wanted lengths of examples; the first is that of the report's sentence
EMPTY = "(empty)"  # a translation without text
NEAR = 0.1  # part of its loss by which that of a packed moment may differ from it


def score_key(corpus: corpora.Corpus) -> str:
    """The name of the score in a run's history, such as val_bleu_lc."""
    return f"val_{corpus.metric}"


def best_epoch(history: list[dict], corpus: corpora.Corpus) -> dict | None:
    """The entry with the best score so far, the first of equal ones; None before the first epoch.

    ValueError if another metric was used.
    """
    choose = min if corpus.metric == BITS else max
    try:
        return choose(history, key=lambda epoch: epoch[score_key(corpus)], default=None)
    except KeyError:
        raise ValueError(
            f"the training run was validated with a different metric from {corpus.metric}; use --restart"
        ) from None


def epochs_since_best(history: list[dict], corpus: corpora.Corpus) -> int:
    """The number of epochs after the best one; 0 before the first epoch."""
    best = best_epoch(history, corpus)
    return len(history) - 1 - history.index(best) if best else 0


def validate(trainer: Trainer, tokenizer: SubwordTokenizer, corpus: corpora.Corpus) -> dict:
    """The score by the metric of the corpus (per cent), of greedy output, and the loss (nats a token) on validation.

    Also the score of each part of validation, when it has parts.
    """
    model = trainer.optimizer.averaged_model()
    if corpus.metric == BITS:
        return {"epoch": trainer.epoch} | _surprises(model, tokenizer, corpus)
    sources, references = zip(*corpus.val)
    predictions = trainer.predict(model, tokenizer, list(sources))
    score = METRICS[corpus.metric](predictions, references)
    loss = mean_loss(model, tokenizer, corpus.val, trainer.device, task=trainer)
    result = {"epoch": trainer.epoch, score_key(corpus): round(score, 2), "val_loss": round(loss, 4)}
    return result | scores_of_parts(corpus, predictions)


def _surprises(model: Any, tokenizer: SubwordTokenizer, corpus: corpora.Corpus) -> dict:
    """Bits a character, of all validation and of each of its parts, and the loss (nats a piece).

    The windows do not overlap, so a piece is predicted from half a context on average. The value of the first part, the
    hardest, chooses the best epoch.
    """
    parts = list(dict.fromkeys(corpus.parts or [part for _, part in corpus.val]))
    measured = {part: language.surprise(model, tokenizer, [a for a, b in corpus.val if b == part]) for part in parts}
    bits = {f"{score_key(corpus)}_{part}": round(value.bits_a_character, 4) for part, value in measured.items()}
    loss = sum(value.nats for value in measured.values()) / sum(value.pieces for value in measured.values())
    return {score_key(corpus): bits[f"{score_key(corpus)}_{parts[0]}"], "val_loss": round(loss, 4)} | (
        bits if len(parts) > 1 else {}
    )


def scores_of_parts(corpus: corpora.Corpus, predictions: list[str]) -> dict[str, float]:
    """The score of each part of validation, such as val_bleu_lc_captions; {} if there is one part."""
    scores = {}
    for part in dict.fromkeys(corpus.parts):
        places = [place for place, name in enumerate(corpus.parts) if name == part]
        sides = [predictions[place] for place in places], [corpus.val[place][1] for place in places]
        scores[f"{score_key(corpus)}_{part}"] = round(METRICS[corpus.metric](*sides), 2)
    return scores


@torch.inference_mode()
def mean_loss(
    model: Any, tokenizer: SubwordTokenizer, pairs: Pairs, device: str, batch: int = 128, task: Trainer | None = None
) -> float:
    """Cross-entropy of a model in evaluation mode, without label smoothing: nats a token, or nats a label.

    task : defines how pairs are encoded and what the logits are; None: as for translations.
    """
    encode = batching.encode if task is None else task.encode
    kind = Trainer if task is None else task
    examples = sorted(encode(pairs, tokenizer), key=lambda example: len(example[1]))
    total, count = 0.0, 0
    for start in range(0, len(examples), batch):
        chosen = examples[start : start + batch]
        source, target = (batching.pad([example[side] for example in chosen]).to(device) for side in (0, 1))
        logits = kind.logits(model, source, target)
        tokens = int((target != kind.padding).sum())
        total += float(token_loss(logits, target, 0.0, kind.padding)) * tokens
        count += tokens
    return total / count


def examples(val: Pairs) -> list[str]:
    """Source sentences of the validation set to show: for each length of WORDS the first sentence nearest to it that is
    not yet included."""
    sources = dict.fromkeys(source for source, _ in val)
    chosen = []
    for words in WORDS[: len(sources)]:
        chosen.append(min(sources, key=lambda source: abs(len(source.split()) - words)))
        del sources[chosen[-1]]
    return chosen


def example(val: Pairs) -> str:
    """The source sentence of the report."""
    return examples(val)[0]


def report(trainer: Trainer, tokenizer: SubwordTokenizer, name: str, sentence: str) -> str:
    """The scores of the last epoch, the sentence, the model's output, and each output token with [its source token].

    name : of the model. Weights are those of the last layer, the mean of its heads. Without attention only the output
    is shown.
    """
    last, config = trainer.history[-1], trainer.config
    scores = ", ".join(f"{name} {last[name]}" for name in last if name.startswith("val_"))
    head = f"epoch {trainer.epoch} of {config.epochs}: {scores}, train_loss {last['train_loss']}, {last['seconds']} s"
    if mechanisms.find(config.mechanism).writes:
        return head
    model = model_class(config.mechanism)(
        name, config.mechanism, trainer.optimizer.averaged_model().cpu(), tokenizer, {}
    )
    try:
        trace = model.trace(sentence)
    except TextError as error:
        return f"{head}\n  no sample: {error}"
    lines = [head, f"  {plain(sentence)}", f"  {plain(trace.translation) if trace.translation else EMPTY}"]
    if any(attention.kind == "cross" for attention in trace.maps):
        rows = stats.of_grid(select.select(trace)).itertuples()
        lines.append("  " + " ".join(f"{plain(row.token)} [{plain(row.argmax_token)}]" for row in rows))
    return "\n".join(lines)


def pack_spaced(
    name: str, root: Path, folder: Path, val: Pairs, count: int
) -> tuple[Path, list[tuple[int, float, float]]]:
    """Pack `count` of the moments in `folder`, spaced by loss, for `name`: the untrained model, the trained one, and
    those between.

    -> the file, and of each packed moment its update, its saved loss and its restored loss (nats a token on `val`).
    Raises ValueError if there are fewer moments, CheckpointError.
    """
    tokenizer = checkpoints.load_tokenizer(ModelName.parse(name).pair, root)
    model, _ = checkpoints.load_model(name, root)

    def loss(network: Any) -> float:
        if isinstance(network, DecoderOnly):
            return language.surprise(network, tokenizer, [a for a, _ in val]).nats_a_piece
        return mean_loss(network, tokenizer, val, "cpu")

    def loss_of_file(path: Path) -> float:
        model.load_state_dict({key: value.float() for key, value in checkpoints.load_tensors(path).items()})
        return loss(model)

    paths = moments.files(folder)
    moments.check_config(paths, checkpoint_files.read_config(name, root))
    losses = [loss_of_file(path) for path in paths]
    places = moments.spaced(losses, count)
    chosen, saved_losses = [paths[place] for place in places], [losses[place] for place in places]
    path = moments.pack(
        name, root, chosen, saved_losses, lambda number, network: abs(loss(network) / saved_losses[number] - 1) <= NEAR
    )
    packed = [loss(moments.restore(name, number, root)) for number in range(count)]
    return path, [(moments.update_of(file), before, now) for file, before, now in zip(chosen, saved_losses, packed)]


def measure_moments(name: str, root: Path, val: Pairs) -> list[dict]:
    """Of each packed moment: its update, its loss (nats a token), case-insensitive BLEU and, if links by hand ship, the
    alignment error rate of the best head, chosen on other sentences. ValueError for no moments."""
    pair, listed = ModelName.parse(name).pair, moments.moments(name, root)
    if not listed:
        raise ValueError(f"{name} has no packed moments to measure")
    tokenizer, linked = checkpoints.load_tokenizer(pair, root), gold.shipped(pair)
    mechanism = checkpoint_files.read_config(name, root).mechanism
    sources, references = zip(*val)
    rows = {}
    for number, network in moments.restored(name, root):
        translating: Any = network
        predictions = translate(translating, tokenizer, list(sources), "cpu")
        model = model_class(mechanism)(name, mechanism, translating, tokenizer, {})
        traces: list[Any] = list(model.traces([pair.source for pair in linked], [pair.target for pair in linked]))
        rows[number] = {
            "update": listed[number].update,
            "loss": listed[number].loss,
            "bleu_lc": round(METRICS["bleu_lc"](predictions, references), 2),
            "error_rate": round(alignment.best_head(traces, linked)[0].error_rate, 4) if linked else None,
        }
    return [rows[number] for number in sorted(rows)]
