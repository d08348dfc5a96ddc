"""The sidebar of the page that trains: the task, the mechanisms, the training settings."""

import streamlit as st

from attnviz.data import readers, tasks
from attnviz.data.readers import Pairs
from attnviz.mechanisms import MECHANISMS
from attnviz.training.seen import AT_ONCE, MOST_PAIRS, PRESETS, Settings
from dashboard.choices import pairs, settings
from dashboard.choices.options import LIMIT, OWN_PAIRS, asks_title, most_megabytes, preset_title, task_title, title
from dashboard.markup.text import escape, markdown
from dashboard.shell import widgets
from dashboard.shell.problems import SceneError, Waiting

_HINT = "a b c\tc b a\nd e f\tf e d"
_HELP = "On each line a text, a tab, and what should be written for it. Further columns are not read."
RATES = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3)
DROPOUT, FORCING = (0.0, 0.1, 0.2, 0.3, 0.5), (0.0, 0.25, 0.5, 0.75, 1.0)


def show() -> dict:
    """task : of `tasks.TOYS`, or the visitor's own pairs, None if there is a `problem` with them. mechanisms, settings
    : of the race. tables : show the charts as tables too?"""
    widgets.brand("Watch attention appear: up to three mechanisms learn a small task side by side.")
    task = st.selectbox(
        "Task", [toy.name for toy in tasks.TOYS] + [OWN_PAIRS], format_func=task_title, key="task", bind="query-params"
    )
    problem = None
    if task == OWN_PAIRS:
        task, problem = _own_pairs()
    else:
        st.html(f'<p class="tag">{escape(tasks.find(task).note)}</p>')
    preset = st.selectbox(
        "What fails on purpose", ["", *PRESETS], format_func=preset_title, key="preset", bind="query-params"
    )
    if preset:
        chosen, how = PRESETS[preset].mechanisms, Settings(**PRESETS[preset].settings)
        st.html(f'<p class="tag">{escape(PRESETS[preset].why)}</p>')
    else:
        chosen, how = _mechanisms(), _settings()
    fields = {"task": task, "problem": problem, "mechanisms": tuple(chosen), "settings": how}
    return fields | {"tables": widgets.tables()}


def _own_pairs() -> tuple[Pairs | None, SceneError | None]:
    """The uploaded, else the pasted pairs; or the reason why they cannot be used."""
    text = st.text_area(
        f"Your pairs, at most {MOST_PAIRS:,}", key="pasted_pairs", placeholder=_HINT, max_chars=1_000_000, help=_HELP
    )
    content, name = "\n".join(text.splitlines()).encode("utf-8", "replace"), "the pasted text"
    if settings.UPLOADS in settings.allowed():
        megabytes = most_megabytes()
        words = f"Or a TSV file, at most {megabytes} MB"
        file = st.file_uploader(words, ("tsv", "txt"), key="pairs_file", max_upload_size=megabytes, help=_HELP)
        if file is not None:
            if file.size > megabytes * 2**20:
                return None, SceneError(f"The file is larger than {megabytes} MB. Choose a smaller file.")
            content, name = file.getvalue(), file.name
    try:
        read, left_out = pairs_of(content, name)
    except SceneError as error:
        return None, error
    st.caption(markdown(f"{len(read):,} pairs of {name[:80]}.{left_out}"))
    return read, None


def pairs_of(content: bytes, name: str) -> tuple[Pairs, str]:
    """The pairs of a text of lines with tabs, and a sentence on the lines left out. name : for readers. SceneError if
    it cannot be read, or has no pairs or too many."""
    if not content.strip():
        raise Waiting("Paste pairs first: on each line a text, a tab, and what should be written for it.")
    try:
        rows = readers.rows_of(readers.lines_of(content, name[:80]), name[:80])
    except ValueError as error:
        raise SceneError(f"The pairs cannot be read: {error}.") from None
    read, bad = [], []
    for number, row in enumerate(rows, 1):
        if all(0 < len(side) <= LIMIT for side in row):
            read.append(row)
        elif any(row):
            bad.append(number)
    if not read:
        raise SceneError(
            f"No line of {name[:80]} is a pair. On each line there must be a text, a tab, and what should be written "
            f"for it, each of at most {LIMIT} characters."
        )
    if len(read) > MOST_PAIRS:
        raise SceneError(f"At most {MOST_PAIRS:,} pairs can be trained on; there are {len(read):,}. Leave some out.")
    if len({source for source, _ in read}) == 1:
        raise SceneError("At least two different texts are needed: one to train on, one to test with. Add some pairs.")
    if not bad:
        return read, ""
    first = f"Left out: line {bad[0]:,}" + (f" and {len(bad) - 1:,} more" if len(bad) > 1 else "")
    return read, f" {first}. A line must have two texts with a tab between, each of at most {LIMIT} characters."


def _mechanisms() -> list[str]:
    chosen = st.pills(
        f"Mechanisms, up to {AT_ONCE}",
        list(MECHANISMS),
        selection_mode="multi",
        default=pairs.first(list(MECHANISMS)),
        format_func=title,
        key="racers",
        bind="query-params",
    )
    return chosen[:AT_ONCE]


def _settings() -> Settings:
    """The controls of the training settings."""
    own = Settings()
    with st.expander("How they are trained"):
        width = st.select_slider("Width", [16, 32, 64, 128, 256], own.width, key="width", bind="query-params")
        layers = st.select_slider("Layers (Transformer)", [1, 2, 3], own.layers, key="layers", bind="query-params")
        heads = st.select_slider("Heads (Transformer)", [1, 2, 4, 8], own.heads, key="heads", bind="query-params")
        rate = st.select_slider("Learning rate", RATES, own.learning_rate, key="rate", bind="query-params")
        dropout = st.select_slider("Dropout of the weights", DROPOUT, own.dropout, key="dropout", bind="query-params")
        forcing = st.select_slider(
            "Teacher forcing",
            FORCING,
            own.teacher_forcing,
            key="forcing",
            bind="query-params",
            help="The share of the letters before that are the right ones in training; the others are the model's own.",
        )
        asks = st.selectbox(
            "When it asks (recurrent)", ["", "before", "after"], format_func=asks_title, key="asks", bind="query-params"
        )
        seed = st.select_slider("Seed", range(1, 10), own.seed, key="race_seed", bind="query-params")
    return Settings(width, layers, heads, rate, dropout, forcing, asks, seed)
