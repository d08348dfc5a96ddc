"""Chapters 11 and 15: training and using a model; and how alignment appears during training."""

from attnviz.export import heading
from attnviz.figures import heatmap
from attnviz.figures.learning import over_time
from attnviz.select import select
from attnviz.trace import Trace
from dashboard.browser.plot import Cell, named
from dashboard.choices.options import model, title, trained_title
from dashboard.compare import pictures
from dashboard.compare.caches import course
from dashboard.inside.scene import Column
from dashboard.learn.chapter import PAIR, SENTENCE, TRANSLATION, Chapter, Drawn, column, state
from dashboard.markup import tables
from dashboard.markup.terms import cited
from dashboard.markup.text import output
from dashboard.session import caches

MECHANISM = "bahdanau"
WRONG = "Le chat noir court sur l'herbe verte."  # a cat in the place of the dog


def draw_forcing(dark: bool) -> Drawn:
    """One sentence: the right text forced, a wrong word forced, and the model's own text."""
    shown = {
        "The right text before each step (as in training)": column(MECHANISM, SENTENCE, TRANSLATION),
        "A wrong text before each step": column(MECHANISM, SENTENCE, WRONG),
        "Its own text (as in use)": column(MECHANISM, SENTENCE),
    }
    cells = [_forced(name, of_name, dark) for name, of_name in shown.items()]
    return Drawn(cells, "".join(_sureness(name, of_name.trace) for name, of_name in shown.items()))


def _forced(name: str, shown: Column, dark: bool) -> Cell:
    grid = select(shown.trace)
    words = f"<h4>{name}</h4>{output(shown.trace, shown.languages.target, name=name)}"
    lines = [name, *heading.of_map(shown.trace, grid)]
    return Cell(words, named(heatmap(grid, dark=dark), name, dark, lines=lines))


def _sureness(name: str, trace: Trace) -> str:
    rows = tables.of_numbers(tables.numbered(trace.target), zip(trace.log_probs), ".2f")
    return tables.table(f"{name}: log-probability of each token", ["nats"], rows)


def draw_appears(dark: bool) -> Drawn:
    """A model at moments of its training: maps of one sentence, and the curves. ValueError without moments."""
    rows = course(model(PAIR, MECHANISM))
    if not rows:
        raise ValueError("no moments of a training ship with these models")
    count = len(rows)
    places = sorted({0, count // 4, count // 2, count - 1})
    cells = [_moment(place, dark) for place in places]
    curves = over_time({title(MECHANISM): pictures.course(rows)}, panels=pictures.COURSE, unit="moment", dark=dark)
    lines = heading.of_trace("Measured in a training", column(MECHANISM, SENTENCE, TRANSLATION).trace)
    figure = named(curves, "curves of a training", dark, lines=lines)
    cells.append(Cell(f"<h4>Measured at {count} moments</h4>", figure))
    values = [[rows[place][key] for key in pictures.COURSE] for place in places]
    measured = tables.of_numbers(map(trained_title, places), values, ".2f")
    return Drawn(cells, tables.table("Bahdanau in training", list(pictures.COURSE.values()), measured))


def _moment(place: int, dark: bool) -> Cell:
    """The sentence through the model at a moment of its training."""
    trace = caches.trace(model(PAIR, MECHANISM, place), SENTENCE, TRANSLATION, 1)
    grid, name = select(trace), trained_title(place)
    figure = named(heatmap(grid, dark=dark), f"map {name}", dark, lines=[name, *heading.of_map(trace, grid)])
    return Cell(f"<h4>{name[:1].upper()}{name[1:]}</h4>", figure)


FORCING = Chapter(
    "teacher-forcing",
    (
        "In <b>training</b> the model sees the right text: at step t it reads the true token y<sub>t−1</sub>, whatever "
        "it would have written itself. This is <b>teacher forcing</b>. All steps are known from the start, and each "
        "has a right answer.",
        "In <b>use</b> there is no right text. The model reads its own token, and a wrong one changes all that "
        "follows. It has hardly met its own mistakes in training.",
        "On these pages <b>forced decoding</b> does the same as teacher forcing: each model is made to write one text, "
        f"so that maps have the same rows. Alignments are read in this way too ({cited('bahdanau')}: the map of a "
        "known pair of sentences).",
    ),
    {
        "y_t−1": "the token before step t: the true one in training, the model’s own in use",
        "p(y_t | y_1 … y_t−1, x)": "what the model is trained to make large for the true token",
    },
    "The wrong text says “chat” (cat) where the sentence says ‘dog’. Does the map change at the words after it?",
    "Little. The state has read the wrong word, but the source is the same, and so is what remains to be translated. "
    "The log-probability of the wrong word shows that the model would not have written it: it falls at that token.",
    "train",
    {"forcing": "0.0"},
    "Press Start: here the models read their own letters in training, and learn more slowly at first.",
    draw_forcing,
)
APPEARS = Chapter(
    "appears",
    (
        "Nobody tells the model where to look. It is trained to make the right next word probable, and attention is "
        "one of the ways to do so. An alignment <i>appears</i> because looking at the right word helps.",
        "At the start the states mean nothing, and every row is nearly flat. Then the model learns which words are "
        "frequent in French, without the source, and all rows may look at one place. At some point the rows part, and "
        "the diagonal is there. The loss falls on.",
        "The <b>alignment error</b> compares the largest weight of each row with links that people set by hand. A flat "
        "map and a wrong diagonal both have a high one.",
    ),
    {
        "loss": "−log p of the right tokens, nats a token, on sentences that are not trained on",
        "BLEU": "how much a translation agrees with one by a person, 0 to 100",
        "alignment error": "0: the largest weights are on the linked words; 1: on none of them",
    },
    "Look at the curves. Does the alignment error fall before the loss has fallen, with it, or after it?",
    "After it, and then with it. At first the loss falls alone, and the alignment error stays where it was: the model "
    "learns which French words are frequent, and needs no source for that. Then the alignment appears, and from there "
    "both fall together. This is one run of one model; Watch it learn shows others.",
    "",
    state(MECHANISM, trained=trained_title(0)),
    "Move the slider Trained for, or press Play the training.",
    draw_appears,
)
