"""The sidebar of the page that trains: the task, the mechanisms, how they are trained."""

import streamlit as st

from attnviz.data import tasks
from attnviz.mechanisms import MECHANISMS
from attnviz.training.seen import AT_ONCE, PRESETS, Settings
from dashboard.choices import pairs
from dashboard.choices.options import OWN_PAIRS, asks_title, preset_title, task_title, title
from dashboard.markup.text import escape
from dashboard.shell import widgets

RATES = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3)
DROPOUT, FORCING = (0.0, 0.1, 0.2, 0.3, 0.5), (0.0, 0.25, 0.5, 0.75, 1.0)


def show() -> dict:
    """task : of `tasks.TOYS`, or OWN_PAIRS. mechanisms, settings : of the race. preset : key of PRESETS, or ""."""
    widgets.brand("Watch attention appear: up to three mechanisms learn a small task side by side.")
    task = st.selectbox(
        "Task",
        [toy.name for toy in tasks.TOYS] + [OWN_PAIRS],
        format_func=task_title,
        key="task",
        bind="query-params",
    )
    note = "" if task == OWN_PAIRS else tasks.find(task).note
    if note:
        st.html(f'<p class="tag">{escape(note)}</p>')
    preset = st.selectbox(
        "What fails on purpose",
        ["", *PRESETS],
        format_func=preset_title,
        key="preset",
        bind="query-params",
    )
    if preset:
        chosen, settings = PRESETS[preset].mechanisms, Settings(**PRESETS[preset].settings)
        st.html(f'<p class="tag">{escape(PRESETS[preset].why)}</p>')
    else:
        chosen, settings = _mechanisms(), _settings()
    return {"task": task, "mechanisms": tuple(chosen), "settings": settings, "preset": preset}


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
    """How they are trained."""
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
