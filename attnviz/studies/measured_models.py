"""The models that the studies measure: the checkpoints, the same models trained with other seeds, and a record of
both."""

import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import sacrebleu
import torch

from attnviz import __version__, alignment, gold, loading, storage
from attnviz.alignment import Counts
from attnviz.data import corpora
from attnviz.data.readers import Pairs
from attnviz.models import checkpoint_files
from attnviz.models.names import CARD, TOKENIZER, ModelName
from attnviz.training.optimizer import device_name
from attnviz.training.recipes import TrainingConfig
from attnviz.training.train import train

TEST = "test_2016_flickr"  # the test on which the studies report


@dataclass(frozen=True)
class StudyConfig:
    """root : folder of the checkpoints to measure. out : folder to train in. seeds : training runs of each model.

    corpus : None for a study that reads no sentences. sentences : the most, in a study that takes seconds for each;
    None for as many as each part can measure in some minutes. data : the folder of the data, for the other pairs.
    moments : names of models and the folders with the saved moments of their runs.
    """

    root: Path
    out: Path
    corpus: corpora.Corpus | None
    seeds: int = 1
    pair: str = "en-fr"
    sentences: int | None = None
    data: Path | None = None
    moments: tuple[tuple[str, Path], ...] = ()

    @property
    def read(self) -> corpora.Corpus:
        """The corpus. ValueError for a study that reads no sentences."""
        if self.corpus is None:
            raise ValueError("this study reads no sentences")
        return self.corpus

    @property
    def test(self) -> Pairs:
        return self.read.tests[TEST]

    def missing(self, mechanisms: Iterable[str]) -> list[str]:
        """The mechanisms without a checkpoint."""
        names = checkpoint_files.names(self.root)
        return [mechanism for mechanism in mechanisms if str(ModelName(self.pair, mechanism)) not in names]


@dataclass(frozen=True)
class MeasuredModel:
    """A trained model. translator : the model, in most studies one that translates. seed : of its training; None if the
    card lacks it. sha256 : of its weights."""

    translator: Any
    seed: int | None
    sha256: str

    @property
    def mechanism(self) -> str:
        return self.translator.mechanism

    @property
    def label(self) -> dict:
        """The first entries of each row of a study."""
        return {"mechanism": self.mechanism, "seed": self.seed}


def load(name: str, root: Path, seed: int | None = None) -> MeasuredModel:
    """The checkpoint `name` below `root`. Raises CheckpointError."""
    translator = loading.load_checkpoint(name, root)
    seed = seed if seed is not None else translator.card.get("seed")
    return MeasuredModel(translator, seed, checkpoint_files.fingerprint(name, root))


def models(config: StudyConfig, mechanisms: Iterable[str]) -> Iterator[MeasuredModel]:
    """The checkpoints of these mechanisms, each followed by the same model with other seeds, until there are `seeds` of
    it.

    The other seeds are trained in out/seed-N, or resumed there, with the settings on the card of the checkpoint.
    """
    missing = config.missing(mechanisms)
    for name in (str(ModelName(config.pair, mechanism)) for mechanism in mechanisms if mechanism not in missing):
        shipped = load(name, config.root)
        yield shipped
        other_seeds = [seed for seed in range(1, config.seeds + 1) if seed != shipped.seed]
        for seed in other_seeds[: config.seeds - 1]:
            yield load(name, _train_with_seed(config, shipped, seed), seed)


def _train_with_seed(config: StudyConfig, shipped: MeasuredModel, seed: int) -> Path:
    """Train a model again with another seed, in as many runs as the first time, unless that is done -> its folder of
    checkpoints.

    ValueError if the card lacks the configuration of the first training, or the folder holds a different model.
    """
    name, root = shipped.translator.name, config.out / f"seed-{seed}"
    runs = _training_configs(shipped, seed)
    if (root / name / CARD).exists():
        done = [_training_config(run) for run in checkpoint_files.runs(checkpoint_files.read_card(name, root))]
        if [run and replace(run, start="") for run in done] != runs:
            raise ValueError(
                f"{root / name} was trained with different settings from {name}; remove it, or choose another --out"
            )
        return root
    start = None
    for number, run in enumerate(runs, start=1):
        start = _train_run(config, name, root if number == len(runs) else root / f"run-{number}", run, start)
    return root


def _training_configs(shipped: MeasuredModel, seed: int) -> list[TrainingConfig]:
    """The configurations of all runs of a model, with another seed. ValueError when its card does not have them."""
    runs = checkpoint_files.runs(shipped.translator.card)
    configs = [config for config in map(_training_config, runs) if config is not None]
    consistent = len(configs) == len(runs) > 0 and all(
        run.get("data") == runs[-1].get("data")
        and config.seed == configs[-1].seed
        and config.mechanism == shipped.mechanism
        for run, config in zip(runs, configs)
    )
    if not consistent or configs[0].start:
        raise ValueError(
            f"{shipped.translator.name} cannot be trained with seed {seed}: its card must have the settings of a run "
            "that began with random weights, and of the runs after it, all with one seed on the same data; use --seeds "
            "1"
        )
    return [replace(config, seed=seed, start="") for config in configs]


def _training_config(run: dict) -> TrainingConfig | None:
    """The configuration of a run on a card; None when it is missing, or this version cannot read it."""
    try:
        return TrainingConfig(**run["settings"])
    except (KeyError, TypeError, ValueError):
        return None


def _train_run(config: StudyConfig, name: str, root: Path, run: TrainingConfig, start: Path | None) -> Path:
    """Train one run below `root` unless that is done, with the tokenizer of the shipped models -> the folder of the
    model."""
    if not (root / name / CARD).exists():
        tokenizer = (Path(config.root) / config.pair / TOKENIZER).read_bytes()
        storage.replace(root / config.pair / TOKENIZER, lambda path: path.write_bytes(tokenizer))
        train(run, config.read, root, config.pair, start=start, command="by a study of this project")
    return root / name


def link_counts(pairs: Sequence[gold.LinkedPair]) -> dict:
    """The number of aligned sentence pairs and of sure links, and the error rate of the diagonal, which uses no
    attention."""
    counts = [alignment.count(alignment.diagonal(len(p.target_words), len(p.source_words)), p) for p in pairs]
    total = sum(counts, Counts(0, 0, 0, 0))
    return {"pairs": len(pairs), "sure": total.sure, "diagonal": total.to_dict()["error_rate"]}


def record(config: StudyConfig, measured: Iterable[MeasuredModel], mechanisms: Iterable[str] = ()) -> dict:
    """What was measured: models by the hash of their weights, missing ones, data by its hashes, versions, the
    device."""
    return {
        "pair": config.pair,
        "seeds": config.seeds,
        "missing": config.missing(mechanisms),
        "models": [{**model.label, "weights_sha256": model.sha256} for model in measured],
        "data": config.corpus.files if config.corpus else {},
        "versions": {
            "attnviz": __version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "sacrebleu": sacrebleu.__version__,
        },
        "device": device_name("cpu"),
    }
