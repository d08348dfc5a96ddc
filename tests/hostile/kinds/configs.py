"""config.json of a checkpoint: the model is loaded and reads, or is refused; the others are as they were."""

import attnviz
from tests.hostile.kinds import arguments, checkpoints
from tests.hostile.workplace import Workplace, sentence

WARM = ("en-fr/bahdanau", {})


def strategy():
    return checkpoints.mutations("config.json")


def check(place: Workplace, case) -> None:
    name, content = case
    try:
        checkpoints.put(place, name, "config.json", content)
        with sentence():
            attnviz.load(name, place.root).trace("the dog runs")
        arguments.check(place, ["models", "--root", str(place.root)])
    finally:
        place.put_back("checkpoints")
