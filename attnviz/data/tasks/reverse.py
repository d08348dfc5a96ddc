"""reverse: a toy task with a known alignment. The target is the source, letter by letter, backwards."""

import hashlib
import random
import string
from pathlib import Path

from attnviz.data.tasks.task import Splits, Task


def read(data: Path | None = None, count: int = 20_000, seed: int = 1) -> Splits:
    """`count` different sequences of 1 to 20 letters, generated; few of them are short. `data` is not used.

    A fortieth is val, a twentieth is test, the rest is train.
    """
    generator, targets = random.Random(f"reverse/{seed}"), {}
    while len(targets) < count:
        letters = generator.choices(string.ascii_lowercase, k=generator.randint(1, 20))
        targets[" ".join(letters)] = " ".join(reversed(letters))
    pairs = list(targets.items())
    generator.shuffle(pairs)
    digest = hashlib.sha256("\n".join(source for source, _ in pairs).encode()).hexdigest()
    size = count // 40
    train, val, test = pairs[3 * size :], pairs[:size], pairs[size : 3 * size]
    return Splits(train, val, {"test": test}, {f"generated, seed {seed}": digest})


REVERSE = Task(
    name="reverse",
    source="zxx",
    target="zxx",
    title="Reverse the sequence",
    output="reversed text",
    read=read,
    generated=True,
    style="symbols",
    # One right answer and as many sequences as wanted: small models, no label smoothing, no dropout.
    recipe_changes={
        "epochs": 10,
        "batch_tokens": 1000,
        "learning_rate": 3e-3,
        "warmup": 100,
        "label_smoothing": 0.0,
        "average": 0.99,
        "rates": {},
        "options": {"dropout": 0.0, "width": 128, "embedding_width": 64},
    },
    validation_metric="exact_match",
    metrics=("exact_match",),
    attention_metrics=("antidiagonal",),
    ask="Your sequence of letters",
    hint="Type letters with spaces between them and press Enter",
    examples=("a b c d e f", "k k k a b b", "m o t o r", "q w e r t y u i o p a s"),
    forced="f e d c b a",
    note="Toy task: reverse the letters. The correct alignment is the anti-diagonal. Ignore the <eos> row.",
    unit="letter",
)
