"""A very small language pair for tests: sentences from a grammar, a data folder, models of a few thousand weights."""

import atexit
import functools
import gzip
import random
import shutil
import tempfile
from pathlib import Path

import torch

from attnviz.data.tokenizer import SubwordTokenizer, train_vocabulary
from attnviz.mechanisms import MECHANISMS, Config
from attnviz.models import checkpoint_files, checkpoints
from attnviz.networks.registry import build

NOUNS = {"dog": "chien", "cat": "chat", "boy": "garçon", "horse": "cheval"}
COLOURS = {"black": "noir", "white": "blanc", "grey": "gris"}
VERBS = {"runs": "court", "sleeps": "dort", "jumps": "saute"}
WIDTHS = {name: {"width": 16, "embedding_width": 16} for name in MECHANISMS}
WIDTHS["luong-local"] |= {"reach": 3}  # so that a short sentence is not all within reach
WIDTHS["transformer"] = {"width": 16, "hidden": 32, "layers": 2, "heads": 2}
CLASSIFIER = {"width": 16, "layers": 2, "heads": 2}
OPINIONS = {"0": ("dull", "awful", "wo n't please"), "1": ("lovely", "moving", "ca n't bore")}


def sentences(count: int, seed: int) -> list[tuple[str, str]]:
    """`The black dog runs.` and `Le chien noir court.`, with up to two colours."""
    generator, pairs = random.Random(seed), []
    for _ in range(count):
        noun, verb = generator.choice(list(NOUNS)), generator.choice(list(VERBS))
        colours = generator.sample(list(COLOURS), generator.randint(0, 2))
        english = " ".join(["The", *colours, noun, verb])
        french = " ".join(["Le", NOUNS[noun], *(COLOURS[colour] for colour in colours), VERBS[verb]])
        pairs.append((f"{english}.", f"{french}."))
    return pairs


def write_data(folder: Path, train: int = 120) -> Path:
    """A data folder as corpora.load expects it: some files plain, some gzipped."""
    flickr, everyday = folder / "multi30k", folder / "tatoeba_enfr"
    flickr.mkdir(parents=True)
    everyday.mkdir()
    for seed, (name, count) in enumerate(
        {"train": train, "val": 12, "test_2016_flickr": 10, "test_2017_flickr": 8}.items()
    ):
        pairs = sentences(count, seed)
        (flickr / f"{name}.en").write_text("".join(f"{a}\n" for a, _ in pairs), encoding="utf-8")
        (flickr / f"{name}.fr.gz").write_bytes(gzip.compress("".join(f"{b}\n" for _, b in pairs).encode()))
    (everyday / "pairs.tsv").write_text("Hi.\tSalut.\nRun!\tCours !\tCC-BY\n", encoding="utf-8")
    return folder


def reviews(count: int, seed: int) -> list[tuple[str, str]]:
    """`the long film is dull , really` and `0`."""
    generator, made = random.Random(seed), []
    for _ in range(count):
        label = generator.choice(list(OPINIONS))
        words = [
            "the",
            *generator.sample(("long", "short", "french"), generator.randint(0, 2)),
            generator.choice(("film", "plot")),
        ]
        opinion = generator.choice(OPINIONS[label])
        made.append((" ".join([*words, "is", opinion, *generator.sample((", really", "!"), 1)]), label))
    return made


def write_reviews(folder: Path, train: int = 150) -> Path:
    """A data folder with the labelled sentences of sst2, one file gzipped."""
    (folder / "sst2").mkdir(parents=True)
    lines = ["".join(f"{sentence}\t{label}\n" for sentence, label in reviews(*size)) for size in ((train, 0), (40, 1))]
    (folder / "sst2" / "train.tsv.gz").write_bytes(gzip.compress(lines[0].encode()))
    (folder / "sst2" / "dev.tsv").write_text(lines[1], encoding="utf-8")
    return folder


def vocabulary() -> SubwordTokenizer:
    return train_vocabulary((side for pair in sentences(200, 0) for side in pair), 120)


def write_models(root: Path) -> Path:
    """Untrained, seeded checkpoints of every mechanism, written by the real code once a process, and copied."""
    shutil.copytree(_models() / "en-fr", root / "en-fr")
    return root


@functools.cache
def _models() -> Path:
    root = Path(tempfile.mkdtemp(prefix="tiny-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    (root / "en-fr").mkdir()
    text = vocabulary()
    text.save(root / "en-fr" / "tokenizer.json")
    for mechanism, options in WIDTHS.items():
        torch.manual_seed(3)
        config = Config(mechanism, len(text), options)
        checkpoints.save_model(root / "en-fr" / mechanism, config, build(config).state_dict())
        card = {"pair": "en-fr", "parameters": 1234, "scores": {"test_2016_flickr": {"bleu_lc": 1.5}}}
        checkpoint_files.write_json(root / "en-fr" / mechanism / "card.json", card)
    return root
