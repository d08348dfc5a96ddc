"""attnviz: see how attention works, in trained translation models and in models of your own.

    import attnviz
    model = attnviz.load("en-fr/bahdanau")  # or "hf:FOLDER", "hf:NAME": a Hugging Face model
    trace = model.trace("The black dog is running.")
    trace = attnviz.from_arrays(weights, ["The", "dog"])  # attention that was computed elsewhere
    attnviz.save_trace(trace, "trace.safetensors")  # open it on the page Heads and layers, or with load_trace

torch and numpy are imported when they are first needed.
"""

from pathlib import Path

__version__ = "0.1.0"
__all__ = ["available", "from_arrays", "load", "load_trace", "save_trace"]


def available(root: str | Path | None = None) -> list[str]:
    """The names (`pair/mechanism`) of the checkpoints below `root`; by default those that come with the project."""
    from attnviz.models import checkpoint_files

    return checkpoint_files.available(root)


def load(name: str, root: str | Path | None = None):
    """The trained model `name` (see `available`): a Translator, or a Classifier, which gives a sentence a label.

    `hf:FOLDER` or `hf:NAME` is a Hugging Face model in a folder or on the hub (see `models.huggingface.load`).
    Raises ValueError when there is no such model, or its files are damaged.
    """
    from attnviz import loading

    return loading.load(name, root)


def __getattr__(name: str):
    """The functions that need numpy are imported when they are first used."""
    if name == "from_arrays":
        from attnviz.trace.arrays import from_arrays

        return from_arrays
    if name in ("load_trace", "save_trace"):
        from attnviz.trace import files as trace_files

        return getattr(trace_files, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
