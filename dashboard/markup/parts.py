"""Small pieces of HTML. Every text that a person or a model wrote is escaped here."""

import html
import math
import re
import unicodedata
from collections.abc import Iterable

from plotly.graph_objects import Figure

from attnviz.figures import labels
from attnviz.mechanisms import MECHANISMS
from attnviz.select import Grid
from attnviz.trace import Trace
from dashboard.choices.settings import KINDS
from dashboard.compare.scene import Part, Scene

HALF = 440  # px of a column on the page of heads, where there are two


def markdown(text: str) -> str:
    """A text that says the same as Markdown: for Streamlit's messages, which quote what people typed."""
    return re.sub(r"([\\`*_{}\[\]()#+!$:~<>|-])", r"\\\1", text)


def header(part: Part, ink: str, card: str) -> str:
    """Name and source of a mechanism, and its card; `ink` is its colour in all charts."""
    mechanism = MECHANISMS[part.mechanism]
    return (
        f'<div class="part" style="--ink:{ink}"><h3>{html.escape(mechanism.title)}</h3>{card}'
        f'<p class="paper">{html.escape(mechanism.paper)}</p><p class="why">{html.escape(mechanism.words)}</p></div>'
    )


def model(title: str, card: str) -> str:
    """The name of a model that is alone on its page, and its card."""
    return f'<div class="model"><p>{html.escape(title)}</p>{card}</div>'


def whose(part: Part, ink: str) -> str:
    """The mechanism's name again, where its bars do not stand under its heatmap because the columns are not all in a row."""
    return f'<p class="whose" style="--ink:{ink}">{html.escape(part.title)}</p>'


def translation(part: Part) -> str:
    """What the model said, or was made to say, and how probable that is to it."""
    return output(part.trace, part.languages.target)


def output(trace: Trace, language: str) -> str:
    """The same of a trace alone."""
    if not trace.target:
        return f'<p class="what" role="status">The model reads these {len(trace.source)} tokens and writes no text of its own.</p>'
    said = _said(trace.translation, language) if trace.translation else "<i>nothing: it ended at once</i>"
    how = "forced; " if trace.forced else ""
    cut = "" if trace.complete else " · cut at the length limit"
    chance = "its probability is not known"
    if trace.log_probs:
        chance = f"log-probability {trace.log_prob:.2f} ({trace.log_prob / len(trace.log_probs):.2f} a piece)"
    return f'<p class="said" role="status">{said}<br><small>{how}{chance}{cut}</small></p>'


def source(trace: Trace, file: str) -> str:
    """The text of a trace that nobody typed here."""
    return (
        f'<p class="said">{_said(trace.text, "")}<br><small>from {html.escape(file)} · {html.escape(trace.model)} · '
        f"{len(trace.source)} tokens</small></p>"
    )


def _said(text: str, language: str, tag: str = "span") -> str:
    """A text of that language, escaped; its direction is its own."""
    return f'<{tag} lang="{html.escape(language)}" dir="auto">{html.escape(text)}</{tag}>'


def shown(part: Part) -> str:
    """Which map is drawn, said plainly, and what was hidden of it."""
    grid, text = part.grid, which(part)
    if hidden := removed(grid):
        text += f"; {hidden}"
    return f'<p class="what">{text}.{_unknown(part)}{_linked(part)}</p>'


def removed(grid: Grid) -> str:
    """What was hidden of a map, in words; nothing when nothing was."""
    share = 100 * float(grid.removed.mean())
    return f"special tokens hidden, {share:.0f} % of the weight removed on average" if grid.removed.any() else ""


def _linked(part: Part) -> str:
    if part.links is None:
        return ""
    return (
        f' <span class="linked">Outlined: links set by hand, dashed if only possible. Alignment error rate of this sentence '
        f"<b>{part.links.error:.2f}</b>, of the diagonal {part.links.diagonal:.2f}.</span>"
    )


def unattended(part: Part, numbers: int) -> str:
    """What stands where others have their heatmap; numbers : how wide the vector is."""
    return (
        f'<p class="unattended"><b>No attention:</b> the whole sentence is squeezed into one vector of {numbers} numbers, the same '
        f"at every step. Nothing says where it looks.{_unknown(part)}</p>"
    )


def _unknown(part: Part) -> str:
    """Which characters no model of the pair knows, in the sentence and in a text that all are made to produce."""
    given = [*part.trace.source, *(part.trace.target if part.trace.forced else ())]
    unknown = _quoted(token.text for token in given if token.unknown)
    return unknown and f" Not in the vocabulary, read as unknown: {unknown}."


def unread(trace: Trace) -> str:
    """Which visible characters of the text are in no token, in words; nothing when all are in one."""
    read = {place for token in trace.source for place in range(token.start, token.end)}
    left = _quoted(
        character
        for place, character in enumerate(trace.text)
        if place not in read and unicodedata.category(character)[0] not in "ZC"
    )
    return left and f" Not read, as the reviews it learnt from have none: {left}."


def _quoted(texts: Iterable[str]) -> str:
    return ", ".join(f"‘{html.escape(text)}’" for text in dict.fromkeys(texts))


def which(part: Part) -> str:
    """The map in words, with layer and head where there are several."""
    grid = part.grid
    text = KINDS[grid.kind].split(" (")[0]
    if len(MECHANISMS[part.mechanism].kinds) == 1:
        return text
    heads = part.trace.map(grid.kind, grid.layer).weights.shape[0]
    return f"{text}, layer {grid.layer + 1}, " + (
        f"mean of its {heads} heads" if grid.head is None else f"head {grid.head + 1} of {heads}"
    )


def step_meaning(current: Scene) -> str:
    """What a step is: a query of a map is a source token in the encoder, a target token elsewhere."""
    sources = {part.grid is not None and part.grid.kind == "encoder" for part in current.parts}
    if len(sources) > 1:
        return "which row of each map"
    return "which source token is looking" if sources.pop() else "which target token is produced"


def steps_note(current: Scene) -> str:
    """What must be known to read the statistics by step: the dotted line, and what the maps do not have in common."""
    keys, kinds = current.keys, {}
    for part in current.mapped:
        kinds.setdefault(part.grid.kind, []).append(part.title)
    notes = []
    if len(kinds) > 1:
        listed = ", ".join(
            f"{KINDS[kind].split(' (')[0].lower()} ({', '.join(titles)})" for kind, titles in kinds.items()
        )
        notes.append(f"The maps differ in kind: {listed}.")
        if "encoder" in kinds:
            notes.append(
                "A step is a source token in the encoder and a target token elsewhere: equal steps are no pair."
            )
    if isinstance(keys, int):
        notes.append(f"Dotted: uniform attention over {keys} token{'' if keys == 1 else 's'}.")
    elif keys is not None:
        notes.append(f"Dotted: uniform attention over the tokens that each step may look at, up to {max(keys)}.")
    elif len(current.mapped) > 1:
        notes.append("No dotted line for uniform attention: the maps differ in how many tokens a step may look at.")
    notes.append(
        "Effective positions = exp(entropy): how many positions an even spread of the same entropy would cover."
    )
    return html.escape(" ".join(notes))


def step(part: Part, index: int) -> str:
    """The token of a row, its probability, and what else the model might have said."""
    tokens, language = part.queries, part.languages.target
    if index >= len(tokens):
        return f'<p class="step">This text ends after {len(tokens)} steps.</p>'
    text = labels.plain(tokens[index].text)
    if part.grid and part.grid.kind == "encoder":
        return f'<p class="step">Source token {index + 1}: {_said(text, part.languages.source, "b")}</p>'
    known = part.shown.log_probs  # <eos> is last, so hiding it moves no step
    chance = f" with probability {math.exp(known[index]):.3f}" if known else ""
    others = " ".join(  # with a space, where the line may break
        f"<i>{_said(labels.plain(other.text), language)} {other.probability:.3f}</i>"
        for other in part.shown.alternatives[index]
    ) or ("for alternatives, which are pieces, show pieces" if any(part.trace.alternatives) else "")
    return f'<p class="step">{_said(text, language, "b")}{chance}<span class="others">{others}</span></p>'


def lines(figure: Figure) -> str:
    """What a picture of lines has lines for, and how it is read."""
    least = figure.layout.meta["least"]
    if not figure.layout.shapes:
        return f"No weight reaches {least:g}, so there is no line: these rows look at everything about alike"
    return f"Lines for weights of at least {least:g}. Point at a token on the left for its row, on the right for its column"


def left_out(current: Scene) -> str:
    """Who has no part in statistics and differences, because there is no attention to measure."""
    names = [part.title for part in current.parts if part.grid is None]
    return "".join(
        f'<p class="small">{html.escape(name)} has no attention: it has no statistics and no difference.</p>'
        for name in names
    )
