"""Study: does attention matter to what the models produce? Changes of attention, and attention beside gradients.

Every number is a share or a mean over target tokens; its interval comes from samples of the sentences. The tests run on
every shipped model that attends and whose data are there, one part after the other, each for all models: what is quick
is there first, for most sentences. Models whose weights are those of the results that are there already are not
measured again.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attnviz import __version__, faithfulness, loading, storage
from attnviz.data import corpora
from attnviz.faithfulness.sentence import CHANGED, PARTS, QUANTILES, Sums
from attnviz.mechanisms import find
from attnviz.models import checkpoints
from attnviz.models.model import TextError
from attnviz.models.names import ModelName
from attnviz.progress import bar as progress_bar
from attnviz.studies.faithfulness_report import panels, text
from attnviz.studies.measured_models import MeasuredModel, StudyConfig, record
from attnviz.studies.report import grouped

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

    sums : (part, text) -> what was measured, None of a text that has no output. The file is of these weights and of
    this version: other ones have another file.
    """

    def __init__(self, folder: Path, name: str, sha256: str):
        version = hashlib.sha256(f"{__version__} {sha256}".encode()).hexdigest()[:12]
        self.path = folder / f"{name.replace('/', '-')}-{version}.jsonl"
        self.sums: dict[tuple[str, str], Sums | None] = {}
        if self.path.exists():
            self._read()

    def _read(self) -> None:
        """A last line that was cut short is taken out of the file."""
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
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"part": part, "text": text, "sums": sums}, ensure_ascii=False) + "\n")


class Earlier:
    """The rows of ROOT/studies/faithfulness.json by model, where they were measured as `config` asks.

    With another number of sentences or of samples, other data of the pair of `config`, or another version of this
    package there are none; nor are there any where the file cannot be read. The file has no hashes of the data of other
    pairs: after a change of those, remove it.
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
        """The rows of the model of that name with weights of that hash; none where it must be measured."""
        model = ModelName.parse(name)
        return self.rows.get((model.pair, model.mechanism), []) if sha256 in self.weights else []


@dataclass(frozen=True, eq=False)
class Measuring:
    """A model with the texts that it is measured on, and what has been measured. earlier : its rows, where an earlier
    run has them."""

    model: MeasuredModel
    texts: tuple[str, ...]
    measured: MeasuredSentences
    earlier: list[dict]


def measure(config: StudyConfig) -> dict:
    """rows: a model and measure each. value : over all target tokens. low, high : between them are 95 % of the values
    of SAMPLES samples of the sentences. sentences : how many have a value. quantiles : of the sentences' own values, at
    QUANTILES, for one sentence to be placed among them. sentences : of each model.
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
    """A batch is always translated whole, and changed whole, so that a run that goes on gives the same numbers."""
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
    """The models, and the first source sentences of a test of each (validation, where there is no test)."""
    texts: dict[str, tuple[str, ...]] = {}
    earlier = Earlier(config, config.sentences or SENTENCES, SAMPLES)
    for name in checkpoints.names(config.root):
        parsed = ModelName.parse(name)
        if not find(parsed.mechanism).kinds or (parsed.pair not in texts and not _readable(config, parsed.pair, texts)):
            continue
        model, sha256 = loading.load_checkpoint(name, config.root), checkpoints.fingerprint(name, config.root)
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
