"""The traces of a run that kept its weights: written shard by shard, read one at a time."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import torch

from attnviz import arguments
from attnviz.arguments import checked
from attnviz.corpus import manifest
from attnviz.models import checkpoints
from attnviz.models.checkpoint_files import read_json
from attnviz.trace import Trace

FOLDER = "weights"


def write(folder: Path, model: str, shard: int, traces: Mapping[int, Trace]) -> None:
    """Write the traces of a shard of a run. traces : number of the sentence -> its trace.

    The tensor `17/cross.0` is the cross map of layer 0 of line 17; everything else of a trace, tokens with their
    offsets first, is beside the tensors as JSON.
    """
    weights = {
        f"{number}/{attention.kind}.{attention.layer}": torch.from_numpy(attention.weights.copy())
        for number, trace in traces.items()
        for attention in trace.maps
    }
    beside = {str(number): trace.to_dict(weights=False) for number, trace in traces.items()}
    record = {"model": model, "sentences": sorted(traces), "traces": beside}
    checkpoints.save_tensors(_folder_of(folder, model) / f"{shard:06}.safetensors", weights, record)


@checked
def read(folder: str | Path, model: str | None = None) -> Iterator[Trace]:
    """The traces in the folder of a run with `keep` weights, model by model in the order of the sentences.

    model : only of this model. Sentences that were skipped have none. One file is in memory at a time. ValueError for
    a folder without such a run, CheckpointError for a damaged file.
    """
    folder = arguments.path("folder", folder)
    if not (folder / manifest.FILE).is_file():
        raise ValueError(f"{folder} holds no run: there is no {manifest.FILE}")
    made = read_json(folder / manifest.FILE)
    models = list(made.get("models", {}))
    if FOLDER not in made.get("settings", {}).get("keep", []):
        raise ValueError(f"{folder} has no weights; run `corpus` with --keep statistics weights")
    if model is not None and model not in models:
        raise ValueError(f"model must be one of {', '.join(models)}; got {model!r:.80}")
    return _traces(folder, models if model is None else [model])


def _traces(folder: Path, models: list[str]) -> Iterator[Trace]:
    for model in models:
        for path in sorted(_folder_of(folder, model).glob("*.safetensors")):
            record = checkpoints.load_metadata(path, "traces")
            tensors = checkpoints.load_tensors(path)
            for number in sorted(record["traces"], key=int):
                yield _trace(record["traces"][number], number, tensors)


def _trace(values: dict, number: str, tensors: Mapping[str, torch.Tensor]) -> Trace:
    maps = [
        entry | {"weights": tensors[f"{number}/{entry['kind']}.{entry['layer']}"].numpy()} for entry in values["maps"]
    ]
    return Trace.from_dict(values | {"maps": maps})


def _folder_of(folder: Path, model: str) -> Path:
    """As the Hugging Face hub names its folders: no name there has `--`, so no two models share one."""
    return folder / FOLDER / model.replace("/", "--")
