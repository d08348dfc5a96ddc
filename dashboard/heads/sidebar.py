"""The sidebar of the page of heads: the model, the kind of attention, and how heads are shown."""

import streamlit as st

from attnviz.models import measured
from attnviz.models.names import HuggingFaceName, ModelName, is_hugging_face, without_prefix
from attnviz.trace import uploads
from dashboard.choices import pairs, settings
from dashboard.choices.options import HF, KINDS, SAVED, model_title
from dashboard.compare.caches import course
from dashboard.heads import sources
from dashboard.heads.scene import COLUMNS, ORDER, HeadsScene, Source
from dashboard.session import caches, catalogue, memory
from dashboard.shell import frame, widgets
from dashboard.shell.problems import SceneError, Waiting, sentence


def show() -> dict:
    """Everything but the text -> fields of HeadsChoices, `source` is None if there is a `problem`; model : of the
    control."""
    widgets.brand("Every layer and head of one model: overview, close-up, statistics, and heads switched off.")
    model = st.selectbox(
        "Model",
        [*catalogue.many_headed(), *_brought()],
        format_func=model_title,
        key="model",
        bind="query-params",
        on_change=_enter,
    )
    source, problem = _source(_trained_for(model))
    kinds = source.kinds if source else ORDER
    kind = st.selectbox("Which attention", kinds, format_func=KINDS.get, key="kind", bind="query-params")
    fields = {"model": model, "problem": problem, "source": source, "kind": kind, "output": _output(source)}
    fields |= _overview()
    scope = "This applies to the close-up and to compared heads. The other panels include special tokens."
    words = widgets.words(source.languages if source else pairs.ANY)
    return fields | {"words": words, "special": widgets.special(scope), "tables": widgets.tables()}


def _trained_for(model: str) -> str:
    """The model, or a model that writes at the chosen moment of its training, where some are packed."""
    if model in (HF, SAVED) or not pairs.task(ModelName.parse(model).pair).writes or not (rows := course(model)):
        return model
    moment = frame.moment(len(rows), "a training", "moment")
    return model if moment < 0 else f"{model}@{moment}"


def _brought() -> list[str]:
    """The kinds of models and files from elsewhere that a visitor may open on this server."""
    here = settings.allowed()
    return [HF] * bool({settings.FOLDERS, settings.HUB} & here) + [SAVED] * (settings.UPLOADS in here)


def _output(source: Source | None) -> str:
    """The forced output; "" for the model's own, and for a model without output."""
    if source is None or not source.writes:
        return ""
    return st.text_input(
        f"{source.languages.output.capitalize()} to force",
        key="output",
        bind="query-params",
        placeholder="empty: the model's own",
        help="The model is made to produce this text (forced decoding), and all maps are of it.",
    )


def _source(model: str) -> tuple[Source | None, SceneError | None]:
    """The source of the control, ready to trace; or the reason why it is not."""
    try:
        return {HF: _own, SAVED: _saved}.get(model, lambda: sources.TrainedSource(model))(), None
    except SceneError as error:
        return None, error
    except (ValueError, OSError) as error:  # a model or a file that cannot be shown; a folder that cannot be read
        text = str(error)  # one that begins with the name of a model leaves it as it is
        named = is_hugging_face(text)
        return None, SceneError(f"{without_prefix(text)}." if named else sentence(text))


def _own() -> Source:
    name = widgets.named_model(
        "own",
        "Folder, or name on the Hugging Face hub",
        "./my-bert or openai-community/gpt2",
        "A model with its tokenizer, as save_pretrained() of the transformers library writes it: for example "
        "BERT, GPT, T5, BART or Marian. Weights are read from safetensors files only. Code that comes with a model is "
        "never run. For one that wants a prefix, such as T5, put #prefix=translate English to German: behind its name.",
    )
    if not name:
        raise Waiting("Type the folder of a model on the left, or its name on the Hugging Face hub.")
    source = sources.HuggingFaceSource(name)
    if source.guest.reads_pairs:
        st.caption("Two sentences at once: type ||| between them.")
    return (
        _between(source) if source.guest.codes and not any(HuggingFaceName(without_prefix(name)).languages) else source
    )


def _between(source: sources.HuggingFaceSource) -> Source:
    """The model for the chosen languages; "" for its own."""
    codes = {"options": ["", *source.guest.codes], "format_func": lambda code: code or "the model's own"}
    read = st.selectbox("Language of the text", key="from_language", bind="query-params", **codes)
    produced = st.selectbox("Language to produce", key="to_language", bind="query-params", **codes)
    return sources.HuggingFaceSource(f"{source.name}#{read}:{produced}") if read or produced else source


def _saved() -> Source:
    file = st.file_uploader(
        "Trace, or arrays of weights",
        [ending.removeprefix(".") for ending in uploads.ENDINGS],
        key="file",
        help="A file written by attnviz.save_trace() or Trace.to_json(); or weights after the softmax as .npz, .npy, "
        ".safetensors or JSON, from any library. Arrays may have their tokens beside them, under the name “tokens”.",
    )
    if file is None:
        raise Waiting(
            "Choose a file on the left: a trace that attnviz.save_trace() has written, or arrays of weights. (A link "
            "to this page does not hold the file.)"
        )
    if measured.is_reduced(file.getvalue()):
        content = file.getvalue()
        value_key = ("file", file.file_id, "reduced")
        reduced = caches.keep(value_key, lambda: measured.unpack_reduced(content, file.name), lambda made: made.nbytes)
        return sources.TraceSource(("trace", file.file_id), file.name, reduced.trace, reduced)
    reading = uploads.Reading() if uploads.is_trace(file.getvalue()) else _reading(file)
    try:
        return sources.TraceSource(("trace", file.file_id, reading), file.name, caches.uploaded(file, reading))
    except uploads.TokensMissing as error:
        raise Waiting(f"{sentence(str(error))} Type its tokens on the left, with spaces between them.") from None


def _reading(file) -> uploads.Reading:
    """The visitor's description of arrays, with the argument names of `attnviz.from_arrays`, which errors use. What was
    typed for one file is cleared for the next one, where that file has it itself."""
    if st.session_state.get("array_file") != file.file_id:
        st.session_state["array_file"] = file.file_id
        for name in uploads.described(file.getvalue(), file.name):
            st.session_state[f"array_{name}"] = ""
    tokens = st.text_input(
        "Tokens of the arrays",
        key="array_tokens",
        placeholder="as in the file",
        help='Of the source, with spaces between them, or a JSON list: ["New York", "is"]. Empty: those of the file.',
    )
    with st.expander("How to read the arrays"):
        target = st.text_input("Target tokens", key="array_target", help="Of a decoder: the tokens it produced.")
        kind = st.selectbox(
            "Kind", ["", *ORDER], format_func=lambda kind: KINDS.get(kind, "by the file"), key="array_kind"
        )
        batch = st.number_input("Text of the batch, from 0", 0, None, None, key="array_batch")
        padding = st.text_input("Padding tokens", key="array_padding", placeholder="<pad>")
        sink = st.toggle(
            "Column for the rest", key="array_rest", help="Holds what each row lacks of 1 (attention sinks)."
        )
    return uploads.Reading(tokens, target, padding, kind or None, batch, sink)


def _overview() -> dict:
    """How the overview orders, frames and shades the heads."""
    columns = {"options": ["", *COLUMNS], "bind": "query-params"}
    order = st.selectbox(
        "Order of the heads",
        format_func=lambda name: COLUMNS.get(name, "layer by layer"),
        key="order",
        **columns,
        help="Sorts the heads by the mean of a statistic over the rows, highest first.",
    )
    color = st.selectbox("Frames show", format_func=lambda name: COLUMNS.get(name, "nothing"), key="color", **columns)
    root = st.toggle(
        "Make small weights visible",
        key="faint",
        bind="query-params",
        help="Colours in the overview follow the square root of the weights.",
    )
    return {"order": order, "color": color, "root": root}


def _enter() -> None:
    """After a change of the model, keep the text, unless its language differs or the text was an example."""
    model, text = st.session_state["model"], st.session_state.get("text")
    facts = pairs.ANY if model in (HF, SAVED) else sources.TrainedSource(model).languages
    last: HeadsScene | None = memory.last(st.session_state, "heads")
    before = last.choices.languages if last else facts
    other = before.source and facts.source and before.source != facts.source
    if text is not None and (other or text in before.offered):
        st.session_state["text"] = facts.first
    st.session_state["output"] = ""
