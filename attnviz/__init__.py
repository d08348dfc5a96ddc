"""attnviz: see how attention works, in trained translation models.

    import attnviz
    model = attnviz.load("en-fr/bahdanau")
    trace = model.trace("The black dog is running.")

torch is imported when a model is first asked for, not before.
"""

from pathlib import Path

__version__ = "0.1.0"
__all__ = ["available", "load"]


def available(root: str | Path | None = None) -> list[str]:
    """Names (`pair/mechanism`) of the checkpoints below `root`; by default those that come with the project."""
    from attnviz import files

    return files.names(Path(root) if root else files.ROOT)


def load(name: str, root: str | Path | None = None):
    """The trained model `name` (see `available`) as a Translator, or a Classifier where it says a sentence's label.

    Raises ValueError when there is none, or it is damaged.
    """
    from attnviz import loading

    return loading.load(name, Path(root) if root else None)
