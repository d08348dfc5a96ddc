"""The page of heads: every layer and head of one model on one text; at a glance, up close, measured and switched off."""

import streamlit as st

from attnviz.models.names import ModelName
from attnviz.trace import files
from dashboard import controls
from dashboard.choices import pairs
from dashboard.choices.settings import KINDS
from dashboard.compare.scene import SceneError, Waiting, sentence
from dashboard.heads import scene, sources
from dashboard.heads.panels import alike, closeup, compared, depth, overview, switched_off, verdict
from dashboard.heads.scene import COLUMNS, ORDER, Choice, Gallery, Source
from dashboard.heads.sources import HF, SAVED
from dashboard.markup import card, parts
from dashboard.session import state


def sidebar() -> dict:
    """What holds for all panels but the text: fields of Choice, `source` None where there is a `problem`; model : of the control."""
    with st.sidebar:
        controls.brand("Every layer and head of one model: at a glance, up close, measured and switched off.")
        model = st.selectbox(
            "Model",
            [*state.many_headed(), HF, SAVED],
            format_func=sources.title,
            key="model",
            bind="query-params",
            on_change=_enter,
        )
        source, problem = _source(model)
        kinds = source.kinds if source else ORDER
        kind = st.selectbox("Which attention", kinds, format_func=KINDS.get, key="kind", bind="query-params")
        return {"model": model, "problem": problem, "source": source, "kind": kind} | _overview()


def _source(model: str) -> tuple[Source | None, SceneError | None]:
    """What the control says, made ready; else why not."""
    try:
        return {HF: _own, SAVED: _saved}.get(model, lambda: sources.Shipped(model))(), None
    except SceneError as error:
        return None, error
    except (
        ValueError,
        OSError,
    ) as error:  # what attnviz raises for a model or a file that cannot be shown; a folder not to be read
        text = str(error)  # one that begins with the name of a model leaves it as it is
        return None, SceneError(
            f"{text.removeprefix(state.LIBRARY)}." if text.startswith(state.LIBRARY) else sentence(text)
        )


def _own() -> Source:
    name = (
        st.text_input(
            "Folder, or name on the hub",
            key="own",
            bind="query-params",
            placeholder="./my-bert or openai-community/gpt2",
            help="A model for the transformers library, as save_pretrained() writes it, with its tokenizer: like BERT, GPT, T5, BART or "
            "Marian. Weights are read from safetensors only, and code that comes with a model is never run.",
        )
        .strip()
        .removeprefix(state.LIBRARY)
    )
    if not name:
        raise Waiting("Type the folder of a model on the left, or its name on the Hugging Face hub.")
    return sources.Own(state.LIBRARY + name)


def _saved() -> Source:
    file = st.file_uploader(
        "File of the trace",
        [ending.removeprefix(".") for ending in files.FORMATS],
        key="file",
        help="As attnviz.save_trace() and Trace.to_json() write it: of any model here, or of attnviz.from_arrays().",
    )
    if file is None:
        raise Waiting(
            "Choose the file of a trace on the left: one that attnviz.save_trace() has written. (A link to this page cannot hold it.)"
        )
    return sources.Saved(("trace", file.file_id), file.name, state.saved(st.session_state, file))


def _overview() -> dict:
    columns = {"options": ["", *COLUMNS], "bind": "query-params"}
    order = st.selectbox(
        "Order of the heads",
        format_func=lambda name: COLUMNS.get(name, "layer by layer"),
        key="order",
        **columns,
        help="By a statistic: its mean over the rows, the highest first.",
    )
    color = st.selectbox("Frames show", format_func=lambda name: COLUMNS.get(name, "nothing"), key="color", **columns)
    root = st.toggle(
        "Faint weights too",
        key="faint",
        bind="query-params",
        help="Shades of the overview follow the square root of the weights.",
    )
    units = st.segmented_control(
        "Tokens",
        ["pieces", "words"],
        default="pieces",
        required=True,
        key="units",
        bind="query-params",
        help="For whole words, weights are summed over the pieces of a key and averaged over those of a query.",
    )
    special = st.toggle(
        "Show special tokens",
        True,
        key="special",
        bind="query-params",
        help="In the close-up and in the heads compared. Hidden, the other weights are scaled up to sum to 1, and the page says how "
        "much was removed. Overview, statistics, patterns and rollout are as computed.",
    )
    tables = st.toggle(
        "Charts as tables too", key="tables", bind="query-params", help="Puts the numbers of each chart below it."
    )
    return {
        "order": order,
        "color": color,
        "root": root,
        "words": units == "words",
        "special": special,
        "tables": tables,
    }


def _enter() -> None:
    """Another model is asked the same, unless it reads another language or the sentence was an example."""
    model, text = st.session_state["model"], st.session_state.get("text")
    facts = pairs.ANY if model in (HF, SAVED) else sources.Shipped(model).languages
    last: Gallery | None = state.last(st.session_state, state.GALLERY)
    before = last.choice.languages if last else facts
    other = before.source and facts.source and before.source != facts.source
    if text is not None and (other or text in before.examples):
        st.session_state["text"] = facts.first


@st.fragment
def show(fields: dict) -> None:
    """Draw the page for the sidebar's choices; a text that fails leaves the last good picture.

    A fragment, and each panel that has controls is one: what is chosen there draws that panel again and nothing else.
    """
    text, notice = _text(fields), st.container(key="notice")
    current = _compose(fields, text, notice)
    if current is None:
        return
    dark = st.context.theme.type == "dark"
    if isinstance(source := current.choice.source, sources.Shipped):
        st.html(parts.model(source.title, card.show(state.card(source.name))))
    if current.choice.languages.classifies:
        verdict.show(current, dark)
    else:
        st.html(parts.output(current.trace, current.choice.languages.target))
    overview.show(current, dark)
    closeup.show(current, dark)
    compared.show(current, dark)
    compared.table(current)
    _keep(current)
    for panel in (alike.show, depth.show, switched_off.show, switched_off.importance):
        panel(current, dark)


def _text(fields: dict) -> str:
    """What is to be read: typed, or that of the saved trace."""
    model, source = fields["model"], fields["source"]
    if model == HF:
        return controls.own_text(source and source.limit)
    if model == SAVED:
        if source:
            st.html(parts.source(source.found, source.file))
        return source.found.text if source else ""
    return controls.sentence(ModelName.parse(model).pair)


def _compose(fields: dict, text: str, notice) -> Gallery | None:
    try:
        if fields["problem"]:
            raise fields["problem"]
        chosen = {name: value for name, value in fields.items() if name not in ("model", "problem")}
        current = scene.compose(Choice(text, **chosen), state.measure)
    except Waiting as error:
        notice.info(parts.markdown(str(error)), icon=":material/info:")
    except SceneError as error:
        notice.error(parts.markdown(str(error)), icon=":material/info:")
    else:
        state.remember(current, st.session_state, state.GALLERY)
        return current
    last = state.last(st.session_state, state.GALLERY)
    if last is not None:
        notice.caption(
            f"Below is still what {parts.markdown(last.choice.source.title)} made of the last text that could be shown:"
        )
        notice.text(last.choice.text)
    return last


def _keep(current: Gallery) -> None:
    st.download_button(
        "The whole trace (safetensors)",
        lambda: files.pack(current.trace),
        "trace.safetensors",
        on_click="ignore",
        key="keep",
        help="Everything that is shown here: to be opened again as “A saved trace”, or in Python with attnviz.load_trace().",
    )
