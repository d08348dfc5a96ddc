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
from dashboard.learn.chapter import PAIR, SENTENCE, TRANSLATION, Drawn, column, read, state
from dashboard.markup import tables
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


FORCING = read("teacher-forcing", "train", {"forcing": "0.0"}, draw_forcing)
APPEARS = read("appears", "", state(MECHANISM, trained=trained_title(0)), draw_appears)
