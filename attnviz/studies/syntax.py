"""Study: which heads of encoders look along the dependencies of a sentence."""

from attnviz import syntax
from attnviz.data.tasks import TASKS
from attnviz.mechanisms import ALL
from attnviz.models import checkpoint_files
from attnviz.models.names import ModelName
from attnviz.select import map_title
from attnviz.studies.measured_models import StudyConfig, load, record
from attnviz.studies.report import grouped, table
from attnviz.syntax import RELATIONS, TO_GOVERNOR

TITLE = "Heads and syntax"
DESCRIPTION = "How often the heads of encoders look at the governor or the dependant of a word"
COLUMNS = 1
LANGUAGE = "en"  # of the parsed sentences


def measure(config: StudyConfig) -> dict:
    """rows: by model, head, relation and direction, as `syntax.table` gives them."""
    names = [name for name in checkpoint_files.names(config.root) if _reads(name)]
    measured = [load(name, config.root) for name in names]
    rows = []
    for model in measured:
        traces = (model.translator.trace(text) for text in syntax.shipped())
        frame = syntax.table(traces).drop(columns="kind").round({"share": 4, "baseline": 4})
        rows += frame.to_dict("records")
    return {"rows": rows, "sentences": len(syntax.shipped()), **record(config, measured)}


def _reads(name: str) -> bool:
    """Is it an encoder with heads that reads English?"""
    model = ModelName.parse(name)
    english = model.pair in TASKS and TASKS[model.pair].source == LANGUAGE
    return english and model.mechanism in ALL and "encoder" in ALL[model.mechanism].head_kinds


def text(results: dict) -> str:
    """Method and results in Markdown."""
    parts = [_method(results)]
    for name, rows in grouped(results["rows"], "model").items():
        parts.append(f"**{name}**: the best head of each relation\n\n{_best(rows)}")
    return "\n\n".join(parts)


def panels(results: dict) -> list:
    """No picture: the page draws the numbers of every head."""
    return []


def _method(results: dict) -> str:
    return (
        f"{results['sentences']} English sentences with dependencies that were parsed and corrected by hand "
        "([rules](../attnviz/syntax/README.md)). For each head of the encoder and each relation: how often the word "
        "that a word attends to most is its governor, or one of its dependants (Clark et al. 2019; Voita et al. 2019). "
        "Special tokens are left out. The baseline is the best fixed offset, such as the next word, chosen on the same "
        "sentences. The best of all heads is chosen on the same sentences too, so a small lead over the baseline says "
        "little."
    )


def _best(rows: list[dict]) -> str:
    lines = []
    for (label, direction), group in grouped(rows, "relation", "direction").items():
        best = max(group, key=lambda row: row["share"])
        lines.append(
            (
                question(label, direction),
                map_title(best["layer"], best["head"]),
                f"{best['share']:.0%}",
                f"{best['baseline']:.0%} ({best['offset']:+d})",
                f"{best['count']}",
            )
        )
    return table(("from → to", "head", "right", "best fixed offset (words)", "questions"), lines)


def question(label: str, direction: str) -> str:
    """`the subject → its verb`, or the other way round."""
    relation = RELATIONS[label]
    ends = relation.dependant, relation.governor.replace("its ", "the ")
    return " → ".join(ends if direction == TO_GOVERNOR else ends[::-1])
