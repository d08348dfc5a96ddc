"""Study: dropout on attention weights. It trains its own models, on a part of the data."""

from collections.abc import Iterator
from dataclasses import replace

from attnviz.data import corpora
from attnviz.mechanisms import MECHANISMS
from attnviz.models.names import ModelName
from attnviz.studies.measured_models import TEST, MeasuredModel, StudyConfig, load, record
from attnviz.studies.report import Panel, Series, grouped, listed, mean, seeds, spread, table, titles, values
from attnviz.training.recipes import training_config
from attnviz.training.train import train
from attnviz.training.validation import mean_loss

TITLE = "Attention dropout"
DESCRIPTION = "BLEU on validation and test, entropy, and the gap between the losses, against attention dropout"
COLUMNS = 2
RATES = (0.0, 0.1, 0.2, 0.3)
CAPTIONS = 10_000  # the first ones of the training data
# Eight to ten minutes a run on one free core of a CPU with bfloat16; everything else is the recipe of each mechanism.
EPOCHS = {"bahdanau": 12, "transformer": 18}
_PANELS = (
    ("BLEU on validation", "val_bleu_lc", "BLEU, 13a lower-cased"),
    ("BLEU on test 2016", "test_bleu_lc", "BLEU, 13a lower-cased"),
    ("Entropy", "entropy_nats", "nats"),
    ("Validation loss minus training loss", "gap", "nats a token"),
)


def measure(config: StudyConfig) -> dict:
    """rows: by run. The best epoch is measured. train_loss, val_loss : nats a token, without dropout or label
    smoothing."""
    tests = {TEST: config.test}
    corpus = replace(config.read, train=config.read.train[:CAPTIONS], tests=tests)
    measured, rows = [], []
    for rate, model in _runs(config, corpus):
        measured.append(model)
        rows.append({**model.label, "attention_dropout": rate, **_numbers(model, corpus)})
    entries = record(config, measured)
    entries["models"] = [
        {**entry, "attention_dropout": row["attention_dropout"]} for entry, row in zip(entries["models"], rows)
    ]
    return {"rows": rows, "captions": len(corpus.train), "compared": min(len(corpus.train), len(corpus.val)), **entries}


def _runs(config: StudyConfig, corpus: corpora.Corpus) -> Iterator[tuple[float, MeasuredModel]]:
    """Each dropout rate with its trained model. A run that was stopped is resumed, in out/dropout-RATE/seed-N."""
    for seed in range(1, config.seeds + 1):
        for mechanism, epochs in EPOCHS.items():
            for rate in RATES:
                run = training_config(config.pair, mechanism, {"attention_dropout": rate}, epochs=epochs, seed=seed)
                root = config.out / f"dropout-{rate:g}" / f"seed-{seed}"
                train(run, corpus, root, config.pair, command="by a study of this project")
                yield rate, load(str(ModelName(config.pair, mechanism)), root, seed)


def _numbers(model: MeasuredModel, corpus: corpora.Corpus) -> dict:
    """The scores on the card, which the run has just written, the losses, and how long the run took."""
    translator, card = model.translator, model.translator.card
    val, test = (card["scores"][split] for split in ("val", TEST))
    samples = (corpus.train[: len(corpus.val)], corpus.val)
    losses = [mean_loss(translator.model, translator.tokenizer, pairs, "cpu") for pairs in samples]
    scores = {
        f"{split}_{key}": score[key]
        for split, score in (("val", val), ("test", test))
        for key in ("bleu_lc", "bleu_tok_lc", "chrf")
    }
    return {
        **scores,
        **{key: test[key] for key in ("entropy_nats", "max_weight")},
        "train_loss": round(losses[0], 4),
        "val_loss": round(losses[1], 4),
        "gap": round(losses[1] - losses[0], 4),
        "epochs": card["epochs"],
        "best_epoch": card["best"]["epoch"],
        "seconds": card["history"][-1]["seconds"],
        "trained_on": card["device"],
    }


def text(results: dict) -> str:
    """Method and results in Markdown."""
    rows = results["rows"]
    head = (
        "",
        "attention dropout",
        "BLEU val",
        "BLEU test 2016",
        "entropy (nats)",
        "max. weight",
        "training loss",
        "validation loss",
        "gap",
        "best epoch",
    )
    lines = [
        (MECHANISMS[name].title, f"{100 * rate:g} %", *_cells(group))
        for (name, rate), group in grouped(rows, "mechanism", "attention_dropout").items()
    ]
    limits = (
        "These are short runs on a part of the data. They compare the rates here, and do not say what is best for full "
        "training."
    )
    return "\n\n".join([_method(results), table(head, lines), seeds(rows), limits])


def _method(results: dict) -> str:
    rows = results["rows"]
    epochs = listed([f"{titles([name])} {group[0]['epochs']}" for name, group in grouped(rows, "mechanism").items()])
    trained = listed(sorted({row["trained_on"] for row in rows}))
    return (
        f"These models were trained for this study on the first {results['captions']:,} captions of the training data "
        "only, so their scores are below those of the shipped models. Attention weights are dropped at the given rate "
        "in training. Everything else, other dropout included, is the recipe of each mechanism, with fewer epochs so "
        f"that a run is short ({epochs}; on {trained}). The best epoch on validation is measured, with greedy decoding "
        "and BLEU 13a lower-cased. Entropy and maximum weight are means over all cross-attention rows, heads and "
        f"layers on {TEST}. Losses are in nats a token, without dropout or label smoothing, on all validation captions "
        f"and on the same number of training captions ({results['compared']:,}); the gap is the validation loss minus "
        "the training loss."
    )


def _cells(rows: list[dict]) -> list[str]:
    kinds = (
        ("val_bleu_lc", 1),
        ("test_bleu_lc", 1),
        ("entropy_nats", 2),
        ("max_weight", 2),
        ("train_loss", 3),
        ("val_loss", 3),
        ("gap", 3),
        ("best_epoch", 0),
    )
    return [spread(rows, key, digits) for key, digits in kinds]


def panels(results: dict) -> list[Panel]:
    """Each number against attention dropout."""
    ticks = tuple(100 * rate for rate in RATES)
    return [
        Panel(
            title,
            tuple(_series(name, rows, key) for name, rows in grouped(results["rows"], "mechanism").items()),
            "attention dropout (%)",
            unit,
            ticks=ticks,
        )
        for title, key, unit in _PANELS
    ]


def _series(mechanism: str, rows: list[dict], key: str) -> Series:
    groups = grouped(rows, "attention_dropout")
    several = len({row["seed"] for row in rows}) > 1
    low, high = (tuple(end(values(group, key)) for group in groups.values()) if several else () for end in (min, max))
    x, y = tuple(100 * rate for rate in groups), tuple(mean(group, key) for group in groups.values())
    return Series(titles([mechanism]), x, y, low, high)
