"""Small pieces of HTML. Every text that a person or a model wrote is escaped here."""

import html
import math
import re

import numpy as np

from attnviz import select, stats
from attnviz.figures import labels
from attnviz.figures.charts import STATISTICS, name_of
from attnviz.mechanisms import MECHANISMS
from attnviz.select import Grid
from attnviz.trace import Trace
from dashboard.pairs import Pair
from dashboard.scene import Part, Scene
from dashboard.settings import KINDS


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
    unknown = [token.text for token in part.trace.source if token.unknown]
    listed = ", ".join(f"‘{html.escape(text)}’" for text in dict.fromkeys(unknown))
    return listed and f" Not in the vocabulary, read as unknown: {listed}."


def which(part: Part) -> str:
    """The map in words, with layer and head where there are several."""
    grid = part.grid
    text = KINDS[grid.kind].split(" (")[0]
    if len(MECHANISMS[part.mechanism].kinds) == 1:
        return text
    heads = part.trace.map(grid.kind, grid.layer).weights.shape[0]
    return f"{text}, layer {grid.layer + 1}, " + (f"mean of its {heads} heads" if grid.head is None else f"head {grid.head + 1} of {heads}")


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
        listed = ", ".join(f"{KINDS[kind].split(' (')[0].lower()} ({', '.join(titles)})" for kind, titles in kinds.items())
        notes.append(f"The maps differ in kind: {listed}.")
        if "encoder" in kinds:
            notes.append("A step is a source token in the encoder and a target token elsewhere: equal steps are no pair.")
    if isinstance(keys, int):
        notes.append(f"Dotted: uniform attention over {keys} token{'' if keys == 1 else 's'}.")
    elif keys is not None:
        notes.append(f"Dotted: uniform attention over the tokens that each step may look at, up to {max(keys)}.")
    elif len(current.mapped) > 1:
        notes.append("No dotted line for uniform attention: the maps differ in how many tokens a step may look at.")
    notes.append("Effective positions = exp(entropy): how many positions an even spread of the same entropy would cover.")
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
        f"<i>{_said(labels.plain(other.text), language)} {other.probability:.3f}</i>" for other in part.shown.alternatives[index]
    ) or ("for alternatives, which are pieces, show pieces" if any(part.trace.alternatives) else "")
    return f'<p class="step">{_said(text, language, "b")}{chance}<span class="others">{others}</span></p>'


def weights_table(part: Part) -> str:
    """The text equivalent of a heatmap; nothing where there is none."""
    return part.grid and _grid_table(f"{part.title}: weights, one row a step", part, part.grid.weights, ".2f")


def difference_table(a: Part, b: Part) -> str:
    """The text equivalent of a difference of two maps."""
    return _grid_table(f"Weights of {a.title} minus {b.title}", a, select.difference(a.grid, b.grid), "+.2f")


def _grid_table(caption: str, part: Part, values: np.ndarray, form: str) -> str:
    return grid_table(caption, part.grid, part.languages, values, form)


def grid_table(caption: str, grid: Grid, languages: Pair, values: np.ndarray, form: str) -> str:
    """Values (Q, K) on the tokens of a map."""
    columns = [labels.plain(token.text) for token in grid.keys]
    rows = [(labels.plain(token.text), [cell(value, form, seen) for value, seen in zip(row, visible)])
            for token, row, visible in zip(grid.queries, values.tolist(), grid.visible.tolist())]  # fmt: skip
    return table(caption, columns, rows, _tags(grid, languages))


def _tags(grid: Grid, languages: Pair) -> tuple[str, str]:
    """Languages of a map's rows and columns."""
    source, target = languages.source, languages.target
    return (source if grid.kind == "encoder" else target, target if grid.kind == "decoder" else source)


def bars_table(part: Part, index: int) -> str:
    grid = part.grid
    if grid is None or index >= len(grid.queries):
        return ""
    rows = [(labels.plain(token.text), [cell(weight, ".4f", seen)])
            for token, weight, seen in zip(grid.keys, grid.weights[index].tolist(), grid.visible[index])]  # fmt: skip
    caption = f"{part.title}: weights of step {index + 1}, {labels.plain(grid.queries[index].text)}"
    return table(caption, ["weight"], rows, (_tags(part.grid, part.languages)[1], "en"))


def steps_table(part: Part) -> str:
    frame = part.frame
    chosen = ["entropy_nats", "max_weight", "effective_entropy"]
    rows = [(f"{i + 1} {labels.plain(token)}", [cell(value, ".3f") for value in row])
            for i, (token, row) in enumerate(zip(frame["token"], frame[chosen].to_numpy()))]  # fmt: skip
    return table(f"{part.title}, by step", [STATISTICS[name] for name in chosen], rows, (_tags(part.grid, part.languages)[0], "en"))


def left_out(current: Scene) -> str:
    """Who has no part in statistics and differences, because there is no attention to measure."""
    names = [part.title for part in current.parts if part.grid is None]
    return "".join(f'<p class="small">{html.escape(name)} has no attention: it has no statistics and no difference.</p>' for name in names)


def comparison_table(current: Scene) -> str:
    """Mean ± population standard deviation of every statistic, a column a mechanism."""
    summary = current.summary()
    mechanisms = list(dict.fromkeys(summary["mechanism"]))
    cells = {(row.mechanism, row.statistic): f"{row.mean:.2f} ± {row.std:.2f}" if math.isfinite(row.mean) else "–"
             for row in summary[["mechanism", "statistic", "mean", "std"]].itertuples(index=False)}  # fmt: skip
    special = "special_mass" if current.settings.special else "removed_mass"
    names = [name for name in stats.STATISTICS if name != "argmax"] + [special]
    rows = [(name_of(name), [cells.get((mechanism, name), "–") for mechanism in mechanisms]) for name in names]
    several = [f"{part.title}: {which(part).lower()}" for part in current.parts if len(MECHANISMS[part.mechanism].kinds) > 1]
    caption = "Mean ± standard deviation over the steps, of the weights drawn above" + "".join(f" ({text})" for text in several)
    return table(caption, mechanisms, rows)


def cell(value: float, form: str, seen: bool = True) -> str:
    """A number; a dash for what cannot be seen or is undefined."""
    return format(value, form) if seen and math.isfinite(value) else "–"


def table(
    caption: str, columns: list[str], rows: list[tuple[str, list[str]]], languages: tuple[str, str] = ("en", "en"), cells: str = "en"
) -> str:  # fmt: skip
    """A plain table that screen readers can walk; languages : of the names of rows and of columns; cells : of the cells."""
    row, column, inner = map(html.escape, (*languages, cells))
    head = "".join(f'<th scope="col" lang="{column}">{html.escape(name)}</th>' for name in columns)
    told = "" if cells == "en" else f' lang="{inner}" dir="auto"'
    body = "".join(
        f'<tr><th scope="row" lang="{row}">{html.escape(name)}</th>{"".join(f"<td{told}>{html.escape(text)}</td>" for text in texts)}</tr>'
        for name, texts in rows
    )
    return (
        f'<div class="scroll" tabindex="0"><table class="numbers"><caption>{html.escape(caption)}</caption>'
        f"<thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
