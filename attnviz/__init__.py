"""attnviz: see how attention works, in trained translation models and in models of your own.

    import attnviz
    model = attnviz.load("en-fr/bahdanau")  # or "hf:FOLDER", "hf:NAME": a Hugging Face model
    trace = model.trace("The black dog is running.")
    attnviz.view(trace)  # a widget of a notebook; of several traces beside each other
    trace = attnviz.from_arrays(weights, ["The", "dog"])  # attention that was computed elsewhere
    trace = attnviz.from_generate(output, tokenizer)  # what generate() of the transformers library returned
    attnviz.save_trace(trace, "trace.safetensors")  # open it on the page Heads and layers, or with load_trace

torch and numpy are imported when they are first needed.
"""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attnviz.export.widget import View
    from attnviz.models.model import Model
    from attnviz.trace import Trace
    from attnviz.trace.arrays import from_arrays
    from attnviz.trace.files import load_trace, save_trace
    from attnviz.trace.generated import from_generate

__version__ = "0.2.0"
__all__ = ["available", "from_arrays", "from_generate", "load", "load_trace", "save_trace", "view"]


def available(root: str | Path | None = None) -> list[str]:
    """The names (`pair/mechanism`) of the checkpoints below `root`; by default below the folders that the environment
    variable ATTNVIZ_CHECKPOINTS lists, or of this project.

    >>> "en-fr/bahdanau" in attnviz.available()
    True
    """
    from attnviz.models import checkpoint_files

    return checkpoint_files.available(root)


def load(name: str, root: str | Path | None = None, threads: int | None = None) -> "Model":
    """The trained model `name` (see `available`): a Translator, or a Classifier, which gives a sentence a label.

    threads : that torch computes with in this process from now on; None: 1 for a trained model (its matrices are too
    small to gain from more); unchanged for a Hugging Face model. `hf:FOLDER` or `hf:NAME` is a Hugging Face model in a
    folder or on the hub (see `models.huggingface.load`). Raises ValueError when there is no such model, or its files
    are damaged.

    >>> attnviz.load("en-fr/bahdanau").trace("The black dog runs.").translation
    'Le chien noir court.'
    """
    import warnings

    from attnviz import loading
    from attnviz.models import checkpoint_files

    model = loading.load(name, root, threads)
    if state := checkpoint_files.unfinished(getattr(model, "card", {})):
        warnings.warn(f"{name} is {state}; the same `train` command continues it", stacklevel=2)
    return model


def view(*traces: "Trace", **chosen) -> "View":
    """A widget of one trace or several beside each other, for the end of a cell of a notebook.

    chosen : `step`, `layer`, `head`, `words`, `special` and `theme` of `attnviz.export.widget.View`.
    ImportError without anywidget. ValueError for no trace, a trace without attention, or a value of the wrong type;
    traitlets.TraitError for a step, layer or head out of range.

    >>> attnviz.view(first, second, step=2).step
    2
    """
    try:
        from attnviz.export import widget
    except ModuleNotFoundError as error:
        if error.name != "anywidget":
            raise
        raise ImportError("the view of a notebook needs anywidget; install it with: pip install anywidget") from None
    return widget.view(*traces, **chosen)


def __getattr__(name: str):
    """The functions that need numpy, and parts such as `attnviz.own`, are imported when they are first used."""
    if name == "from_arrays":
        from attnviz.trace.arrays import from_arrays

        return from_arrays
    if name == "from_generate":
        from attnviz.trace.generated import from_generate

        return from_generate
    if name in ("load_trace", "save_trace"):
        from attnviz.trace import files as trace_files

        return getattr(trace_files, name)
    if name.isidentifier() and not name.startswith("_") and find_spec(part := f"{__name__}.{name}"):
        return import_module(part)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """What a notebook completes: the functions, before they are imported too."""
    return [*__all__, "__version__"]
