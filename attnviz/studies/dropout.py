"""Study: dropout on the weights of attention. It trains its own models, on a part of the data."""

from collections.abc import Iterator
from dataclasses import replace

from attnviz.data import corpora
from attnviz.evaluation import translation
from attnviz.mechanisms import MECHANISMS
from attnviz.models import checkpoints
from attnviz.studies.pictures import Panel, Series
from attnviz.studies.setting import TEST, Model, Setting, load, provenance
from attnviz.studies.tables import grouped, listed, mean, seeds, spread, table, titles, values
from attnviz.training import train as training

TITLE = "Attention dropout"
DESCRIPTION = "BLEU on validation and test, entropy, and the gap between the losses, against attention dropout"
COLUMNS = 2
RATES = (0.0, 0.1, 0.2, 0.3)
CAPTIONS = 10_000  # the first ones of the training data
# Eight to ten minutes a run on one free core of a CPU that computes in bfloat16; the rest is the recipe of each mechanism.
EPOCHS = {"bahdanau": 12, "transformer": 18}
_PANELS = (
    ("BLEU on validation", "val_bleu_lc", "BLEU, 13a lower-cased"),
    ("BLEU on test 2016", "test_bleu_lc", "BLEU, 13a lower-cased"),
    ("Entropy", "entropy_nats", "nats"),
    ("Validation loss less training loss", "gap", "nats a token"),
)


def measure(setting: Setting) -> dict:
    """rows: a run each. losses : of the best epoch, which is what is measured, without dropout or smoothing, nats a token."""
    corpus = replace(setting.corpus, train=setting.corpus.train[:CAPTIONS])
    measured, rows = [], []
    for rate, model, history in _runs(setting, corpus):
        measured.append(model)
        rows.append({**model.label, "attention_dropout": rate, **_figures(model, corpus), **history})
    beside = provenance(setting, measured)
    beside["models"] = [
        {**entry, "attention_dropout": row["attention_dropout"]} for entry, row in zip(beside["models"], rows)
    ]
    return {"rows": rows, "captions": len(corpus.train), "compared": min(len(corpus.train), len(corpus.val)), **beside}


def _runs(setting: Setting, corpus: corpora.Corpus) -> Iterator[tuple[float, Model, dict]]:
    """Rate, trained model and what its run recorded; each run goes on where it stood, in out/dropout-RATE/seed-N."""
    for seed in range(1, setting.seeds + 1):
        for mechanism, epochs in EPOCHS.items():
            for rate in RATES:
                plan = training.plan(setting.pair, mechanism, {"attention_dropout": rate}, epochs=epochs, seed=seed)
                root = setting.out / f"dropout-{rate:g}" / f"seed-{seed}"
                folder = training.train(plan, corpus, root, setting.pair)
                history = checkpoints.load_metadata(folder / "training.safetensors", "history")["history"]
                best = max(history, key=lambda epoch: epoch[training.score_key(corpus)])
                run = {
                    "epochs": plan.epochs,
                    "best_epoch": best["epoch"],
                    "seconds": history[-1]["seconds"],
                    "trained_on": history[-1]["device"],
                }
                yield rate, load(f"{setting.pair}/{mechanism}", root, seed), run


def _figures(model: Model, corpus: corpora.Corpus) -> dict:
    translator, train = model.translator, corpus.train[: len(corpus.val)]
    val, test = (
        translation.score(translator, *zip(*pairs), progress=True) for pairs in (corpus.val, corpus.tests[TEST])
    )
    losses = [training.loss(translator.model, translator.text, pairs, "cpu") for pairs in (train, corpus.val)]
    scores = {
        f"{split}_{key}": found[key]
        for split, found in (("val", val), ("test", test))
        for key in ("bleu_lc", "bleu_tok_lc", "chrf")
    }
    return {
        **scores,
        **{key: test[key] for key in ("entropy_nats", "max_weight")},
        "train_loss": round(losses[0], 4),
        "val_loss": round(losses[1], 4),
        "gap": round(losses[1] - losses[0], 4),
    }


def text(found: dict) -> str:
    rows = found["rows"]
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
    limits = "Short runs on a part of the data say how the rates compare here, not what is best for full training."
    return "\n\n".join([_method(found), table(head, lines), seeds(rows), limits])


def _method(found: dict) -> str:
    rows = found["rows"]
    epochs = listed([f"{titles([name])} {group[0]['epochs']}" for name, group in grouped(rows, "mechanism").items()])
    trained = listed(sorted({row["trained_on"] for row in rows}))
    return (
        f"Models trained for this study on the first {found['captions']:,} captions of the training data only, so their scores "
        "are below those of the models that ship. The weights of attention are dropped at the given rate while training; all "
        f"else is the recipe of each mechanism, its other dropout included, but for fewer epochs, so that a run is short "
        f"({epochs}; on {trained}). The best epoch on validation is measured: greedy, BLEU 13a lower-cased; entropy and maximum "
        f"weight are means over every cross-attention row, head and layer on {TEST}. Losses are nats a token without dropout "
        f"or smoothing, on all validation captions and on as many training captions ({found['compared']:,}); the gap is "
        "validation less training."
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


def panels(found: dict) -> list[Panel]:
    ticks = tuple(100 * rate for rate in RATES)
    return [
        Panel(
            title,
            tuple(_series(name, rows, key) for name, rows in grouped(found["rows"], "mechanism").items()),
            "attention dropout (%)",
            unit,
            ticks=ticks,
        )
        for title, key, unit in _PANELS
    ]


def _series(mechanism: str, rows: list[dict], key: str) -> Series:
    groups = grouped(rows, "attention_dropout")
    several = len({row["seed"] for row in rows}) > 1
    low, high = (tuple(of(values(group, key)) for group in groups.values()) if several else () for of in (min, max))
    x, y = tuple(100 * rate for rate in groups), tuple(mean(group, key) for group in groups.values())
    return Series(titles([mechanism]), x, y, low, high)
