"""Small pieces of HTML that several pages use. Texts of people and models are escaped here."""

import functools
import html
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlencode

from attnviz.data.tasks import IN_VISIT
from attnviz.reading import sentence
from attnviz.select import Grid
from attnviz.trace import Trace
from attnviz.trace.visible import escaped, visible
from dashboard.choices import options, pairs

_SHOWN = 300  # characters of a saved text that stand above its maps
# parameters that mean the same on the first page and on that of one step
_SAME = ("pair", "text", "target", "force", "layer", "head", "beam", "tables", "guest")


@functools.lru_cache(4096)  # a page says each of its tokens many times
def escape(text: str) -> str:
    """The text, escaped for HTML. Characters that would reorder the following words are made visible."""
    return html.escape(escaped(text))


def markdown(text: str) -> str:
    """The text, escaped for Markdown, because Streamlit's messages quote typed text."""
    return re.sub(r"([\\`*_{}\[\]()#+!$:~<>|-])", r"\\\1", escaped(text))


def named_card(title: str, card: str) -> str:
    """The name and card of a model that is alone on its page."""
    return f'<div class="model"><p>{escape(title)}</p>{card}</div>'


def output(trace: Trace, language: str, piece: str = "piece", name: str = "") -> str:
    """The model's output, free or forced, and its log-probability.

    piece : the noun for a token. name : of the model, for screen readers, if the page has several.
    """
    if not trace.target:
        return (
            f'<p class="what" role="status">The model reads these {len(trace.source)} tokens. It does not write '
            "text.</p>"
        )
    text = in_language(trace.translation, language) if trace.translation else "<i>empty: the model ended at once</i>"
    how = "forced; " if trace.forced else ""
    cut = "" if trace.complete else " · cut at the length limit"
    log_prob = "no log-probability in this trace"
    if trace.log_probs:
        per_piece = number(trace.log_prob / len(trace.log_probs))
        log_prob = f"log-probability {number(trace.log_prob)} ({per_piece} per {piece})"
    whose = name and f' aria-label="{escape(name)} writes"'
    return f'<p class="said" role="status"{whose}>{text}<br><small>{how}{log_prob}{cut}</small></p>'


def continued(trace: Trace, piece: str, name: str = "") -> str:
    """The text as typed and what a model wrote after it, the last token marked. piece, name : as in `output`."""
    written = [token for token in trace.target[trace.given :] if not token.special]
    whole = trace.translation or trace.text  # a model of somebody's own only reads a text that it does not go on with
    start = written[0].start if written else len(whole)
    given, rest = whole[:start], whole[start:]
    last = f"<mark>{escape(trace.translation[written[-1].start :])}</mark>" if written else ""
    middle = escape(rest[: len(rest) - len(trace.translation[written[-1].start :])] if written else "")
    log_prob = sum(trace.log_probs[trace.given :])
    whose = name and f' aria-label="{escape(name)} writes"'
    return (
        f'<p class="said" role="status"{whose} style="white-space: pre-wrap">{escape(given)}<b>{middle}{last}</b><br>'
        f"<small>{len(written)} {piece}s written, in bold; their log-probability: "
        f"{number(log_prob)}</small></p>"
    )


def source(trace: Trace, file: str) -> str:
    """The text of a saved trace; a long one behind a click, so that its maps are in sight."""
    text = in_language(trace.text, "")
    if len(trace.text) > _SHOWN:
        first = in_language(f"{trace.text[:_SHOWN]} …", "")
        text = f"<details><summary>{first}</summary>{text}</details>"
    return (
        f'<div class="said">{text}<br><small>from {escape(file)} · {escape(trace.model)} · '
        f"{len(trace.source)} tokens</small></div>"
    )


def in_language(text: str, language: str, tag: str = "span") -> str:
    """A text in that language, escaped, with its own direction."""
    return f'<{tag} lang="{escape(language)}" dir="auto">{escape(text)}</{tag}>'


def number(value: float) -> str:
    """Two decimals with a typographic minus: `−0.17`, and `0.00` if it rounds to 0."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


_HATCHED = " Hatched: cells that the query cannot see. A decoder does not see the tokens that come after its own."


def hatched(grid: Grid) -> str:
    """An explanation of the hatched cells of a map; "" if it has none."""
    return "" if grid.visible.all() else _HATCHED


def hatched_heads(trace: Trace, kind: str) -> str:
    """The same for the maps of all heads of a kind."""
    return "" if all(trace.visible(heads).all() for heads in trace.maps if heads.kind == kind) else _HATCHED


def removed(grid: Grid) -> str:
    """The amount of hidden weight, as a sentence without its full stop; "" if there is none."""
    rows = [share for share in grid.removed.tolist() if not math.isnan(share)]
    share = sum(rows) / max(len(rows), 1)
    return f"Special tokens are hidden: {100 * share:.0f}% of the weight on average" if share else ""


def reading(grid: Grid, unit: str) -> str:
    """The main observation on a map, shown below it. unit : the noun for a word of these texts."""
    return f'<p class="reading">{escape(sentence(grid, unit))}</p>'


def unread(trace: Trace) -> str:
    """A sentence on the visible characters of the text that are in no token; "" if there are none."""
    places = {place for token in trace.source for place in range(token.start, token.end)}
    skipped = quoted(
        character
        for place, character in enumerate(trace.text)
        if place not in places and unicodedata.category(character)[0] not in "ZC"
    )
    return skipped and f" Not read, because the training reviews do not have them: {skipped}."


def quoted(texts: Iterable[str]) -> str:
    """Each token or character once, as in pictures, in quotes, escaped."""
    return ", ".join(f"‘{escape(visible(text))}’" for text in dict.fromkeys(texts))


def page_links(titles: Mapping[str, str], here: str) -> str:
    """Links between pages (HTML), which style.css shows on narrow screens. titles : by the path of a page; here : the
    path of this page.

    pages.js passes a click on to Streamlit's own link, which keeps the session; without it the address is loaded anew.
    """
    current = ' aria-current="page"'
    links = "".join(
        f'<a href="./{escape(path)}" target="_self"{current * (path == here)}>{escape(title)}</a>'
        for path, title in titles.items()
    )
    return f'<nav class="pages" aria-label="Pages">{links}</nav>'


def parts_list(titles: Iterable[str]) -> str:
    """HTML. titles : of the headings. skip.js scrolls to them, because a link would add an entry to the browser's
    history."""
    buttons = "".join(f'<button type="button">{escape(title)}</button>' for title in titles)
    return f'<nav class="parts" aria-label="Parts of this page">{buttons}</nav>'


def sentence_link(pair: str, mechanisms: Sequence[str], text: str, target: str | None = None, guest: str = "") -> str:
    """HTML: one of many sentences, as a link that opens it on the first page; that of a model that writes, on the page
    of heads. guest : the model of a person's own among the mechanisms.

    target : the forced output of the models.
    """
    if pairs.task(pair).writes:
        query = {"model": options.model_title(options.model(pair, mechanisms[0])), "text": text, "written": "0"}
        return _link(query, text, pairs.task(pair).source, "heads")
    query = {"pair": pairs.task(pair).title, "text": text, "show": [options.title(name) for name in mechanisms]}
    query |= {"target": options.target_title(options.TYPED), "force": target} if target else {}
    query |= {"guest": guest} if guest else {}
    return _link(query, text, pairs.task(pair).source)


def map_link(translation: str, language: str, query: Mapping[str, str | list[str]]) -> str:
    """HTML: a translation, as a link to the maps of all models with it as the forced output. query : the
    parameters of the first page."""
    return _link({**query, "target": options.target_title(options.TYPED), "force": translation}, translation, language)


def _link(query: Mapping[str, str | list[str]], text: str, language: str, page: str = "") -> str:
    """A text in a language, which leads to a page. A link opens a new visit, where what was trained is not."""
    if _in_visit(query):
        return f'<span lang="{escape(language)}" dir="auto">{escape(text)}</span>'
    address = f"./{page}?" + urlencode(query, doseq=True)
    return f'<a href="{escape(address)}" target="_self" lang="{escape(language)}" dir="auto">{escape(text)}</a>'


def _in_visit(query: Mapping[str, str | list[str]]) -> bool:
    """Is the pair one whose models the visitor has trained?"""
    return str(query.get("pair", "")).endswith(IN_VISIT)


def step_link(query: Mapping[str, str | list[str]], mechanisms: Sequence[str], step: int) -> str:
    """HTML: a link from the first page that opens a step (from 0) of the mechanisms that attend; without any, an empty
    paragraph.

    query : the parameters of the first page.
    """
    attending = [options.title(name) for name in mechanisms if options.facts(name).kinds]
    if not attending:
        return "<p></p>"
    if _in_visit(query):
        return '<p class="open-step">The page “Inside a step” above opens a step.</p>'
    same = {key: value for key, value in query.items() if key in _SAME}
    is_cross = query.get("kind", options.KINDS["cross"]) == options.KINDS["cross"]
    if is_cross and any(options.facts(name).multi_head for name in mechanisms):
        same.setdefault("head", options.head_title(None))  # the first page starts with the mean, the other with head 1
    else:
        same = {key: value for key, value in same.items() if key not in ("layer", "head")}
    address = "inside?" + urlencode(same | {"show": attending, "step": options.place_title(step)}, doseq=True)
    return f'<p class="open-step"><a href="{escape(address)}" target="_self">Open this step ›</a></p>'
