"""The results of an earlier run of the study: a model whose weights are the same is not measured again."""

import json
from pathlib import Path

from attnviz import __version__
from attnviz.models.names import ModelName
from attnviz.studies.measured_models import StudyConfig
from attnviz.studies.tables import grouped

PATH = Path("studies") / "faithfulness.json"  # below the folder of checkpoints


class Earlier:
    """The rows of ROOT/studies/faithfulness.json by model, where they were measured as `config` asks.

    With other data, another number of sentences or of samples, or another version of this package there are none.
    """

    def __init__(self, config: StudyConfig, sentences: int, samples: int):
        self.rows: dict[tuple[str, str], list[dict]] = {}
        self.weights: set[str] = set()
        path = Path(config.root) / PATH
        if not path.is_file():
            return
        results = json.loads(path.read_text(encoding="utf-8"))
        asked = (sentences, samples, config.corpus.files, __version__)
        measured = (*map(results.get, ("sentences", "samples", "data")), results.get("versions", {}).get("attnviz"))
        if asked == measured:
            self.rows = grouped(results["rows"], "pair", "mechanism")
            self.weights = {model["weights_sha256"] for model in results["models"]}

    def of(self, name: str, sha256: str) -> list[dict]:
        """The rows of the model of that name with weights of that hash; none where it must be measured."""
        model = ModelName.parse(name)
        return self.rows.get((model.pair, model.mechanism), []) if sha256 in self.weights else []
