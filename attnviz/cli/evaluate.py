"""`python -m attnviz evaluate`: score a model on sentences with their translations or labels."""

import json
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from attnviz.cli import arguments
from attnviz.models.names import is_hugging_face

HELP = (
    "BLEU, chrF, speed, entropy and maximum weight on two aligned files; for a classifier, accuracy on one file of "
    "sentences with labels; for a model that writes, bits a character on one file"
)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--model", required=True, help=f"{arguments.MODEL_HELP}; or hf: and a model that translates")
    parser.add_argument(
        "--source",
        **arguments.FILE,
        required=True,
        help="one sentence per line, plain or gzipped, - for standard input; for a classifier sentence<TAB>0 or 1",
    )
    parser.add_argument("--reference", **arguments.FILE, help="the translations, line by line")
    parser.add_argument("--beam", type=int, default=1, metavar="N", help="beam size (default 1: greedy, in batches)")
    parser.add_argument("--json", action="store_true", help="print the scores as JSON")
    arguments.add_prefix(parser)
    arguments.add_root(parser)
    arguments.add_threads(parser)


def run(args: Namespace) -> None:
    """Score a model, and print a table or JSON."""

    model = arguments.open_model(args, arguments.with_prefix(args, args.model), huggingface=True)
    if is_hugging_face(model.name) and "cross" not in model.head_kinds:
        raise ValueError(f"{model.name} produces no translation; of Hugging Face models, evaluate takes those that do")
    evaluate, show = _OF_CLASS.get(type(model).__name__, (_translate, _score_table))
    result = evaluate(model, args)
    print(json.dumps(result) if args.json else show(result, args))


def _translate(translator, args: Namespace) -> dict:
    from attnviz.evaluation.translation import score, score_traces

    if not args.reference:
        raise ValueError("--reference must be a file with the translations of --source; got none")
    sources, references = _lines(args.source), _lines(args.reference)
    if len(sources) != len(references):
        raise ValueError(
            f"{args.source} has {len(sources)} lines and {args.reference} has {len(references)}; they must be aligned"
        )
    if is_hugging_face(translator.name):
        return score_traces(translator, sources, references, args.beam)
    return score(translator, sources, references, args.beam, progress=True)


def _score_table(result: dict, args: Namespace) -> str:
    from attnviz.cli.tables import table
    from attnviz.evaluation import metrics
    from attnviz.models.names import ModelName

    pair = "" if is_hugging_face(args.model) else ModelName.parse(args.model).pair
    wanted = metrics.for_pair(pair) if pair else metrics.ANY
    if missing := [metric.title for metric in wanted if metric.key not in result]:
        print(
            f"the references have no spaces, so {missing[0].replace(',', ' on')} cannot be computed; use BLEU on "
            "characters",
            file=sys.stderr,
        )
    rows = [("model", result["model"]), ("sentences", str(result["sentences"]))]
    for metric in wanted:
        if metric.key in result:
            rows.append((metric.title, f"{result[metric.key]:.2f}   {result[f'{metric.key}_signature']}"))
    how = "greedy" if args.beam == 1 else f"beam {args.beam}"
    rows.append(("speed", f"{result['sentences_per_second']:.1f} sentences/s, {how}"))
    if result["entropy_nats"] is not None:
        rows.append(
            ("entropy", f"{result['entropy_nats']:.4f} nats, mean of all cross-attention rows, heads and layers")
        )
        rows.append(("maximum weight", f"{result['max_weight']:.4f}, mean of the same rows"))
    return table(rows, "<<")


def _classify(classifier, args: Namespace) -> dict:
    from attnviz import evaluation
    from attnviz.data import readers

    if args.reference or args.beam != 1:
        raise ValueError(
            f"{classifier.name} is a classifier, and its labels are in --source; --reference and --beam are for models "
            "that translate"
        )
    pairs = readers.read_labelled(Path(args.source), classifier.task.labels)
    if not pairs:
        raise ValueError(f"{args.source} must hold at least one sentence with its label; got none")
    return evaluation.score_classifier(classifier, *zip(*pairs))


def _accuracy_table(result: dict, args: Namespace) -> str:
    from attnviz.cli.tables import table

    rows = [
        ("model", result["model"]),
        ("sentences", str(result["sentences"])),
        ("accuracy", f"{result['accuracy']:.2f}%"),
        ("speed", f"{result['sentences_per_second']:.1f} sentences/s"),
    ]
    confusion = result["confusion"]
    counts = [("label", *(f"predicted {label}" for label in confusion))]
    counts += [(correct, *map(str, predicted.values())) for correct, predicted in confusion.items()]
    return f"{table(rows, '<<')}\n\n{table(counts, '<>>')}"


def _predict(writer, args: Namespace) -> dict:
    from attnviz.data import readers
    from attnviz.data.tasks import chapters
    from attnviz.evaluation import language

    if args.reference or args.beam != 1:
        raise ValueError(f"{writer.name} writes on after a text; --reference and --beam are for models that translate")
    texts = chapters(readers.read_lines(Path(args.source)))
    if not texts:
        raise ValueError(f"{args.source} must hold a text; got none")
    return {"model": writer.name} | language.score(writer, texts)


def _surprise_table(result: dict, args: Namespace) -> str:
    from attnviz.cli.tables import table

    rows = [(name.replace("_", " "), f"{value:,}") for name, value in result.items() if name != "model"]
    return table([("model", result["model"]), *rows], "<<")


# the class of a model -> what measures it, what shows the result; other models translate
_OF_CLASS = {"Classifier": (_classify, _accuracy_table), "Writer": (_predict, _surprise_table)}


def _lines(path: str) -> list[str]:
    """The lines of a text file, stripped. ValueError when all are empty."""
    from attnviz.data import readers

    lines = [line.strip() for line in readers.read_lines(Path(path))]
    if not any(lines):
        raise ValueError(f"{path} must have text on at least one line; got none")
    return lines
