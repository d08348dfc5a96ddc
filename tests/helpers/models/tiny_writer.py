"""A very small model that writes: a data folder of a few stories, captions and everyday sentences, and its training."""

import gzip
from pathlib import Path

import tiny
import torch

from attnviz.data import corpora
from attnviz.data.tokenizer import train_vocabulary
from attnviz.mechanisms import Config
from attnviz.models import checkpoints
from attnviz.networks.registry import build
from attnviz.training.recipes import TrainingConfig
from attnviz.training.train import train

NAME = "en/writer"
TEXTS = ["The dog runs. The cat sleeps.\nA black horse jumps.", "A boy sleeps.\nThe boy runs."] * 3
OPTIONS = {"width": 16, "heads": 2, "layers": 2, "hidden": 24, "dropout": 0.1, "longest": 32}


def story(seed: int, paragraphs: int = 3) -> list[str]:
    """Paragraphs of a story: sentences such as “The black dog runs.”"""
    sentences = [english for english, _ in tiny.sentences(4 * paragraphs, seed)]
    return [" ".join(sentences[4 * number : 4 * number + 4]) for number in range(paragraphs)]


def write_data(folder: Path) -> Path:
    """stories/, multi30k/ (English only), everyday_enfr, _ende and _enja, and tinyshakespeare/, as data/tasks.py reads
    them: some plain, some gzipped."""
    for name in ("stories", "multi30k", "everyday_enfr", "everyday_ende", "everyday_enja", "tinyshakespeare"):
        (folder / name).mkdir(parents=True)
    for seed, split in enumerate(("train", "val", "test")):
        chapters = ["\n".join(story(10 * seed + number)) for number in range(6 if split == "train" else 2)]
        (folder / "stories" / f"{split}.txt.gz").write_bytes(gzip.compress("\n\n".join(chapters).encode()))
        for language, sentence in {"fr": "Hi there.", "de": "Go on!", "ja": "Who is it?"}.items():
            rows = {"train": [sentence, "Run!"], "val": ["Sit down."], "test": ["Run!"]}[split]
            lines = "".join(f"{row}\tx\n" for row in rows)
            (folder / f"everyday_en{language}" / f"{split}.tsv").write_text(lines, encoding="utf-8")
    for seed, name in enumerate(("train", "val", "test_2016_flickr", "test_2017_flickr")):
        lines = "".join(f"A {english.lower()}\n" for english, _ in tiny.sentences(9, 50 + seed))
        (folder / "multi30k" / f"{name}.en").write_text(lines, encoding="utf-8")
    scenes = "".join(f"DOG:\n{paragraph}\n\n" for number in range(9) for paragraph in story(100 + number))
    (folder / "tinyshakespeare" / "input.txt").write_text(scenes, encoding="utf-8")
    return folder


def config(**changes) -> TrainingConfig:
    settings = {
        "epochs": 3,
        "batch_tokens": 96,
        "vocabulary": 120,
        "warmup": 5,
        "learning_rate": 1e-2,
        "label_smoothing": 0.0,
        "decay": 0.4,
        "muon": 1.0,
        "average": 0.9,
        "passes": {"captions": 2},
        "options": OPTIONS,
    }
    return TrainingConfig("writer", **{**settings, **changes})


def write_models(root: Path) -> Path:
    """Untrained models below `root`: en/writer by pieces and shakespeare/writer by letters."""
    for pair, style in (("en", "prose"), ("shakespeare", "letters")):
        text = train_vocabulary(TEXTS, 100, style)
        model_config = Config("writer", len(text), OPTIONS)
        torch.manual_seed(1)
        weights = build(model_config).state_dict()
        checkpoints.save_model(root / pair / "writer", model_config, {key: 9 * value for key, value in weights.items()})
        text.save(root / pair / "tokenizer.json")
    return root


def trained(data: Path, root: Path, **changes) -> Path:
    """Train NAME below `root`; returns its folder."""
    return train(config(**changes), corpora.load("en", data), root, "en", compile=False)
