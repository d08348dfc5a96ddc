"""card.json of a checkpoint: it is listed and drawn, or left out."""

from tests.hostile.kinds import arguments, checkpoints
from tests.hostile.workplace import Workplace, sentence

WARM = ("en-fr/bahdanau", {})


def strategy():
    return checkpoints.mutations("card.json")


def check(place: Workplace, case) -> None:
    from attnviz.models import checkpoint_files
    from dashboard.markup import card

    name, content = case
    try:
        checkpoints.put(place, name, "card.json", content)
        arguments.check(place, ["models", "--root", str(place.root)])
        arguments.check(place, ["models", "--json", "--root", str(place.root)])
        with sentence():
            card.show(checkpoint_files.read_card(name, place.root)).encode("utf-8")
    finally:
        place.put_back("checkpoints")
