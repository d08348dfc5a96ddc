"""The score and the loss of a model on validation, after each epoch."""

import torch
from torch import nn

from attnviz.data import batching, corpora
from attnviz.data.readers import Pairs
from attnviz.data.tokenizer import SubwordTokenizer
from attnviz.evaluation import language
from attnviz.evaluation.language import BITS
from attnviz.evaluation.metrics import METRICS
from attnviz.training.trainers.losses import token_loss
from attnviz.training.trainers.trainer import Trainer


def score_key(corpus: corpora.Corpus) -> str:
    """The name of the score in a run's history, such as val_bleu_lc."""
    return f"val_{corpus.metric}"


def best_epoch(history: list[dict], corpus: corpora.Corpus) -> dict | None:
    """The entry with the best score so far, the first of equal ones; None before the first epoch.

    ValueError when another metric was used.
    """
    choose = min if corpus.metric == BITS else max
    try:
        return choose(history, key=lambda epoch: epoch[score_key(corpus)], default=None)
    except KeyError:
        raise ValueError(
            f"the training run was validated with a different metric from {corpus.metric}; use --restart"
        ) from None


def epochs_since_best(history: list[dict], corpus: corpora.Corpus) -> int:
    """How many epochs came after the best one; 0 before the first epoch."""
    best = best_epoch(history, corpus)
    return len(history) - 1 - history.index(best) if best else 0


def validate(trainer: Trainer, text: SubwordTokenizer, corpus: corpora.Corpus) -> dict:
    """The score by the metric of the corpus (per cent), of greedy output, and the loss (nats a token) on validation.

    Also the score of each part of validation, when it has parts.
    """
    model = trainer.optimizer.averaged_model()
    if corpus.metric == BITS:
        return {"epoch": trainer.epoch} | _surprises(model, text, corpus)
    sources, references = zip(*corpus.val)
    predictions = trainer.predict(model, text, list(sources))
    score = METRICS[corpus.metric](predictions, references)
    loss = mean_loss(model, text, corpus.val, trainer.device, task=trainer)
    result = {"epoch": trainer.epoch, score_key(corpus): round(score, 2), "val_loss": round(loss, 4)}
    return result | scores_of_parts(corpus, predictions)


def _surprises(model: nn.Module, text: SubwordTokenizer, corpus: corpora.Corpus) -> dict:
    """Bits a character, of all validation and of each of its parts, and the loss (nats a piece).

    The windows do not overlap, so a piece is predicted from half a context on average. That of the first part, the
    hardest, chooses the best epoch.
    """
    parts = list(dict.fromkeys(corpus.parts or [part for _, part in corpus.val]))
    measured = {part: language.surprise(model, text, [a for a, b in corpus.val if b == part]) for part in parts}
    bits = {f"{score_key(corpus)}_{part}": round(value.bits_a_character, 4) for part, value in measured.items()}
    loss = sum(value.nats for value in measured.values()) / sum(value.pieces for value in measured.values())
    return {score_key(corpus): bits[f"{score_key(corpus)}_{parts[0]}"], "val_loss": round(loss, 4)} | (
        bits if len(parts) > 1 else {}
    )


def scores_of_parts(corpus: corpora.Corpus, predictions: list[str]) -> dict[str, float]:
    """The score of each part of validation, such as val_bleu_lc_captions; nothing when there is one part."""
    scores = {}
    for part in dict.fromkeys(corpus.parts):
        places = [place for place, name in enumerate(corpus.parts) if name == part]
        sides = [predictions[place] for place in places], [corpus.val[place][1] for place in places]
        scores[f"{score_key(corpus)}_{part}"] = round(METRICS[corpus.metric](*sides), 2)
    return scores


@torch.inference_mode()
def mean_loss(
    model: nn.Module,
    text: SubwordTokenizer,
    pairs: Pairs,
    device: str,
    batch: int = 128,
    task: Trainer | type[Trainer] = Trainer,
) -> float:
    """Cross-entropy of a model in evaluation mode, without label smoothing: nats a token, or nats a label.

    task : says how pairs are encoded and what the logits are.
    """
    examples = sorted(task.encode(pairs, text), key=lambda example: len(example[1]))
    total, count = 0.0, 0
    for start in range(0, len(examples), batch):
        chosen = examples[start : start + batch]
        source, target = (batching.pad([example[side] for example in chosen]).to(device) for side in (0, 1))
        logits = task.logits(model, source, target)
        tokens = int((target != task.padding).sum())
        total += float(token_loss(logits, target, 0.0, task.padding)) * tokens
        count += tokens
    return total / count
