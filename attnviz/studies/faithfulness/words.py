"""What the study says: tables in Markdown, with what each test cannot show, and the panels of the picture."""

from attnviz.faithfulness import CHANGES
from attnviz.mechanisms import find
from attnviz.faithfulness.sentence import METHODS, ORDERS
from attnviz.studies.pictures import Panel, Series
from attnviz.studies.tables import grouped, table

_CHANGES = {change.name: change.title for change in CHANGES}
_ERASED = ("comprehensiveness", "sufficiency")
_KINDS = ("function", "content", "other")


def text(results: dict) -> str:
    if not results["rows"]:
        return "No model was measured."
    models = grouped(results["rows"], "pair", "mechanism")
    cells = {name: {row["measure"]: row for row in rows} for name, rows in models.items()}
    parts = [
        _method(results),
        "### 6. Changed attention",
        _preserved(cells),
        _variation(cells),
        "A changed row of attention makes a context that the model has never met in training, so a word that is lost "
        "may be lost to the strangeness of the context rather than to the missing information. A word that is "
        "preserved could be said without that attention; it does not follow that the model did without it.",
        "### 7. Attention beside gradients, and erased tokens",
        _agreement(cells),
        _erasure(cells),
        "Gradients and erasure are no ground truth either: a gradient speaks of a small change, integrated gradients "
        "start from embeddings of zeros, and a sentence with holes is unlike the training data. Agreement says that "
        "two methods order tokens alike, not that either is right.",
        "Jain and Wallace (2019) found attention of classifiers easy to permute and concluded that it is not an "
        "explanation; Wiegreffe and Pinter (2019) answered that one can exist without being the only one; Vashishth et "
        "al. (2019) expect it to matter more in translation than in classification of one sentence; Moradi et al. "
        "(2019) found that attention in translation matters more for content words than for function words. Attention "
        "is not by itself an explanation.",
    ]
    return "\n\n".join(parts)


def _method(results: dict) -> str:
    return (
        f"Up to {results['sentences']} test sentences for each model that attends, each model forced to its own greedy "
        "translation, or for the classifier its own label. Attention is the mean over all layers and heads of "
        "cross-attention; the classifier's is its pooling. Attention is changed at one step at a time, with everything "
        f"before it as it was. In brackets: 95 % of {results['samples']:,} samples of the sentences. One training run "
        "of each model."
    )


def _preserved(cells: dict) -> str:
    rows = [
        (_name(model), _CHANGES[change], *(_value(by_measure, f"preserved {change} {kind}", 100, 0) for kind in _KINDS))
        for model, by_measure in cells.items()
        for change in _CHANGES
    ]
    return (
        "Preserved share (Moradi et al. 2019): how many per cent of tokens stay the first choice when attention is "
        "changed. Labels and full stops are among the others.\n\n"
        + table(("", "change", "function words", "content words", "others"), rows)
    )


def _variation(cells: dict) -> str:
    names = ("variation max_weight", "variation median", "variation median sharp", "variation uniform")
    rows = [(_name(model), *(_value(by_measure, name) for name in names)) for model, by_measure in cells.items()]
    head = ("", "maximum weight", "permuted", "permuted, maximum weight above 0.5", "uniform")
    return (
        "Total variation between the next-token distributions, 0 to 1 (Jain and Wallace 2019): median over 100 "
        "permutations, and uniform attention; means over target tokens.\n\n" + table(head, rows)
    )


def _agreement(cells: dict) -> str:
    rows = [
        (
            _name(model),
            *(f"{_value(by_measure, f'tau {m}')} · {_value(by_measure, f'top1 {m}', 100, 0)} %" for m in METHODS),
        )
        for model, by_measure in cells.items()
    ]
    return "Agreement with attention: Kendall's τ-b, and how often both have the same first token.\n\n" + table(
        ("", *METHODS.values()), rows
    )


def _erasure(cells: dict) -> str:
    rows = [
        (
            _name(model),
            *(
                f"{_value(by_measure, f'comprehensiveness {order}')} · {_value(by_measure, f'sufficiency {order}')}"
                for order in ORDERS
            ),
        )
        for model, by_measure in cells.items()
    ]
    return (
        "Comprehensiveness · sufficiency (DeYoung et al. 2020), means over 1, 5, 10, 20 and 50 % of the source tokens: "
        "probability lost when the first tokens of an order are erased (high: they were needed), and when only they "
        "are kept (low: they are enough).\n\n" + table(("", *(f"by {order}" for order in ORDERS)), rows)
    )


def _name(model: tuple[str, str]) -> str:
    pair, mechanism = model
    return f"{pair} · {find(mechanism).title}"


def _value(by_measure: dict, name: str, scale: float = 1, digits: int = 2) -> str:
    """`0.42 (0.40–0.44)`; a dash where nothing was measured."""
    row = by_measure.get(name)
    if row is None or row["value"] is None:
        return "–"
    value, low, high = (f"{scale * row[key]:.{digits}f}".replace("-", "−") for key in ("value", "low", "high"))
    return f"{value} ({low}–{high})"


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
                [(f"preserved {name} {kind}", title) for name, title in _CHANGES.items()],
                100,
            )
            for kind in _KINDS[:2]
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
