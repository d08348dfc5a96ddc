"""Untrained checkpoints of the other pairs, for tests of the page: real code, no sense in what they say."""

from pathlib import Path

import tiny
import torch

from attnviz.data.tasks import TASKS
from attnviz.data.tokenizer import train_vocabulary
from attnviz.mechanisms import Config
from attnviz.models import checkpoints
from attnviz.networks.registry import build

MECHANISMS = ("fixed-context", "bahdanau", "luong-general", "transformer")
TEXTS = {
    "en-de": (
        "Ein Mann steht auf einer Leiter.",
        "Zwei Mädchen spielen im Schnee.",
        "Ein Hund hat einen Ball gefangen.",
    ),
    "en-ja": (
        "私 は 今朝 リンゴ を 食べ た 。",
        "彼女 は 図書館 で 本 を 読 ん で いる 。",
        "彼 が どこ に 住 ん で いる か 知 ら な い 。",
    ),
    "reverse": ("f e d c b a", "b b a k k k"),
}


def write(root: Path) -> Path:
    """Models of a few thousand seeded weights below `root`."""
    for pair, texts in TEXTS.items():
        text = train_vocabulary([*TASKS[pair].examples, *texts] * 3, 150, TASKS[pair].style)
        (root / pair).mkdir(parents=True)
        text.save(root / pair / "tokenizer.json")
        for mechanism in MECHANISMS:
            torch.manual_seed(5)
            config = Config(mechanism, len(text), tiny.WIDTHS[mechanism])
            checkpoints.save_model(root / pair / mechanism, config, build(config).state_dict())
    return root
