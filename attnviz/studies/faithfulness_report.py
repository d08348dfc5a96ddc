"""What the study of faithfulness says: tables in Markdown, with what each test cannot show, and a picture with a row of
two panels for each test.
"""

from attnviz.faithfulness import CHANGES
from attnviz.faithfulness.sentence import METHODS, ORDERS
from attnviz.mechanisms import find
from attnviz.studies.report import Panel, Series, grouped, table

CHANGE_TITLES = {change.name: change.title for change in CHANGES}
_COMBINED = {"any": "at least one of these", "every": "all of these"}
_ERASED = ("comprehensiveness", "sufficiency")
_KINDS = ("function", "content")
Cells = dict[tuple[str, str], dict[str, dict]]  # pair and mechanism -> measure -> its row


def text(results: dict) -> str:
    if not results["rows"]:
        return "No model was measured."
    models = grouped(results["rows"], "pair", "mechanism")
    cells = {name: {row["measure"]: row for row in rows} for name, rows in models.items()}
    parts = [
        _method(results),
        "### 6. Changed attention",
        *(_preserved(cells, kind) for kind in ("function", "content")),
        "Moradi et al. (2019) report that their changed attention still gives 68 % of the function words and 21 % of "
        "the content words of a German to English model. Their model, languages, changes and lists of words are "
        "others, so compare which of the two numbers is larger, not their sizes.",
        _variation(cells),
        "A changed row of attention makes a context that the model has never met in training, so a word that is lost "
        "may be lost to the strangeness of the context rather than to the missing information. A word that is "
        "preserved could be said without that attention; it does not follow that the model did without it.",
        *_tasks(cells),
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
        f"{results['sentences']:,} test sentences of each model that attends; integrated gradients of one "
        "target token of each, drawn at random. (sst2 has no test: its validation sentences.) "
        "Each model is forced to its own greedy translation, the classifier to its own label. "
        "Attention is the mean over all layers and heads of cross-attention; the classifier's is its pooling. "
        "Attention is changed at one step at a time, with everything before it as it was. In brackets: 95 % of "
        f"{results['samples']:,} samples of the sentences. One training run of each model."
    )


def _preserved(cells: Cells, kind: str) -> str:
    titles = CHANGE_TITLES | _COMBINED
    rows = [
        (_name(model), *(value(by_measure, f"preserved {change} {kind}", 100, 0) for change in titles))
        for model, by_measure in cells.items()
        if f"preserved uniform {kind}" in by_measure  # reversed letters and labels are no words
    ]
    return (
        f"**{kind.capitalize()} words** that stay the first choice when attention is changed, per cent (preserved "
        "share, Moradi et al. 2019):\n\n" + table(("", *titles.values()), rows)
    )


def _variation(cells: Cells) -> str:
    names = ("variation max_weight", "variation median", "variation median sharp", "variation uniform")
    rows = [(_name(model), *(value(by_measure, name) for name in names)) for model, by_measure in cells.items()]
    head = ("", "maximum weight", "permuted", "permuted, maximum weight above 0.5", "uniform")
    return (
        "Total variation between the next-token distributions, 0 to 1 (Jain and Wallace 2019): median over 100 "
        "permutations, and uniform attention; means over target tokens.\n\n" + table(head, rows)
    )


def _tasks(cells: Cells) -> list[str]:
    """Translation against classification; nothing without a model of each."""
    classifies = {model: find(model[1]).classifies for model in cells}
    if len(set(classifies.values())) < 2:
        return []
    rows = []
    for model, by_measure in cells.items():
        shares = (value(by_measure, f"preserved {name} all", 100, 0) for name in ("uniform", "last-only", "every"))
        moved = (value(by_measure, f"variation {name}") for name in ("median", "uniform"))
        name = f"**{_name(model)}**" if classifies[model] else _name(model)
        rows.append((name, *shares, *moved))
    head = (
        *("", "preserved, uniform (%)", "preserved, last state only (%)", "preserved under all changes (%)"),
        *("total variation, permuted", "total variation, uniform"),
    )
    return [
        "**Translation against classification.** Vashishth et al. (2019) expect attention to matter in translation and "
        "less in the classification of one sentence. All tokens of the translators beside the label of the sentiment "
        "classifier (in bold):",
        table(head, rows),
        "The models differ in more than the task: the classifier has one step and two possible outputs, layers below "
        "its pooling already mix the tokens, and it is small. So this table agrees or disagrees with their expectation "
        "for these models; it does not show that the task is the reason.",
    ]


def _agreement(cells: Cells) -> str:
    rows = [
        (
            _name(model),
            *(f"{value(by_measure, f'tau {m}')} · {value(by_measure, f'top1 {m}', 100, 0)} %" for m in METHODS),
        )
        for model, by_measure in cells.items()
    ]
    return "Agreement with attention: Kendall's τ-b, and how often both have the same first token.\n\n" + table(
        ("", *METHODS.values()), rows
    )


def _erasure(cells: Cells) -> str:
    rows = [
        (
            _name(model),
            *(
                f"{value(by_measure, f'comprehensiveness {order}')} · {value(by_measure, f'sufficiency {order}')}"
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


def value(by_measure: dict, name: str, scale: float = 1, digits: int = 2) -> str:
    """`0.42 (0.40–0.44)`; a dash where nothing was measured."""
    row = by_measure.get(name)
    if row is None or row["value"] is None:
        return "–"
    middle, low, high = (f"{scale * row[key]:.{digits}f}".replace("-", "−") for key in ("value", "low", "high"))
    return f"{middle} ({low}–{high})"


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
    return Panel(title, tuple(series), rows=tuple(words for _, words in measures))
