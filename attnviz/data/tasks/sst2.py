"""sst2: sentences of film reviews, positive or negative (Stanford Sentiment Treebank, Socher et al. 2013; whole
sentences)."""

from pathlib import Path

from attnviz.data.readers import DataFolder
from attnviz.data.tasks.task import Splits, Task


LABELS = ("negative", "positive")  # of a review, by their number in the data


def read(data: Path) -> Splits:
    """sst2/{train,dev}.tsv[.gz]. There is no test set: dev chooses the epoch and is scored too."""
    folder = DataFolder(data, "sst2")
    train, dev = (folder.labelled(f"{name}.tsv", LABELS) for name in ("train", "dev"))
    return Splits(train, dev, {}, folder.files)


SST2 = Task(
    name="sst2",
    source="en",
    target="en",
    title="Sentiment of a sentence",
    output="label",
    read=read,
    style="plain",
    labels=LABELS,
    validation_metric="accuracy",
    metrics=("accuracy",),
    ask="Your sentence about a film",
    hint="Type a sentence about a film and press Enter",
    examples=(
        "A funny, moving film that never gets dull.",
        "The plot is thin and the jokes are not funny.",
        "It is not without charm.",
        "An hour of beautiful pictures and not one idea.",
    ),
)
