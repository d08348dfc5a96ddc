"""What the studies share: the models they measure, more of them from other seeds, and what was measured with what."""

import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import sacrebleu
import torch

from attnviz import __version__, alignment, atomic, gold
from attnviz.alignment import Counts
from attnviz.data import corpora
from attnviz.data.readers import Pairs
from attnviz.evaluation import translation
from attnviz.models import checkpoint_files, checkpoints
from attnviz.models import provenance as lineage
from attnviz.models.translator import Translator
from attnviz.training import train
from attnviz.training.devices import device_name
from attnviz.training.recipes import Settings

TEST = "test_2016_flickr"  # what studies report on


@dataclass(frozen=True)
class Setting:
    """root : folder of the checkpoints that are measured. out : folder to train in. seeds : runs of every model."""

    root: Path
    out: Path
    corpus: corpora.Corpus
    seeds: int = 1
    pair: str = "en-fr"

    @property
    def test(self) -> Pairs:
        return self.corpus.tests[TEST]

    def missing(self, mechanisms: Iterable[str]) -> list[str]:
        """Those of which there is no checkpoint."""
        there = checkpoints.names(self.root)
        return [mechanism for mechanism in mechanisms if f"{self.pair}/{mechanism}" not in there]


@dataclass(frozen=True)
class Model:
    """A trained model. seed : of its training, None where its card does not say."""

    translator: Translator
    seed: int | None
    sha256: str

    @property
    def mechanism(self) -> str:
        return self.translator.mechanism

    @property
    def label(self) -> dict:
        """How a row of a study begins."""
        return {"mechanism": self.mechanism, "seed": self.seed}


def load(name: str, root: Path, seed: int | None = None) -> Model:
    """The checkpoint `name` below `root`. Raises CheckpointError."""
    translator = Translator.load(name, root)
    return Model(
        translator, seed if seed is not None else translator.card.get("seed"), checkpoints.fingerprint(name, root)
    )


def models(setting: Setting, mechanisms: Iterable[str]) -> Iterator[Model]:
    """The checkpoints of these mechanisms that there are; of each also runs with other seeds, until there are `seeds`.

    The others are trained, or gone on with, in out/seed-N, with the settings of the first one's card.
    """
    missing = setting.missing(mechanisms)
    for name in (f"{setting.pair}/{mechanism}" for mechanism in mechanisms if mechanism not in missing):
        first = load(name, setting.root)
        yield first
        others = [seed for seed in range(1, setting.seeds + 1) if seed != first.seed]
        for seed in others[: setting.seeds - 1]:
            yield load(name, _again(setting, first, seed), seed)


def _again(setting: Setting, first: Model, seed: int) -> Path:
    """Train a model again with another seed, unless that is done, in as many runs as it took -> the folder of checkpoints it is in.

    ValueError when the card does not say how the first one was trained from the start, and when another model is there.
    """
    name, root = first.translator.name, setting.out / f"seed-{seed}"
    plans, folder = _plans(first, seed), None
    if (root / name / "card.json").exists():
        done = [_known(run) for run in lineage.runs(checkpoint_files.read_card(name, root))]
        if [plan and replace(plan, start="") for plan in done] != plans:
            raise ValueError(f"{root / name} was trained otherwise than {name}; remove it, or choose another --out")
        return root
    for number, plan in enumerate(plans, start=1):
        folder = _trained(setting, name, root if number == len(plans) else root / f"run-{number}", plan, folder)
    return root


def _plans(first: Model, seed: int) -> list[Settings]:
    """What a model was trained with, run after run, with another seed. ValueError when its card does not say so."""
    runs = lineage.runs(first.translator.card)
    plans = [_known(run) for run in runs]
    alike = all(plans) and all(
        run.get("data") == runs[-1].get("data") and plan.seed == plans[-1].seed and plan.mechanism == first.mechanism
        for run, plan in zip(runs, plans)
    )
    if not alike or plans[0].start:
        raise ValueError(
            f"{first.translator.name} cannot be trained with seed {seed}: its card must have the settings of a run that "
            "began at random, and of those after it, all with one seed on the same data; study it with --seeds 1"
        )
    return [replace(plan, seed=seed, start="") for plan in plans]


def _known(run: dict) -> Settings | None:
    """The settings of a run, as a card has them; None when it lacks them, or this version does not know them."""
    try:
        return Settings(**run["settings"])
    except (KeyError, TypeError, ValueError):
        return None


def _trained(setting: Setting, name: str, root: Path, plan: Settings, start: Path | None) -> Path:
    """The folder of a model trained below `root`, and now unless it is there."""
    folder = root / name
    if not (folder / "card.json").exists():
        vocabulary = Path(setting.root) / setting.pair / "tokenizer.json"
        atomic.replace(root / setting.pair / "tokenizer.json", lambda path: path.write_bytes(vocabulary.read_bytes()))
        train.train(plan, setting.corpus, root, setting.pair, start=start)
        card = translation.card(root, name, setting.corpus, "by a study of this project")
        checkpoints.write_json(folder / "card.json", card | lineage.begun(start))
    return folder


def links(pairs: Sequence[gold.LinkedPair]) -> dict:
    """How many linked pairs and sure links there are, and the error rate of the diagonal, which looks at nothing."""
    plain = [alignment.count(alignment.diagonal(len(p.target_words), len(p.source_words)), p) for p in pairs]
    total = sum(plain, Counts(0, 0, 0, 0))
    return {"pairs": len(pairs), "sure": total.sure, "diagonal": total.to_dict()["error_rate"]}


def provenance(setting: Setting, measured: Iterable[Model], mechanisms: Iterable[str] = ()) -> dict:
    """What figures were measured with: models by their weights, those missing, data by its hashes, versions, the machine."""
    return {
        "pair": setting.pair,
        "seeds": setting.seeds,
        "missing": setting.missing(mechanisms),
        "models": [{**model.label, "weights_sha256": model.sha256} for model in measured],
        "data": setting.corpus.files,
        "versions": {
            "attnviz": __version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "sacrebleu": sacrebleu.__version__,
        },
        "device": device_name("cpu"),
    }
