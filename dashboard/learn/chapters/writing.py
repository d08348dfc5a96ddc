"""Chapter 8: a model that writes, with its candidates for the next token, its predictions after each layer, and a
head."""

from attnviz import heads
from attnviz.data.tasks import TASKS
from attnviz.export import heading
from attnviz.figures import heatmap, next_tokens
from attnviz.figures.labels import plain
from attnviz.heads import Head
from attnviz.patterns import PATTERNS
from attnviz.select import select
from attnviz.trace import Trace
from dashboard.browser.plot import Cell, named
from dashboard.choices.options import Writing, model_title
from dashboard.learn.chapter import Drawn, read
from dashboard.markup import tables
from dashboard.markup.text import hatched
from dashboard.session import caches

MODEL = "en/writer"
TEXT = TASKS["en"].examples[1]
TEMPERATURES = (1.0, 0.5)
ROLE = "previous"  # the pattern of the head that is shown


def draw(dark: bool) -> Drawn:
    trace = caches.trace(MODEL, TEXT)
    cells, rows = [], []
    for temperature in TEMPERATURES:
        candidates = caches.candidates(MODEL, trace, Writing(temperature=temperature))
        names = [plain(candidate.text) for candidate in candidates]
        numbers = [(candidate.probability, candidate.drawn) for candidate in candidates]
        name = f"The next piece, temperature {temperature:g}"
        figure = next_tokens(names, *zip(*numbers), dark=dark)
        cells.append((f"<h4>{name}</h4>", named(figure, name, dark, lines=heading.of_trace(name, trace))))
        columns = ["of the model", "drawn with"]
        rows.append(tables.table(name, columns, [(a, [f"{n:.4f}" for n in b]) for a, b in zip(names, numbers)]))
    cells += [(_layers(trace),), _head(trace, dark)]
    return Drawn([Cell(*cell) for cell in cells], "".join(rows))


def _layers(trace: Trace) -> str:
    """The logit lens of the last token of the text: its probability after each layer, and the most probable token
    there."""
    layers, *_ = caches.stream(MODEL, trace)
    last = plain(trace.target[-1].text)
    rows = [
        (
            "before layer 1" if number == 0 else f"after layer {number}",
            [plain(best.text), f"{best.probability:.3f}", f"{layer.log_probs[-1]:.2f}"],
        )
        for number, layer in enumerate(layers)
        for best in layer.alternatives[-1][:1]
    ]
    columns = ["most probable", "its probability", f"log-probability of {last}"]
    return f"<h4>What it would say after each layer</h4>{tables.table(f'In place of {last}', columns, rows)}"


def _head(trace: Trace, dark: bool) -> tuple:
    """The head that looks most at the previous token."""
    best = heads.most_like(heads.table(trace, "decoder"), ROLE, 1).iloc[0]
    head = Head("decoder", int(best["layer"]), int(best["head"]))
    grid = select(trace, *head)
    title = head.title[:1].upper() + head.title[1:]
    words = (
        f'<h4>{title}</h4><p class="small">Of all heads it looks most at the token before the query’s own: '
        f"{best[ROLE]:.2f} of its weight on average.{hatched(grid)}</p>"
    )
    return words, named(heatmap(grid, dark=dark), title, dark, lines=heading.of_map(trace, grid))


CHAPTER = read(
    "writing",
    "heads",
    {"model": model_title(MODEL), "text": TEXT, "written": "12", "pattern": PATTERNS[ROLE].title},
    draw,
)
