"""Fetching the public corpora, once and checked: a file is there whole and with the right hash, or not at all.

What is hashed is the text, unpacked, since a host may pack it anew. The hashes were taken from copies of the corpora at
hand, not from a download: the names and dates in the gzip headers of Multi30K are its authors', and of the Tanaka
sentences the number of lines and of characters agree with those that were published. The everyday sentences of Tatoeba
that en-fr is trained on too are a selection that no address offers: without them it trains on captions alone.
"""

import hashlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from attnviz import atomic
from attnviz.data.corpora import GENERATED, find, unpack

MULTI30K = "https://github.com/multi30k/dataset/raw/master/data/task1/raw"
TANAKA = "https://github.com/odashi/small_parallel_enja/raw/master"


@dataclass(frozen=True)
class File:
    """name : below the data folder. urls : its parts, in order. sha256 : of its text. lines : how many are kept; None for all."""

    name: str
    urls: tuple[str, ...]
    sha256: str
    lines: int | None = None


def _captions(split: str, language: str, sha256: str) -> File:
    name = f"{split}.{language}.gz"
    return File(f"multi30k/{name}", (f"{MULTI30K}/{name}",), sha256)


def _everyday(name: str, sha256: str) -> File:
    return File(f"tanaka_enja/{name}", (f"{TANAKA}/{name}",), sha256)


def _everyday_train(language: str, sha256: str) -> File:
    """Published in five parts of 10,000; the last 1,000 are nowhere used."""
    name = f"train.{language}"
    return File(f"tanaka_enja/{name}", tuple(f"{TANAKA}/{name}.{part:03}" for part in range(5)), sha256, 49_000)


_ENGLISH = (
    _captions("train", "en", "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6"),
    _captions("val", "en", "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227"),
    _captions("test_2016_flickr", "en", "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182"),
    _captions("test_2017_flickr", "en", "ce1450ddc5ab0834502579d77a170849952e15a2938b34cc503bdc25ebb4fb98"),
)
FILES = {
    "en-fr": (
        *_ENGLISH,
        _captions("train", "fr", "5925a3c18f1587b6b54b87743106e6e8ab93618edb6f65d19eac0621f853a10d"),
        _captions("val", "fr", "5304e444d842e962b2dda4d816b70b22a1765b15401642b7ca37a67477e708dc"),
        _captions("test_2016_flickr", "fr", "cb3160d69b002bb638e66cc7612fcd56cb0af82eadc9c142dedc438afb885ef6"),
        _captions("test_2017_flickr", "fr", "6f3764e31dac41e9455e612958bcfd4e877c5e15cd66df2c2b2be6d9bd83e5b6"),
    ),
    "en-de": (
        *_ENGLISH,
        _captions("train", "de", "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72"),
        _captions("val", "de", "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660"),
        _captions("test_2016_flickr", "de", "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16"),
        _captions("test_2017_flickr", "de", "c3078bc3b36808bf9d20eb2347ed6137016179ef59ec0d2b9b8ecc3fb2880081"),
    ),
    "en-ja": (
        _everyday_train("en", "be617fed373af88ddd4ffbb87fa8514a7101bb2e203fa022d7398a0da9d1c078"),
        _everyday_train("ja", "130c7c35609ea02efcd247450f056059126678ea5f89e6f695434ade5de58f03"),
        _everyday("dev.en", "04a2673449770657fd5e3b963cb856be3130923212b6db8ac7eaeef18f06c041"),
        _everyday("dev.ja", "cd534f56b8639dc130f86a365e5ec0aa70042000bdd740a622fbbf8b6be4acca"),
        _everyday("test.en", "45edb380749ec2b49cca7618fc5a7595fc9f791180672ba466b90c873a4aa8bf"),
        _everyday("test.ja", "d37dc460a81b064e4106c8913eb11fa300da05cf3f58a7a5bbfec7e20947ddef"),
    ),
}


def fetch(pair: str, data: Path, report: Callable[[str], object] = lambda line: None) -> None:
    """Put the corpora of a pair below the folder `data`; what is there already is checked and kept. report : gets a line a file.

    Raises ValueError for a pair without corpora, and for a file, here or there, that is not the one wanted; OSError when
    the host cannot be reached.
    """
    if pair in GENERATED:
        raise ValueError(f"{pair} is generated; there is nothing to fetch")
    if pair not in FILES:
        raise ValueError(f"there are no corpora for {pair}; choose one of {', '.join(FILES)}")
    for file in FILES[pair]:
        path = Path(data) / file.name
        there = find(path.parent, path.name.removesuffix(".gz"))
        if there is None:
            _get(file, path)
        elif (found := _digest(unpack(there.read_bytes(), there))) != file.sha256:
            raise ValueError(
                f"{there} is not the file of that name in the corpus: the SHA-256 of its text is {found}, and "
                f"should be {file.sha256}; move it away"
            )
        report(f"{there or path}: {'there already' if there else 'fetched'}, hash as it should be")


def _get(file: File, path: Path) -> None:
    import pooch  # only who fetches needs it

    pooch.get_logger().setLevel("WARNING")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=path.parent) as folder:
        parts = []
        for number, url in enumerate(file.urls):
            try:
                parts.append(Path(pooch.retrieve(url, known_hash=None, fname=str(number), path=folder)).read_bytes())
            except OSError as error:  # those of `requests` are
                raise OSError(f"cannot fetch {url}: {error}") from None
    text = b"".join(map(unpack, parts, file.urls))
    if file.lines is not None:
        text = b"\n".join(text.split(b"\n")[: file.lines]) + b"\n"
    if (found := _digest(text)) != file.sha256:
        raise ValueError(
            f"{' '.join(file.urls)} is not what it was: the SHA-256 of its text is {found}, and should be "
            f"{file.sha256}; nothing was kept"
        )
    content = parts[0] if len(parts) == 1 else text
    atomic.replace(path, lambda temporary: temporary.write_bytes(content))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
