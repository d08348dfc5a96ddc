"""The report after each epoch: its scores, and one sentence with the source token that each output token attends to
most."""

from attnviz import mechanisms, select, stats
from attnviz.data.readers import Pairs
from attnviz.data.tokenizer import SubwordTokenizer
from attnviz.figures.labels import plain
from attnviz.loading import model_class
from attnviz.models.model import TextError
from attnviz.training.trainers.trainer import Trainer

WORDS = (8, 4, 12, 16)  # wanted lengths of examples; the first is that of the report's sentence

EMPTY = "(empty)"  # a translation without text


def examples(val: Pairs) -> list[str]:
    """Source sentences of the validation set to show: for each length of WORDS the first one nearest to it that is not
    among them yet."""
    sources = dict.fromkeys(source for source, _ in val)
    chosen = []
    for words in WORDS[: len(sources)]:
        chosen.append(min(sources, key=lambda source: abs(len(source.split()) - words)))
        del sources[chosen[-1]]
    return chosen


def example(val: Pairs) -> str:
    """The source sentence of the report."""
    return examples(val)[0]


def report(trainer: Trainer, text: SubwordTokenizer, name: str, sentence: str) -> str:
    """The scores of the last epoch, the sentence, the model's output, and each output token with [its source token].

    name : of the model. Weights are those of the last layer, the mean of its heads. Without attention the output alone
        is shown.
    """
    last, config = trainer.history[-1], trainer.config
    scores = ", ".join(f"{name} {last[name]}" for name in last if name.startswith("val_"))
    head = f"epoch {trainer.epoch} of {config.epochs}: {scores}, train_loss {last['train_loss']}, {last['seconds']} s"
    if mechanisms.find(config.mechanism).writes:
        return head
    model = model_class(config.mechanism)(name, config.mechanism, trainer.optimizer.averaged_model().cpu(), text, {})
    try:
        trace = model.trace(sentence)
    except TextError as error:
        return f"{head}\n  no sample: {error}"
    lines = [head, f"  {plain(sentence)}", f"  {plain(trace.translation) if trace.translation else EMPTY}"]
    if any(attention.kind == "cross" for attention in trace.maps):
        rows = stats.of_grid(select.select(trace)).itertuples()
        lines.append("  " + " ".join(f"{plain(row.token)} [{plain(row.argmax_token)}]" for row in rows))
    return "\n".join(lines)
