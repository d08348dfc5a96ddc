"""The picture of the study: a row of two panels for each test."""

from attnviz.faithfulness.sentence import METHODS, ORDERS
from attnviz.mechanisms import find
from attnviz.studies.faithfulness.words import CHANGE_TITLES
from attnviz.studies.pictures import Panel, Series
from attnviz.studies.tables import grouped

_ERASED = ("comprehensiveness", "sufficiency")
_KINDS = ("function", "content")


def panels(results: dict) -> list[Panel]:
    """The models of the first pair: a row of two for each test."""
    pairs = grouped(results["rows"], "pair")
    if not pairs:
        return []
    rows = pairs.get(results["pair"]) or next(iter(pairs.values()))
    models = grouped(rows, "mechanism")
    wanted = [
        *(
            (
                f"Preserved {kind} words (%)",
                [(f"preserved {name} {kind}", title) for name, title in CHANGE_TITLES.items()],
                100,
            )
            for kind in _KINDS
        ),
        ("Agreement with attention (τ-b)", [(f"tau {name}", title) for name, title in METHODS.items()], 1),
        ("Same first token (%)", [(f"top1 {name}", title) for name, title in METHODS.items()], 100),
        *((name.capitalize(), [(f"{name} {order}", f"by {order}") for order in ORDERS], 1) for name in _ERASED),
    ]
    return [_panel(title, measures, scale, models) for title, measures, scale in wanted]


def _panel(title: str, measures: list[tuple[str, str]], scale: float, models: dict) -> Panel:
    """A row for each measure; the models apart by a little, so that no bar hides another."""
    series = []
    for number, (mechanism, rows) in enumerate(models.items()):
        by_measure = {row["measure"]: row for row in rows if row["value"] is not None}
        places = [place for place, (name, _) in enumerate(measures) if name in by_measure]
        numbers = [
            [scale * by_measure[measures[place][0]][key] for place in places] for key in ("value", "low", "high")
        ]
        aside = 0.08 * (number - (len(models) - 1) / 2)
        if places:
            x, low, high = map(tuple, numbers)
            series.append(Series(find(mechanism).title, x, tuple(p + aside for p in places), low, high, line=False))
    return Panel(title, tuple(series), rows=tuple(said for _, said in measures))
