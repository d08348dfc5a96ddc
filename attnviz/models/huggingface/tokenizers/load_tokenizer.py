"""The tokenizer of a foreign model, read from checked copies of its files. Slow steps are tried in another process
first."""

import json
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

from attnviz.data import tokenizer_rules
from attnviz.models.huggingface import folder_rules
from attnviz.models.huggingface.errors import ModelError, read
from attnviz.models.huggingface.tokenizers.trial import Trial, Tried
from attnviz.storage import folders

VOCABULARIES = ("tokenizer.json", "vocab.*", "*.model", "*.spm", "*.bpe.*")
SAFE = {"trust_remote_code": False, "local_files_only": True}  # wherever the transformers library reads a folder


def load_tokenizer(name: str, library: ModuleType, folder: Path, rows: int) -> Any:
    """The tokenizer in a folder. name : of the model. rows : that its embedding has at most.

    Raises ModelError, FileError, TokenizerError.
    """
    missing = ModelError(
        f"{name}: its tokenizer is missing; save it beside the model: tokenizer.save_pretrained(folder)"
    )
    if not any(any(folder.glob(pattern)) for pattern in VOCABULARIES):
        raise missing
    with folder_rules.tokenizer_files(folder, rows) as copy:
        _try(copy)
        tokenizer = read(name, "its tokenizer", lambda: library.AutoTokenizer.from_pretrained(copy, **SAFE))
        files = {"tokenizer.json", *tokenizer.vocab_files_names.values()} - {"tokenizer_config.json"}
        if not any((folder / file).is_file() for file in files):  # the library then makes an empty tokenizer
            raise missing
        return read(name, "its tokenizer", lambda: _careful(tokenizer, copy, rows))


def _try(copy: Path) -> None:
    """Have another process read the files: native code reads them, and may end the process. Raises TokenizerError."""
    file = copy / "tokenizer.json"
    if file.is_file() and "model" in json.loads(
        file.read_text(encoding="utf-8")
    ):  # else the library says what it lacks
        keep = folders.TemporaryFolder()
        place = Path(keep.name) / "tokenizer.json"
        shutil.copyfile(file, place)
        Trial("json", place, keep).ask(text="a")
    elif not file.is_file() and any(any(copy.glob(pattern)) for pattern in folder_rules.COMPILED):
        _trial_of_folder(copy).ask(text="a")  # the library runs what such files describe when it reads them


def _careful(tokenizer: Any, copy: Path, rows: int) -> Any:
    """The tokenizer without padding and truncation. Raises TokenizerError.

    Unless the time of every step is linear in the length of a text, each text is first tried in another process.
    """
    if not tokenizer.is_fast:
        return Tried(tokenizer, _trial_of_folder(copy))
    backend = tokenizer.backend_tokenizer
    backend.no_padding()
    backend.no_truncation()
    content, linear = tokenizer_rules.check(json.loads(backend.to_str()), rows)
    if linear:
        return tokenizer
    keep = folders.TemporaryFolder()
    place = Path(keep.name) / "tokenizer.json"
    place.write_text(json.dumps(content), encoding="utf-8")
    return Tried(tokenizer, Trial("json", place, keep))


def _trial_of_folder(copy: Path) -> Trial:
    keep = folders.TemporaryFolder()
    shutil.copytree(copy, keep.name, dirs_exist_ok=True)
    return Trial("folder", Path(keep.name), keep)
