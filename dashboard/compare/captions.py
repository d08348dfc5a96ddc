"""Words beside the charts of the page that compares mechanisms, as HTML.

Texts of people and models are escaped here.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from attnviz import across
from attnviz.confidence import Judge, Judgement
from attnviz.data.sentences import notices as read_otherwise
from attnviz.figures import labels
from attnviz.figures.wording import listed, row_name
from attnviz.reading import blurred, sharp
from attnviz.select import Grid
from attnviz.stats import measure_grid
from attnviz.trace import Hypothesis, Trace
from dashboard.choices.options import SHIFTS, kind_title
from dashboard.compare.scene import Column, CompareChoices, CompareScene
from dashboard.markup.text import escape, hatched, in_language, map_link, output, quoted, removed
from dashboard.session.caches import reference

_SHARPEST = 0.005  # normalised entropy that is written as 0.00: all weights are 1, and many sentences tie


def header(column: Column, ink: str, card: str) -> str:
    """Name and source of a mechanism, and its card; `ink` is its colour in all charts."""
    mechanism = column.mechanism
    return (
        f'<div class="part" style="--ink:{ink}"><h3>{escape(mechanism.title)}</h3>{card}'
        f'<p class="paper">{escape(mechanism.paper)}</p><p class="why">{escape(mechanism.words)}</p></div>'
    )


def trained_for(current: CompareScene, courses: Mapping[str, Sequence[dict]]) -> str:
    """The moment of training that each model shows, and a note that its run differs from the shipped model's."""
    moment, shown = current.choices.moment, current.choices.courses
    places = []
    for name, rows in courses.items():
        row = rows[moment]
        measured = f"loss {row['loss']:.2f} nats a token, BLEU {row['bleu_lc']:.1f}"
        places.append(f"{escape(name)} after {row['update']:,} updates: {measured}")
    others = [column.title for column in current.columns if column.mechanism.name not in shown]
    words = f" {escape(listed(others))}: shown as it ships, because no moments of its training ship." if others else ""
    return (
        f'<p class="what">{"; ".join(places)}.{words} These moments are of a run of their own. The last one is the '
        "model of that run and not the model that ships, which was trained in another way. Choose “as it ships” to "
        "see that one and its card.</p>"
    )


def repeated_name(column: Column, ink: str) -> str:
    """The mechanism's name again, for screens on which its bars are not under its heatmap."""
    return f'<p class="whose" style="--ink:{ink}">{escape(column.title)}</p>'


def translation(column: Column) -> str:
    """The model's output, free or forced, and its log-probability."""
    return output(column.trace, column.languages.target, column.languages.piece, column.title)


def whole(column: Column, translations: Sequence[str], choices: CompareChoices) -> str:
    """The translations of all sentences of a long text, the shown one in bold; "" without any."""
    tags = ("b" if sentence == choices.text else "span" for sentence in choices.sentences)
    texts = " ".join(in_language(text, column.languages.target, tag) for tag, text in zip(tags, translations))
    return f'<p class="what">The whole text, sentence by sentence: {texts}</p>' if texts else ""


def of_beam(column: Column, hypotheses: Sequence[Hypothesis], query: Mapping[str, str | list[str]]) -> str:
    """The final hypotheses of a model's beam, in its order, as links to their maps. query : of the page that the links
    open. "" without any."""
    if not hypotheses:
        return ""
    language = column.languages.target
    items = "".join(
        f'<li>{map_link(text, language, query)} <span class="small">{math.exp(log_prob):.1%}</span></li>'
        for text, log_prob in hypotheses
    )
    words = (
        "What the beam kept, best first by probability per piece. The percentage is the probability of the whole text."
    )
    return f'<div class="what"><p>{words}</p><ol>{items}</ol></div>'


def shown_map(column: Column) -> str:
    """A description of the drawn map: its content, layer and head, and the hidden weight."""
    words = ". ".join(filter(None, (which(column), removed(column.grid))))
    return (
        f'<p class="what">{words}.{_unknown(column)}{hatched(column.grid)}{_windows(column)}{_gold_links(column)}</p>'
    )


def _windows(column: Column) -> str:
    """An explanation of the marks of local attention."""
    if column.windows:
        reach, right = column.windows[0][1], len(column.grid.keys) - 0.5  # the edges of the map: -0.5 and this
        words = (
            f" Diamond: the place that the model predicts. It looks {reach:g} tokens to either side, to the brackets."
        )
        if any(centre - reach <= -0.5 or centre + reach >= right for centre, _ in column.windows):
            words += " A bracket is missing where the window reaches beyond the sentence."
        return words
    if column.mechanism.local and column.shown.level == "words":
        return (
            " The predicted places and the brackets of the window are counted in pieces. Choose pieces under Tokens to "
            "see them."
        )
    return ""


def _gold_links(column: Column) -> str:
    if column.links is None:
        return ""
    moved = f" Rows are read {SHIFTS[column.links.shift]}." if column.links.shift else ""
    return (
        f' <span class="linked">{moved} Outlined: gold links (dashed: only possible). Alignment error rate on this '
        f"sentence: <b>{column.links.error:.2f}</b>. A plain diagonal has {column.links.diagonal:.2f}.</span>"
    )


def notices(scene: CompareScene) -> str:
    """Notices on how the models read the text, if unexpected; every notice once, with its models."""
    models = {}
    for column in scene.columns:
        for line in read_otherwise(column.trace):
            models.setdefault(line, []).append(column.title)
    every = len(scene.columns)
    whose = {line: "" if len(titles) == every else f"{', '.join(titles)}: " for line, titles in models.items()}
    return "".join(f'<p class="notice" role="status">{escape(whose[line] + line)}</p>' for line in models)


def sign(judgement: Judgement | None) -> str:
    """The sign beside a translation: usual, unusual, or outside what the model has learnt; a click says why. A
    `details` element, which the browser opens without a request to the server; "" without a judgement."""
    if judgement is None:
        return ""
    why = "".join(f"<li>{escape(sentence)}</li>" for sentence in judgement.why)
    return (
        f'<details class="sign {judgement.level}"><summary>{escape(judgement.title)}</summary><ul>{why}</ul></details>'
    )


def untranslated(column: Column, judge: Judge | None, judged: Judgement | None = None) -> str:
    """The content words of the source that no row attends to and that have no usual translation in the target; "" for
    none, or without calibration. judged : of this translation, if it was already computed."""
    calibrated = judge and judge.scale.unread and column.trace.log_probs
    words = () if not calibrated else judged.untranslated if judged else judge.untranslated(column.trace)
    if not words:
        return ""
    listed = ", ".join(f"<i>{escape(word)}</i>" for word in words)
    return (
        f'<p class="small placed">No row of {escape(column.title)} reads {listed}: part of the source is probably '
        f"untranslated. (The largest weight is below {math.ceil(100 * judge.scale.unread) / 100:.2f}.)</p>"
    )


def no_attention(column: Column, width: int) -> str:
    """The content of a column without a heatmap. width : of the vector that represents the sentence."""
    return (
        f'<p class="unattended"><b>No attention:</b> the whole sentence is compressed into one vector of {width} '
        f"numbers, the same at every step. There are no weights to show.{_unknown(column)}</p>"
    )


def _unknown(column: Column) -> str:
    """The characters that are in no vocabulary of the pair, in the sentence and in a text forced on all models."""
    given = [*column.trace.source, *(column.trace.target if column.trace.forced else ())]
    unknown = quoted(token.text for token in given if token.unknown)
    return unknown and f" Not in the vocabulary, read as unknown: {unknown}."


def which(column: Column) -> str:
    """The map in words, with layer and head if there are several."""
    grid = column.grid
    if len(column.mechanism.kinds) == 1:
        return kind_title(grid.kind)
    heads = column.trace.map(grid.kind, grid.layer).weights.shape[0]
    head = f"mean of its {heads} heads" if grid.head is None else f"head {grid.head + 1} of {heads}"
    return f"{kind_title(grid.kind)}, layer {grid.layer + 1}, {head}"


def step_name(scene: CompareScene) -> str:
    """The name of the step control: “Row” if all maps are encoder self-attention, whose rows produce nothing."""
    return "Row" if all(column.grid and row_name(column.grid) == "row" for column in scene.columns) else "Step"


def step_meaning(scene: CompareScene) -> str:
    """An explanation of a step: a query of a map is a source token in the encoder, a target token elsewhere."""
    sources = {column.grid is not None and column.grid.kind == "encoder" for column in scene.columns}
    if len(sources) > 1:
        return "one row of each map"
    return "the source token that attends" if sources.pop() else "the target token that is produced"


def steps_note(scene: CompareScene, marked: bool = False) -> str:
    """How to read the statistics by step: the dotted line, marks of references, and differences between the maps."""
    keys, kinds = scene.keys, {}
    for column in scene.mapped:
        kinds.setdefault(column.grid.kind, []).append(column.title)
    notes = []
    if len(kinds) > 1:
        listed = ", ".join(f"{kind_title(kind).lower()} ({', '.join(titles)})" for kind, titles in kinds.items())
        notes.append(f"The maps differ in kind: {listed}.")
        if "encoder" in kinds:
            notes.append(
                "A step is a source token in the encoder and a target token elsewhere, so equal step numbers do not "
                "match."
            )
    if isinstance(keys, int):
        notes.append(f"Dotted line: uniform attention over {keys} token{'' if keys == 1 else 's'}.")
    elif keys is not None:
        notes.append(f"Dotted line: uniform attention over the tokens that each step can see, up to {max(keys)}.")
    local = [column.title for column in scene.mapped if column.mechanism.local]
    if keys is not None and local:
        notes.append(f"{local[0]} looks only at the tokens in its window, so its curve may lie far from this line.")
    if keys is None and len(scene.mapped) > 1:
        notes.append(
            "There is no line for uniform attention, because the maps differ in how many tokens a step can see."
        )
    if marked:
        notes.append(
            "Marks at the right, in the colour of the model, from left to right in the order of the legend. Triangle: "
            f"the untrained model. Cross: the trained model when it reads the {scene.columns[0].languages.unit}s in "
            "random order. Both are means over test sentences of this length."
        )
    notes.append("Effective positions = exp(entropy): uniform attention over this many tokens has the same entropy.")
    return escape(" ".join(notes))


def steps(column: Column) -> list[str]:
    """For each row: its token, the token's probability, and the most probable alternatives."""
    tokens, language = labels.shown(column.queries), column.languages.source
    if column.grid and column.grid.kind == "encoder":
        named = (in_language(token, language, "b") for token in tokens)
        return [f'<p class="step">Source token {place}: {token}</p>' for place, token in enumerate(named, 1)]
    return [_step(column, index, token) for index, token in enumerate(tokens)]


def ended(column: Column) -> str:
    """The message for a row that this text does not have."""
    return f'<p class="step">This text ends after {len(column.queries)} steps.</p>'


def _step(column: Column, index: int, token: str) -> str:
    language, log_probs = column.languages.target, column.shown.log_probs  # <eos> is last, so hiding it moves no step
    likely = f" with probability {math.exp(log_probs[index]):.3f}" if log_probs else ""
    others = " ".join(  # with a space, where the line may break
        f"<i>{in_language(labels.plain(other.text), language)} {other.probability:.3f}</i>"
        for other in column.shown.alternatives[index]
    ) or (
        "The alternatives are pieces of words. Choose pieces under Tokens to see them."
        if any(column.trace.alternatives)
        else ""
    )
    place = f" · predicted place {column.windows[index][0] + 1:.1f}" if column.windows else ""
    return f'<p class="step">{in_language(token, language, "b")}{likely}{place}<span class="others">{others}</span></p>'


def left_out(scene: CompareScene) -> str:
    """The mechanisms that are not in the statistics and differences, because they have no attention."""
    names = [column.title for column in scene.columns if column.grid is None]
    return "".join(
        f'<p class="small">{escape(name)} has no attention, so it has no statistics and no difference.</p>'
        for name in names
    )


def no_difference(scene: CompareScene) -> str:
    """Which maps can be compared with no other, why, and what to do; "" if there is none."""
    columns = {column.title for pair in scene.differences for column in map(scene.columns.__getitem__, pair)}
    alone = [column for column in scene.mapped if column.title not in columns]
    if not alone or len(scene.mapped) < 2:
        return ""
    not_compared = f"Not compared: {escape(listed(column.title for column in alone))}. No other map here is of the same"
    if len({column.grid.kind for column in scene.mapped}) > 1:
        problem = f"{not_compared} kind and text." if columns else "No two maps can be subtracted: they differ in kind."
        return f'<p class="small">{problem}</p>'
    if columns:
        problem = f"{not_compared} text. To compare all"
    else:
        problem = (
            "No two maps can be subtracted, because these models write different texts. To subtract them, and to see "
            "how far they disagree"
        )
    option = scene.columns[0].languages.output
    return (
        f'<p class="small">{problem}, choose one text for all under “{option[0].upper()}{option[1:]}” on the left.</p>'
    )


def percentile(trace: Trace, grid: Grid) -> str:
    """`Sharper than 83% of …`, as HTML; "" for a forced text, and without a reference.

    grid : the drawn map. If its entropy differs from the measured one, both are named, with the reason.
    """
    measured = None if trace.forced else reference(trace.model)
    entropy = across.sharpness(trace) if measured else None
    share = None if entropy is None else measured.share_less_sharp(entropy)
    if share is None:
        return ""
    if not np.isfinite(map_entropy := _entropy_of_map(grid)):
        return '<p class="small placed">No row of this map has a choice: it sees one token, whose weight is 1.</p>'
    if entropy < _SHARPEST:
        return '<p class="small placed">As sharp as attention can be: each row has all its weight on one token.</p>'
    median = float(np.median(measured.quantiles["cross"]["normalised_entropy"]))
    return (
        f'<p class="small placed">Sharper than <b>{100 * share:.0f}%</b> of the {measured.sentences:,} test sentences '
        f"of this model: normalised entropy {entropy:.2f}, in the median of the test set {median:.2f}"
        f"{_how_measured(trace, map_entropy, entropy)}.{_although(grid, share)}</p>"
    )


def _although(grid: Grid, share: float) -> str:
    """Why a map that the line above calls blurred is sharper than most, or one that it calls sharp is not; else ""."""
    word = "Blurred" if share > 0.5 and blurred(grid) else "Sharp" if share < 0.5 and sharp(grid) else ""
    against = "compares the map with uniform attention" if word == "Blurred" else "is about this map alone"
    return word and f" “{word}” {against}; this percentage compares it with other sentences of this model."


def _how_measured(trace: Trace, map_entropy: float, entropy: float) -> str:
    """A note on what was measured, if it is not the drawn map. map_entropy : the entropy of that map."""
    heads = sum(attention.weights.shape[0] for attention in trace.maps if attention.kind == "cross")
    which_heads = f" (each of its {heads} cross-attention heads alone, then the mean)" if heads > 1 else ""
    if f"{map_entropy:.2f}" == f"{entropy:.2f}":
        return which_heads
    why = which_heads or " (of pieces, with special tokens)"
    return f"{why}; the map as drawn has {map_entropy:.2f}"


def _entropy_of_map(grid: Grid) -> float:
    """The mean normalised entropy of the rows of a map, as in the table beside it; NaN if no row has an entropy."""
    rows = measure_grid(grid)["normalised_entropy"]
    return float(np.nanmean(rows)) if np.isfinite(rows).any() else np.nan
