"""Studies of the trained models, each run by one command: numbers, a picture, and a section of the checkpoints'
README.md.

A study is a module with TITLE, DESCRIPTION (of its picture), COLUMNS (of the picture's panels), and
    measure(config) -> dict     the raw numbers: lists of records, and `measured_models.record`
    text(results) -> str        method and results in Markdown; every number in it comes from `results`
    panels(results) -> list     the panels of the picture
"""

from attnviz.studies import curves, dropout, faithfulness, length, mechanisms, order, report, syntax, writing
from attnviz.studies.measured_models import StudyConfig

STUDIES = {
    "mechanisms": mechanisms,
    "length": length,
    "dropout": dropout,
    "order": order,
    "curves": curves,
    "faithfulness": faithfulness,
    "syntax": syntax,
    "writing": writing,
}


def run(name: str, config: StudyConfig) -> None:
    """Measure, and write the results below `config.root`. ValueError when there is nothing to measure."""
    results = STUDIES[name].measure(config)
    if not results["rows"]:
        raise ValueError(
            f"{config.root} has no trained model for the study {name}; give a folder of checkpoints with --root"
        )
    chosen = {"seeds": config.seeds, "sentences": config.sentences}
    changed = (f" --{key} {value}" for key, value in chosen.items() if value != getattr(StudyConfig, key))
    folders = (f" --moments {model}=DIR" for model, _ in config.moments)
    command = f"python -m attnviz study {name}{' --data DIR' * bool(config.corpus)}" + "".join([*changed, *folders])
    report.write(name, STUDIES[name], {"study": name, "command": command, **results}, config.root)
