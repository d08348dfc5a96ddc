"""Study: does attention matter to what the models produce? Changes of attention, and attention beside gradients.

Every number is a share or a mean over target tokens; its interval comes from samples of the sentences. The tests run on
every shipped model with attention and available data, one part after the other for all models, quick parts first and
with most sentences. Models whose weights are those of earlier results are not measured again. The report has tables in
Markdown, with the limits of each test, and a picture with a row of two panels for each test.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attnviz import __version__, faithfulness, loading, storage
from attnviz.data import corpora
from attnviz.faithfulness import CHANGES
from attnviz.faithfulness.sentence import CHANGED, METHODS, ORDERS, PARTS, QUANTILES, Sums
from attnviz.mechanisms import find
from attnviz.models import checkpoint_files
from attnviz.models.model import TextError
from attnviz.models.names import ModelName
from attnviz.progress import bar as progress_bar
from attnviz.studies.measured_models import MeasuredModel, StudyConfig, record
from attnviz.studies.report import Panel, Series, grouped, table

__all__ = ["COLUMNS", "DESCRIPTION", "TITLE", "measure", "panels", "text"]

TITLE = "Does attention matter?"
DESCRIPTION = (
    "Does attention matter: preserved function and content words, agreement with gradients, comprehensiveness, by "
    "mechanism"
)
COLUMNS = 2

PATH = Path("studies") / "faithfulness.json"  # below the folder of checkpoints
SAMPLES = 1000  # of the sentences, with replacement
SENTENCES = 500  # unless the caller says how many
BATCH = 32  # sentences translated at once


class MeasuredSentences:
    """The measured sentences of a model, one part of the study after the other.

    sums : (part, text) -> the measurements; None for a text without output. The file belongs to these weights and this
    version.
    """

    def __init__(self, folder: Path, name: str, sha256: str):
        version = hashlib.sha256(f"{__version__} {sha256}".encode()).hexdigest()[:12]
        self.path = folder / f"{name.replace('/', '-')}-{version}.jsonl"
        self.sums: dict[tuple[str, str], Sums | None] = {}
        if self.path.exists():
            self._read()

    def _read(self) -> None:
        """Read the file, and remove an incomplete last line."""
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            self.path.write_bytes(whole)
        for line in whole.decode("utf-8").splitlines():
            row = json.loads(line)
            sums = row["sums"]
            self.sums[row["part"], row["text"]] = sums and {name: tuple(pair) for name, pair in sums.items()}

    def add(self, part: str, text: str, sums: Sums | None) -> None:
        self.sums[part, text] = sums
        storage.make_folder(self.path.parent)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"part": part, "text": text, "sums": sums}, ensure_ascii=False) + "\n")


class Earlier:
    """The rows of ROOT/studies/faithfulness.json by model, if measured as in `config`.

    Empty if the number of sentences or samples, the data of `config`'s pair, or the version of this package differs, or
    if the file cannot be read. The file has no hashes of the data of other pairs; remove it after changing those.
    """

    def __init__(self, config: StudyConfig, sentences: int, samples: int):
        self.rows: dict[tuple[str, str], list[dict]] = {}
        self.weights: set[str] = set()
        path = Path(config.root) / PATH
        try:
            results = storage.parse_json(path.read_bytes())
            measured = (*(results[key] for key in ("sentences", "samples", "data")), results["versions"]["attnviz"])
            if measured == (sentences, samples, config.read.files, __version__):
                self.rows = grouped(results["rows"], "pair", "mechanism")
                self.weights = {model["weights_sha256"] for model in results["models"]}
        except (OSError, ValueError, KeyError, TypeError):  # it is not there, or not what this study writes
            self.rows = {}

    def rows_of(self, name: str, sha256: str) -> list[dict]:
        """The rows of the model with this name and weights hash; none if it must be measured."""
        model = ModelName.parse(name)
        return self.rows.get((model.pair, model.mechanism), []) if sha256 in self.weights else []


@dataclass(frozen=True, eq=False)
class Measuring:
    """A model with its texts and measurements. earlier : its rows from an earlier run, if any."""

    model: MeasuredModel
    texts: tuple[str, ...]
    measured: MeasuredSentences
    earlier: list[dict]


def measure(config: StudyConfig) -> dict:
    """rows: a model and measure each. value : over all target tokens. low, high : the 95 % bootstrap interval over
    SAMPLES samples of the sentences. sentences : the number with a value. quantiles : of the sentences' own values, at
    QUANTILES, with which one sentence is compared. sentences : of each model.
    """
    models = list(_models(config))
    for part in PARTS:
        for measuring in models:
            if not measuring.earlier:
                _measure(measuring, part)
    rows = [row for measuring in models for row in measuring.earlier or _rows(measuring)]
    measured = [measuring.model for measuring in models]
    counts = {"sentences": config.sentences or SENTENCES, "samples": SAMPLES}
    return {"rows": rows, **counts, **record(config, measured)}


def _measure(measuring: Measuring, part: str) -> None:
    """The texts of a part that have not been measured."""
    translator = measuring.model.translator
    for batch in progress_bar(_batches(translator, measuring.texts), desc=f"{part} {translator.name}"):
        _measure_batch(measuring, part, batch)


def _measure_batch(measuring: Measuring, part: str, batch: Sequence[str]) -> None:
    """A batch is always translated and changed as a whole, so that a resumed run gives the same numbers."""
    measured = measuring.measured
    left = [sentence for sentence in batch if (part, sentence) not in measured.sums]
    if not left:
        return
    sound = []
    for sentence, subject in zip(batch, faithfulness.subjects(measuring.model.translator, batch), strict=True):
        if isinstance(subject, TextError):  # it cannot be read, or has no output
            measured.add(part, sentence, None)
        elif sentence in left or part == CHANGED:
            sound.append((sentence, subject))
    if sound:
        texts, subjects = zip(*sound)
        for sentence, sums in zip(texts, PARTS[part](subjects), strict=True):
            measured.add(part, sentence, sums)


def _batches(translator, texts: Sequence[str]) -> list[list[str]]:
    """The texts by the number of their pieces, at most BATCH at once."""
    by_length: dict[int, list[str]] = {}
    for sentence in texts:
        by_length.setdefault(len(translator.tokenizer.encode(sentence).ids), []).append(sentence)
    groups = [by_length[length] for length in sorted(by_length)]
    return [group[start : start + BATCH] for group in groups for start in range(0, len(group), BATCH)]


def _rows(measuring: Measuring) -> Iterator[dict]:
    label = {**measuring.model.label, "pair": measuring.model.translator.pair}
    for part in PARTS:
        sentences = [sums for sentence in measuring.texts if (sums := measuring.measured.sums[part, sentence])]
        for name in sorted({name for sums in sentences for name in sums}):
            yield {**label, "measure": name, **summary([sums[name] for sums in sentences if name in sums])}


def _models(config: StudyConfig) -> Iterator[Measuring]:
    """The models with the first source sentences of a test set (validation if there is no test)."""
    texts: dict[str, tuple[str, ...]] = {}
    earlier = Earlier(config, config.sentences or SENTENCES, SAMPLES)
    for name in checkpoint_files.names(config.root):
        parsed = ModelName.parse(name)
        if not find(parsed.mechanism).kinds or (parsed.pair not in texts and not _readable(config, parsed.pair, texts)):
            continue
        model, sha256 = loading.load_checkpoint(name, config.root), checkpoint_files.fingerprint(name, config.root)
        sentences = MeasuredSentences(config.out / "faithfulness", name, sha256)
        labelled = MeasuredModel(model, model.card.get("seed"), sha256)
        yield Measuring(labelled, texts[parsed.pair], sentences, earlier.rows_of(name, sha256))


def _readable(config: StudyConfig, pair: str, texts: dict[str, tuple[str, ...]]) -> bool:
    """Put the sentences of a pair into `texts`; False where its data are not in the folder."""
    try:
        corpus = config.read if pair == config.pair else corpora.load(pair, config.data)
    except (ValueError, OSError, TypeError):  # no such corpus, or its files are not there
        return False
    sentences = next(iter(corpus.tests.values()), corpus.val)
    different = dict.fromkeys(source for source, _ in sentences)
    texts[pair] = tuple(different)[: config.sentences or SENTENCES]
    return True


def summary(counted: Sequence[tuple[float, int]]) -> dict:
    """(sum, number) of each sentence -> value, interval, number of tokens and sentences, quantiles of the sentences."""
    sums, numbers = np.array([value for value, _ in counted]), np.array([number for _, number in counted])
    total = int(numbers.sum())
    if not total:
        return {"value": None, "low": None, "high": None, "tokens": 0, "sentences": 0, "quantiles": []}
    chosen = np.random.default_rng(0).integers(len(counted), size=(SAMPLES, len(counted)))
    tokens = numbers[chosen].sum(1)
    values = sums[chosen].sum(1)[tokens > 0] / tokens[tokens > 0]
    low, high = np.percentile(values, (2.5, 97.5))
    quantiles = np.quantile(sums[numbers > 0] / numbers[numbers > 0], QUANTILES)
    shares = dict(zip(("value", "low", "high"), (float(sums.sum()) / total, low, high)))
    return {name: round(float(value), 4) for name, value in shares.items()} | {
        "tokens": total,
        "sentences": int((numbers > 0).sum()),
        "quantiles": [round(float(value), 4) for value in quantiles],
    }


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
    """`0.42 (0.40–0.44)`; a dash if nothing was measured."""
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
    """A row for each measure; the models are slightly shifted, so that no bar hides another."""
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
