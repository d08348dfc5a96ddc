"""The folder of a Hugging Face model: on this machine, or downloaded from the hub."""

import os.path
from pathlib import Path

from attnviz.models.huggingface.errors import ModelError, one_line
from attnviz.models.names import HUGGING_FACE

FILES = ("*.json", "*.safetensors", "*.txt", "*.model", "*.spm", "*.jinja")  # what is downloaded: no code, no pickles


def folder(name: str) -> Path:
    """The folder of a model, downloaded if necessary. ModelError when a file that is needed is missing."""
    path = Path(os.path.expanduser(name))
    if not os.path.isdir(path):  # Path.is_dir() raises for a name that no file can have
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

        try:
            path = Path(snapshot_download(name, allow_patterns=FILES, ignore_patterns=["*/*"]))
        except HFValidationError:
            raise ModelError(
                f"{HUGGING_FACE}{name:.80}: there is no such folder, and this cannot be the name of a model on the "
                "Hugging Face hub"
            ) from None
        except LocalEntryNotFoundError:
            raise ModelError(
                f"{HUGGING_FACE}{name:.80}: there is no such folder, and the Hugging Face hub cannot be reached; check "
                "the path, or the connection (a model that was downloaded once needs none)"
            ) from None
        except (OSError, ValueError) as error:
            raise ModelError(
                f"{HUGGING_FACE}{name:.80}: there is no such folder, and the Hugging Face hub has no such model: "
                f"{one_line(error)}"
            ) from None
    if not (path / "config.json").is_file():
        raise ModelError(
            f"{HUGGING_FACE}{name}: config.json is missing; a folder must be as save_pretrained() writes it"
        )
    if not any(path.glob("*.safetensors")):
        raise ModelError(
            f"{HUGGING_FACE}{name}: weights are read from safetensors only, and this model has none; save_pretrained() "
            "of the transformers library writes them"
        )
    if (path / "adapter_config.json").is_file():
        raise ModelError(
            f"{HUGGING_FACE}{name}: an adapter cannot be shown alone; merge it into its model and save that"
        )
    return path
