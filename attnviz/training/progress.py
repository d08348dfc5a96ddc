"""What a person sees of a run after each epoch: its figures, and one sentence with where each token of it looked."""

from attnviz import select, stats
from attnviz.data.readers import Pairs
from attnviz.data.tokenizer import Text
from attnviz.figures.labels import plain
from attnviz.loading import READERS
from attnviz.models.trained import TextError
from attnviz.training.trainer import Run

WORDS = 8  # of the sentence shown, or as near as there is


def example(val: Pairs) -> str:
    """The source sentence that is shown after each epoch: the first of the length that is wanted."""
    return min((source for source, _ in val), key=lambda source: abs(len(source.split()) - WORDS))


def report(run: Run, text: Text, sentence: str) -> str:
    """The figures of the last epoch, the sentence, its translation or label, and [the source token] each token looked at most.

    Weights are those of the last layer, the mean of its heads; a mechanism without attention shows the translation alone.
    """
    last = run.history[-1]
    scores = ", ".join(f"{name} {last[name]}" for name in last if name.startswith("val_"))
    head = f"epoch {run.epoch} of {run.plan.epochs}: {scores}, train_loss {last['train_loss']}, {last['seconds']} s"
    model = READERS[run.plan.mechanism]("", run.plan.mechanism, run.averaged().cpu(), text, {})
    try:
        trace = model.trace(sentence)
    except TextError as error:
        return f"{head}\n  no sample: {error}"
    lines = [head, f"  {plain(sentence)}", f"  {plain(trace.translation)}"]
    if any(m.kind == "cross" for m in trace.maps):
        rows = stats.of_grid(select.select(trace)).itertuples()
        lines.append("  " + " ".join(f"{plain(row.token)} [{plain(row.argmax_token)}]" for row in rows))
    return "\n".join(lines)
