"""The downloads of every page: a zip of its contents, a button that copies the link, and the manifest; and the current
content of each panel for that zip, because a panel may be redrawn without the rest of the page."""

from __future__ import annotations

import functools
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlencode

import streamlit as st

import attnviz
from attnviz import lazy_pandas as pd
from attnviz import storage
from attnviz.export import bundle
from attnviz.figures import Chart
from attnviz.models import checkpoint_files
from attnviz.models.names import HuggingFaceName, is_hugging_face, without_prefix
from attnviz.trace import Trace
from dashboard.choices import settings
from dashboard.choices.options import title
from dashboard.session import caches, catalogue

_PACKAGES = ("streamlit", "torch", "plotly", "pandas", "numpy", "tokenizers")
TYPES = {  # ending of a file -> its type
    "csv": "text/csv",
    "gif": "image/gif",
    "html": "text/html",
    "pdf": "application/pdf",
    "png": "image/png",
    "svg": "image/svg+xml",
    "tex": "text/x-tex",
    "txt": "text/plain",
    "zip": "application/zip",
}
HEADS_FROM_0 = "The file counts layers and heads from 0, as Python does."


def button(words: str, build: Callable[[], bytes | str], file: str, key: str, **look) -> None:
    """A button that saves a file, which is made when it is pressed. `look` has further arguments of Streamlit."""
    st.download_button(words, build, file, TYPES.get(file.rpartition(".")[2]), key=key, on_click="ignore", **look)


def csv_button(words: str, frame: Callable[[], pd.DataFrame], file: str, key: str, note: str | None = None) -> None:
    """`button` of a table."""
    button(words, lambda: bundle.frame_csv(frame()), file, key, help=note)


def zip_and_link(build: Callable[[], bytes], file_name: str, key: str, words: str) -> None:
    """The first two buttons. build : makes the zip at download time; words : a description of its contents."""
    button("Everything as a zip", build, file_name, key, type="primary", icon=":material/folder_zip:", help=words)
    st.html('<button type="button" class="copy-link" aria-live="polite">Copy link</button>', width="content")
    if settings.frames():
        words = "Copies HTML for a page that may frame this one. Offline, use the HTML file."
        look = f'class="copy-link" data-embeds="1" aria-live="polite" title="{words}"'
        st.html(f'<button type="button" {look}>Embed</button>', width="content")


def without_folders(chosen: Mapping) -> dict:
    """What was chosen, with the name alone of a model of a person's own: no file shows folders of this machine."""

    def named(typed):
        return [*map(named, typed)] if isinstance(typed, list) else typed and catalogue.guest(typed)

    return {key: named(value) if key in ("guest", "own") else value for key, value in chosen.items()}


def reopening(page: str, query: dict, models: Iterable[str], packages: tuple[str, ...] = ()) -> dict:
    """Entries of a manifest for reproducing the view. `query` is what follows the page's address; it
    reopens the view.

    page : its address, "" for the first; packages : those that its numbers depend on, besides the usual ones.
    """
    listed = {part: value if isinstance(value, list) else [value] for part, value in query.items()}
    named = without_folders(listed)
    folders = [part for part in named if named[part] != listed[part]]  # the name of a folder alone opens nothing
    own = [title(name) for part in folders for name in named.pop(part)]
    if own and "show" in named:
        named["show"] = [shown for shown in named["show"] if shown not in own]
    again = f"; then type the folder of your own model again: {', '.join(own)}" if own else ""
    return {
        "query": f"{page}?{urlencode(named, doseq=True)}",
        "reopen": f"start the dashboard and add `query` to its address, for example http://localhost:8501/{again}",
        "models": {model: _files_of(model) for model in models},
        "versions": {"attnviz": attnviz.__version__, "python": platform.python_version()}
        | {package: version(package) for package in (*_PACKAGES, *packages)},
    }


def _files_of(model: str) -> dict:
    """The fingerprint of a model in a manifest; of a model of the transformers library, those of the files that it is
    read from."""
    if not is_hugging_face(model):
        return {"sha256": caches.fingerprint(model)}
    name = HuggingFaceName(without_prefix(catalogue.place_of(model)))
    files = name.files(checkpoint_files.ROOT) or _downloaded(name.place)
    return {"files_sha256": {path.name: _digest(path, storage.stamp(path)) for path in files}}


def _downloaded(place: str) -> list[Path]:
    """The files of a model of the Hugging Face hub, where they were downloaded to."""
    from huggingface_hub import try_to_load_from_cache

    config = try_to_load_from_cache(place, "config.json")
    return HuggingFaceName(str(Path(config).parent)).files(checkpoint_files.ROOT) if isinstance(config, str) else []


@functools.lru_cache(256)
def _digest(path: Path, stamp: tuple) -> str:
    """SHA-256 of a file, read once: the files of a model may be large. stamp : changes with the file."""
    return storage.sha256(path)


@dataclass(frozen=True, eq=False)
class ShownPanel:
    """figures : by the names that they have in the zip. frame : None without numbers."""

    figures: Mapping[str, Chart]
    frame: pd.DataFrame | None = None
    traces: tuple[Trace, ...] = ()


@dataclass(eq=False)
class ShownPanels:
    """panels : by name. query : the parameters of the address."""

    panels: dict[str, ShownPanel] = field(default_factory=dict)
    query: dict[str, list[str]] = field(default_factory=dict)

    @property
    def figures(self) -> dict[str, Chart]:
        """Of all panels."""
        return {name: figure for panel in self.panels.values() for name, figure in panel.figures.items()}

    @property
    def frames(self) -> dict[str, pd.DataFrame]:
        """The frames by the name of the panel."""
        return {name: panel.frame for name, panel in self.panels.items() if panel.frame is not None}

    @property
    def traces(self) -> list[Trace]:
        """Of all panels."""
        return [trace for panel in self.panels.values() for trace in panel.traces]


def panels_of(page: str) -> ShownPanels:
    """The current panels of a page in this session."""
    return st.session_state.setdefault(f"shown panels of {page}", ShownPanels())


def put_panel(
    page: str, panel: str, figures: Mapping[str, Chart], frame: pd.DataFrame | None, traces: Sequence[Trace] = ()
) -> None:
    """Register a panel's content."""
    now = panels_of(page)
    now.panels[panel] = ShownPanel(figures, frame, tuple(traces))
    now.query = {key: st.query_params.get_all(key) for key in st.query_params}


def drop_panel(page: str, panel: str) -> None:
    """Remove a panel's content."""
    panels_of(page).panels.pop(panel, None)
