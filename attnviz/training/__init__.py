"""Training. `training.watch("reverse", ["bahdanau"])` trains for a minute and shows the progress, see race.py."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attnviz.training.race import watch

__all__ = ["watch"]


def __getattr__(name: str):
    """`watch` is imported when it is first used: it needs torch."""
    if name == "watch":
        from attnviz.training.race import watch

        return watch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
