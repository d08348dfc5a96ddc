"""The results of an earlier run of the study: a model whose weights are the same is not measured again."""

from pathlib import Path

from attnviz import __version__, storage
from attnviz.models.names import ModelName
from attnviz.studies.measured_models import StudyConfig
from attnviz.studies.tables import grouped

PATH = Path("studies") / "faithfulness.json"  # below the folder of checkpoints


class Earlier:
    """The rows of ROOT/studies/faithfulness.json by model, where they were measured as `config` asks.

    With another number of sentences or of samples, other data of the pair of `config`, or another version of this
    package there are none; nor are there any where the file cannot be read. The file has no hashes of the data of other
    pairs: after a change of those, remove it.
    """

    def __init__(self, config: StudyConfig, sentences: int, samples: int):
        self.rows: dict[tuple[str, str], list[dict]] = {}
        self.weights: set[str] = set()
        path = Path(config.root) / PATH
        try:
            results = storage.parse_json(path.read_bytes())
            measured = (*(results[key] for key in ("sentences", "samples", "data")), results["versions"]["attnviz"])
            if measured == (sentences, samples, config.corpus.files, __version__):
                self.rows = grouped(results["rows"], "pair", "mechanism")
                self.weights = {model["weights_sha256"] for model in results["models"]}
        except (OSError, ValueError, KeyError, TypeError):  # it is not there, or not what this study writes
            self.rows = {}

    def of(self, name: str, sha256: str) -> list[dict]:
        """The rows of the model of that name with weights of that hash; none where it must be measured."""
        model = ModelName.parse(name)
        return self.rows.get((model.pair, model.mechanism), []) if sha256 in self.weights else []
