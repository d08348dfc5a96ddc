"""`python -m attnviz models`: list the trained models."""

import json
from argparse import ArgumentParser, Namespace

from attnviz.cli import arguments

HELP = "list the trained models"
# The scores that the list shows: the first of these that a card has.
_SCORES = ("bleu_lc", "bleu_morphemes", "bleu_words", "bleu_char", "exact_match", "accuracy", "bits_a_character")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the cards as JSON")
    arguments.add_root(parser)


def run(args: Namespace) -> None:
    """Print a table of the checkpoints; for a damaged one it says what is wrong."""
    from attnviz.cli.tables import table
    from attnviz.models import checkpoint_files
    from attnviz.models.model import describe

    root = arguments.given_root(args)
    descriptions = [describe(name, root) for name in checkpoint_files.names(root)]
    if args.json:
        print(json.dumps(descriptions))
    elif not descriptions:
        print(f"no checkpoints in {', '.join(map(str, [root] if root else checkpoint_files.roots()))}")
    else:
        head = ("model", "mechanism", "parameters", "score", "problem")
        print(table([head] + [_row(description) for description in descriptions], "<<>><"))


def _row(description: dict) -> tuple[str, ...]:
    """A row of the table. A card may lack any entry. Control characters in folder names are printed as escapes."""
    from attnviz.figures.labels import plain
    from attnviz.models import checkpoint_files

    name = plain(description["name"])
    if description["problem"]:
        return name, "–", "–", "–", plain(description["problem"])
    return (
        name,
        description["title"],
        _number(description, ",", "parameters"),
        _score(description),
        checkpoint_files.unfinished(description)
        or description["to_fetch"] * "its weights are fetched on first use"
        or "none",
    )


def _score(card: dict) -> str:
    """The score on the first test, or on validation when there is no test; a dash when the card has no score."""
    scores = card.get("scores")
    splits = (
        {name: split for name, split in scores.items() if isinstance(split, dict)} if isinstance(scores, dict) else {}
    )
    for name in [name for name in splits if not name.startswith("val")] or list(splits):
        for key in _SCORES:
            if (number := _number(splits, ".2f", name, key)) != "–":
                greedy = ", greedy" if splits[name].get("beam") == 1 else ""
                return f"{number} {key}, {name}{greedy}"
    return "–"


def _number(card: dict, form: str, *keys: str) -> str:
    """The number under nested keys of a card; a dash when there is no number."""
    value = card
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return format(value, form) if type(value) in (int, float) else "–"
