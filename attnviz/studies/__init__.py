"""Studies of the trained models, each run by one command: figures, a picture, and a section of the checkpoints' README.md.

A study is a module with TITLE, DESCRIPTION (of its picture), COLUMNS (of panels in it), and
    measure(setting) -> dict    raw figures: lists of records, and `setting.provenance`
    text(found) -> str          what was done and found, in Markdown; it has no figure that is not in `found`
    panels(found) -> list       what is drawn
"""

from attnviz.studies import curves, dropout, length, mechanisms, order, report
from attnviz.studies.setting import Setting

STUDIES = {"mechanisms": mechanisms, "length": length, "dropout": dropout, "order": order, "curves": curves}


def run(name: str, setting: Setting) -> None:
    """Measure, and write what was found below `setting.root`. ValueError when there is nothing there to measure."""
    found = STUDIES[name].measure(setting)
    if not found["rows"]:
        raise ValueError(
            f"{setting.root} has no trained model that the study of {name} measures; give a folder of checkpoints with --root"
        )
    command = f"python -m attnviz study {name} --data DIR" + (f" --seeds {setting.seeds}" if setting.seeds > 1 else "")
    report.write(name, STUDIES[name], {"study": name, "command": command, **found}, setting.root)
