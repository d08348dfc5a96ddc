"""The widgets that several pages share. Each is bound to the URL, so a link reopens the view."""

import json
from collections.abc import Callable, Iterable, Sequence

import streamlit as st

from attnviz.data.tasks import Task
from attnviz.models.names import HuggingFaceName, ModelName, is_hugging_face, without_prefix
from dashboard.choices import options, pairs, settings
from dashboard.markup.text import escape, markdown
from dashboard.session import caches, catalogue
from dashboard.shell.problems import SceneError, Waiting

MEAN = -1  # among the options of the head: a button group takes no None
NO_EXAMPLES = (
    "This pair has no example sentences: no card of its models holds any. A training writes some of its validation "
    "sentences there when it ends."
)
_ALLOWED = "own_allowed"  # the name that may be looked up on the hub, in this session
_BESIDE = "guest"  # the control of a model that stands beside the mechanisms
_OVER = "over_most"  # in the session when one mechanism too many was asked for


def brand(tag: str) -> None:
    """The name above the controls, and the purpose of the page."""
    st.html(f"<h1 class='brand'>attnviz</h1><h2 class='tag'>{escape(tag)}</h2>")


def language_pair(offered: Iterable[str], on_change: Callable[[], None] = lambda: None) -> str:
    """The first control: models, languages and examples depend on it."""
    return st.selectbox(
        "Language pair",
        list(offered),
        format_func=lambda name: pairs.task(name).title,
        key="pair",
        bind="query-params",
        on_change=on_change,
    )


def sentence(pair: str, on_change: Callable[[], None] = lambda: None) -> str:
    """The sentence, and example sentences below it. on_change : called when another sentence is typed or clicked."""
    facts = pairs.task(pair)
    field = st.text_area if facts.writes else st.text_input  # a text that is written on may have lines
    text = field(facts.ask, facts.first, key="text", bind="query-params", placeholder=facts.hint, on_change=on_change)
    over = ' over" role="status' if len(text) > options.limit(facts) else ""
    st.html(
        f'<div class="count{over}" data-most="{_most(facts)}" data-limit="{options.limit(facts)}" '
        f'data-unit="{facts.unit}" data-firsts="{escape(_firsts())}">{counted(text, facts)}</div>'
    )
    with st.container(horizontal=True, gap="xxsmall", key="examples"):
        for position, example in enumerate(facts.examples):
            st.button(
                markdown(example), key=f"example{position}", type="tertiary", on_click=_use, args=(example, on_change)
            )
        if facts.failing:
            st.button(
                f"Goes wrong: {markdown(facts.failing)}",
                key="failing",
                type="tertiary",
                on_click=_use,
                args=(facts.failing, on_change),
                help="The models translate this sentence badly. It is here to show how that looks.",
            )
    if not facts.offered:
        st.html(f'<p class="small">{NO_EXAMPLES}</p>')
    return text


def one_sentence(text: str, sentences: Sequence[str]) -> str:
    """The shown sentence of a long text; `text` itself without sentences. sentences : `caches.one_by_one`."""
    if not sentences:
        return text
    count = len(sentences)
    if st.session_state.get("sentence", 1) > count:
        st.session_state["sentence"] = 1
    st.html(
        '<p class="notice" role="status">This text is longer than those that the models learnt from. '
        f"So each of its {count} sentences is translated alone.</p>"
    )
    chosen = st.pagination(count, key="sentence", bind="query-params")
    st.html(f'<p class="notice" role="status">Sentence {chosen} of {count}: {escape(sentences[chosen - 1])}</p>')
    return sentences[chosen - 1]


def _firsts() -> str:
    """The default sentence of an address without one, by its pair or model, for history.js."""
    of_pairs = {pairs.task(name).title: pairs.task(name).first for name in catalogue.offered() | catalogue.attending()}
    of_models = {
        options.model_title(name): pairs.task(ModelName.parse(name).pair).first for name in catalogue.many_headed()
    }
    brought = {options.model_title(name): pairs.ANY.first for name in (options.HF, options.SAVED)}
    default = {"": next(iter(of_pairs.values()))}
    return json.dumps(default | of_pairs | of_models | brought)


def _use(example: str, on_change: Callable[[], None]) -> None:
    st.session_state["text"] = example
    on_change()


def _most(facts: Task) -> str:
    """The largest length of a text. A model that writes has its own context size, which its error names."""
    return (
        f"{options.limit(facts):,} characters"
        if facts.writes
        else f"{options.LIMIT} characters (and {options.PIECES} {facts.piece}s)"
    )


def counted(text: str, facts: Task = pairs.ANY) -> str:
    """The length of a sentence and its limit. bridge.js shows the same words while one types."""
    words, most = text.split(), _most(facts)
    count = sum(map(len, words)) if facts.unit == "letter" else len(words)
    return f"{count} {facts.unit}{'' if count == 1 else 's'} · {len(text)} of at most {most}"


def models(pair: str, offered: list[str]) -> tuple[list[str], list[str], str]:
    """The offered mechanisms, with models listed beside them; those chosen; and the typed name of a model.

    The operator names such models (`settings.beside`), and a visitor one. Of one that cannot be shown there, the page
    says why.
    """
    above = st.container()
    typed = _beside(pairs.task(pair).writes)
    named = [*map(catalogue.guest, settings.beside().get(pair, ())), *filter(None, [typed])]
    listed = [*offered, *dict.fromkeys(named)]
    keep_those(listed)
    writes = pairs.task(pair).writes
    with above:
        chosen = listed if writes and len(listed) == 1 else mechanisms(listed)
        chosen = [name for name in chosen if not is_hugging_face(name) or _stands(name, writes)]
    return listed, chosen, without_prefix(st.session_state[_BESIDE].strip()) if typed else ""


def layers_and_heads(models: Sequence[str]) -> tuple[int, int]:
    """The largest numbers of layers and heads of these models (see `catalogue.layers_and_heads`)."""
    counts = [_cross_of(name) if is_hugging_face(name) else catalogue.layers_and_heads(name) for name in models]
    layers, heads = zip(*(counts or [(1, 1)]))
    return max(layers), max(heads)


def _cross_of(name: str) -> tuple[int, int]:
    try:
        return caches.guest(name).cross
    except ValueError:  # whoever traces a text says what is wrong
        return 1, 1


def _beside(writes: bool) -> str:
    """A visitor's model that translates, or writes on; "" without one (the page shows the reason if it is not
    suitable)."""
    if not {settings.FOLDERS, settings.HUB} & settings.allowed():
        return ""
    try:
        name = named_model(
            _BESIDE, "A model of yours beside them", *(options.A_WRITER if writes else options.A_TRANSLATOR)
        )
    except (ValueError, OSError) as error:
        _refuse(error)
        return ""
    return name if name and _stands(name, writes) else ""


def _stands(name: str, writes: bool) -> bool:
    """Can a model of the transformers library stand beside the mechanisms, or, with `writes`, beside a model that
    writes? Else the page says why not."""
    try:
        guest = caches.guest(name)
        if writes and not guest.writes_on:
            raise SceneError(f"{options.title(name)} does not write a text on. The page “Heads and layers” shows it.")
        if not writes and "cross" not in guest.kinds:
            raise SceneError(
                f"{options.title(name)} reads a text and produces none. The page “Heads and layers” shows it."
            )
    except (ValueError, OSError) as error:  # a model that cannot be shown; a folder that cannot be read
        _refuse(error)
        return False
    return True


def _refuse(error: Exception) -> None:
    problem = error if isinstance(error, SceneError) else f"{without_prefix(str(error))}."
    st.html(f'<p class="over" role="status">{escape(str(problem))}</p>')


def named_model(key: str, label: str, placeholder: str, words: str) -> str:
    """The name of a model of the transformers library that a visitor types; "" for none. words : of its help.

    A name on the hub is looked up when it is typed, or at a click. Raises Waiting before that, SceneError if this
    server does not open it.
    """
    typed = st.text_input(
        label, key=key, bind="query-params", on_change=_take_typed, args=(key,), placeholder=placeholder, help=words
    )
    name = without_prefix(typed.strip())
    if not name:
        return ""
    _check_allowed(name)
    if not catalogue.is_folder(HuggingFaceName(name)) and st.session_state.get(_ALLOWED) != name:
        st.button("Look it up on the Hugging Face hub", key="look_up", on_click=_allow, args=(name,))
        raise Waiting(
            f"{name[:80]} is not a folder on this machine. Click the button on the left to load it from the Hugging "
            "Face hub. The hub then sees your IP address and this name."
        )
    return catalogue.guest(name)


def _check_allowed(name: str) -> None:
    """Raises SceneError if this server does not open it. The message does not reveal which folders exist."""
    here = settings.allowed()
    if settings.FOLDERS not in here and (
        not catalogue.ON_HUB.fullmatch(HuggingFaceName(name).place) or catalogue.is_folder(HuggingFaceName(name))
    ):
        raise SceneError("This server opens models by their names on the Hugging Face hub, and no folders.")
    if settings.HUB not in here and not catalogue.is_folder(HuggingFaceName(name)):
        raise SceneError("This server opens models from folders only, not from the Hugging Face hub.")


def _allow(name: str) -> None:
    st.session_state[_ALLOWED] = name


def _take_typed(key: str) -> None:
    """Look up a typed name (names from links are not looked up). A model listed beside the mechanisms is also
    chosen."""
    name = without_prefix(st.session_state[key].strip())
    _allow(name)
    if key == _BESIDE and name:
        others = [other for other in st.session_state.get("show", ()) if not is_hugging_face(other)]
        st.session_state["show"] = [*others[: options.MOST - 1], catalogue.guest(name)]


def mechanisms(offered: list[str]) -> list[str]:
    """Up to MOST of the mechanisms on offer."""
    chosen = st.pills(
        f"Mechanisms, up to {options.MOST}" if len(offered) > options.MOST else "Mechanisms",
        offered,
        selection_mode="multi",
        default=pairs.first(offered),
        format_func=options.title,
        key="show",
        bind="query-params",
        on_change=_hold,
    )
    if st.session_state.pop(_OVER, False) or len(chosen) > options.MOST:  # more than that come with a link
        st.html(
            f'<p class="over" role="status">At most {options.MOST} mechanisms fit side by side. '
            "Remove one to add another.</p>"
        )
    return chosen[: options.MOST]


def keep_those(offered: list[str]) -> None:
    """Of the mechanisms from another page or pair, keep those that are offered."""
    session = st.session_state
    if "show" in session and not set(session["show"]) <= set(offered):
        session["show"] = pairs.carried_over(session["show"], offered)


def _hold() -> None:
    """Keep the first MOST."""
    chosen = st.session_state["show"]
    st.session_state[_OVER] = len(chosen) > options.MOST
    st.session_state["show"] = chosen[: options.MOST]


def target(pair: str, mechanisms: list[str], on_change: Callable[[], None] = lambda: None) -> dict:
    """The control of the models' output: their own texts, or one text for all -> `target` and `forced`."""
    output = pairs.task(pair).output
    chosen = st.selectbox(
        output[0].upper() + output[1:],
        [options.OWN, options.TYPED, *(options.FROM + name for name in mechanisms)],
        format_func=options.target_title,
        key="target",
        bind="query-params",
        on_change=on_change,
        help="Each model writes its own text, or all models are made to write the same text (forced decoding). "
        "Two maps can be subtracted only when both models write the same text.",
    )
    typed = st.text_input(
        "Text for all models",
        key="force",
        bind="query-params",
        disabled=chosen != options.TYPED,
        placeholder=f"for example: {pairs.task(pair).forced}",
        on_change=on_change,
    )
    return {"target": chosen, "forced": typed}


def beam() -> int:
    """The number of hypotheses in decoding: 1 is greedy."""
    return st.segmented_control(
        "Decoding",
        list(options.BEAMS),
        default=1,
        required=True,
        format_func=options.BEAMS.get,
        key="beam",
        bind="query-params",
        help="Greedy decoding takes the most probable piece at each step. A beam of 5 keeps the five most probable "
        "texts.",
    )


def words(facts: Task = pairs.ANY) -> bool:
    """Are maps of whole words shown, not of subword pieces? No control if each token is a letter."""
    if facts.piece != "piece":
        return False
    units = st.segmented_control(
        "Tokens",
        ["pieces", "words"],
        default="pieces",
        required=True,
        key="units",
        bind="query-params",
        help="Models read pieces of words. For whole words, weights are summed over the pieces of a key and averaged "
        "over the pieces of a query.",
    )
    return units == "words"


def special(scope: str = "") -> bool:
    """Are special tokens shown? scope : a sentence that says where this applies."""
    return st.toggle(
        "Show special tokens",
        True,
        key="special",
        bind="query-params",
        help="For example `<eos>`, which marks the end of a text. When special tokens are hidden, the other weights "
        f"are scaled so that each row sums to 1, and the page says how much weight was removed. {scope}".strip(),
    )


def tables() -> bool:
    """The switch that shows the numbers below each chart."""
    return st.toggle(
        "Charts as tables too",
        key="tables",
        bind="query-params",
        help="Shows the numbers of each chart in a table below it.",
    )


def layer(layers, default: int, **look) -> int:
    """The layer, counted from 1 on the page and from 0 here."""
    return st.segmented_control(
        "Layer",
        layers,
        default=default,
        format_func=options.place_title,
        key="layer",
        required=True,
        bind="query-params",
        **look,
    )


def head(count: int, default: int, **look) -> int | None:
    """One of `count` heads; None for the mean of heads. default : an option of `head_options`."""
    return head_of(
        st.segmented_control(
            "Head",
            head_options(count),
            default=default,
            format_func=lambda option: options.head_title(head_of(option)),
            key="head",
            required=True,
            bind="query-params",
            **look,
        )
    )


def head_options(count: int) -> list[int]:
    """The options of the control of heads, as stored in the session."""
    return [MEAN, *range(count)]


def head_of(option: int) -> int | None:
    """The head of an option of the control; None for the mean of heads."""
    return None if option == MEAN else option
