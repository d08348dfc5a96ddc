"""What a file of moments says of itself, checked: any JSON becomes a Header, or is refused. This is done here only."""

from collections.abc import Sequence
from dataclasses import dataclass

from attnviz.mechanisms import Config
from attnviz.models.checks import values

MOST = 32  # moments in a file


@dataclass(frozen=True)
class Moment:
    """A packed moment. update : the update before which it was kept. loss : on validation, nats a token."""

    update: int
    loss: float


@dataclass(frozen=True)
class Header:
    """config, seed : of the run. begins : one number of each untrained tensor. moments : the untrained model first."""

    config: Config
    seed: int
    begins: list[float]
    moments: list[Moment]

    def to_dict(self) -> dict:
        """The JSON that `checked` reads."""
        listed = [{"update": moment.update, "loss": round(moment.loss, 4)} for moment in self.moments]
        return {"config": self.config.to_dict(), "seed": self.seed, "begins": self.begins, "moments": listed}


def checked(content: object) -> Header:
    """From any JSON. ValueError, TypeError or ArithmeticError when it describes no moments."""
    if not isinstance(content, dict):
        raise ValueError("it describes no moments")
    if missing := [key for key in ("config", "seed", "begins", "moments") if key not in content]:
        raise ValueError(f"{missing[0]} is missing")
    seed, begins, listed = content["seed"], content["begins"], content["moments"]
    if type(seed) is not int or not 0 <= seed < 2**63:
        raise ValueError("its seed is no whole number")
    if not isinstance(begins, list) or not all(map(is_number, begins)):
        raise ValueError("it does not say how the untrained model begins")
    if not isinstance(listed, list) or not 2 <= len(listed) <= MOST:
        raise ValueError(f"it must list 2 to {MOST} moments")
    return Header(values.config(content["config"]), seed, begins, [_moment(each) for each in listed])


def is_number(value: object, least: float = -1e9, most: float = 1e9) -> bool:
    """A number, no boolean, within these bounds; NaN is within none."""
    return type(value) in (int, float) and least <= value <= most


def check_count(paths: Sequence, losses: Sequence[float]) -> None:
    """ValueError unless there are moments to pack, and a loss for each."""
    if not 2 <= len(paths) <= MOST or len(paths) != len(losses):
        raise ValueError(
            f"there must be 2 to {MOST} moments, and a loss for each; got {len(paths)} and {len(losses)} losses"
        )


def _moment(entry: object) -> Moment:
    if not isinstance(entry, dict) or not is_number(entry.get("loss")) or type(entry.get("update")) is not int:
        raise ValueError("a moment has no update or no loss")
    return Moment(entry["update"], entry["loss"])
