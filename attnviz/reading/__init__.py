"""What a map shows, in a sentence worked out from its weights: `sentence` says the most telling, `observe` all."""

from attnviz.reading.rules import RULES, Observation
from attnviz.select import Grid

__all__ = ["RULES", "Observation", "observe", "sentence"]


def observe(grid: Grid, unit: str = "word") -> list[Observation]:
    """Everything that RULES see in a map, in their order; at least one, unless no row has weights.

    unit : what a word of these texts is called.
    """
    return [seen for rule in RULES.values() if (seen := rule(grid, unit)) is not None]


def sentence(grid: Grid, unit: str = "word") -> str:
    """What is most worth looking at: the first observation about places, then how sharp it is; "" without weights."""
    seen = {observation.rule: observation for observation in observe(grid, unit)}
    places = next((seen[rule] for rule in seen if rule not in ("sharp", "blurred", "strongest")), seen.get("strongest"))
    degree = seen.get("sharp") or seen.get("blurred")
    return " ".join(observation.sentence for observation in (places, degree) if observation)
