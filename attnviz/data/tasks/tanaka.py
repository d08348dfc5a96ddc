"""en-ja: everyday sentences of the Tanaka corpus, tokenised on both sides, English lower-cased."""

from pathlib import Path

from attnviz.data.readers import DataFolder
from attnviz.data.tasks.task import Download, Everyday, Splits, Task

URL = "https://github.com/odashi/small_parallel_enja/raw/master"


def read(data: Path) -> Splits:
    """tanaka_enja/{train,dev,test}.{en,ja}[.gz]."""
    folder = DataFolder(data, "tanaka_enja")
    train, dev, test = (folder.parallel(name, "en", "ja") for name in ("train", "dev", "test"))
    return Splits(train, dev, {"test": test}, folder.files)


def _download(name: str, digest: str) -> Download:
    return Download(f"tanaka_enja/{name}", (f"{URL}/{name}",), digest)


def _download_train(language: str, digest: str) -> Download:
    """Published in five parts of 10,000 lines; the last 1,000 lines are not used."""
    name = f"train.{language}"
    return Download(f"tanaka_enja/{name}", tuple(f"{URL}/{name}.{part:03}" for part in range(5)), digest, 49_000)


EN_JA = Task(
    name="en-ja",
    source="en",
    target="ja",
    title="English → Japanese",
    output="Japanese text",
    read=read,
    # Everyday Japanese is written without spaces, so the two are scored together on characters.
    everyday=Everyday(own_part="tanaka", validation_metric="bleu_char", divided=True, same_source=True),
    downloads=(
        _download_train("en", "be617fed373af88ddd4ffbb87fa8514a7101bb2e203fa022d7398a0da9d1c078"),
        _download_train("ja", "130c7c35609ea02efcd247450f056059126678ea5f89e6f695434ade5de58f03"),
        _download("dev.en", "04a2673449770657fd5e3b963cb856be3130923212b6db8ac7eaeef18f06c041"),
        _download("dev.ja", "cd534f56b8639dc130f86a365e5ec0aa70042000bdd740a622fbbf8b6be4acca"),
        _download("test.en", "45edb380749ec2b49cca7618fc5a7595fc9f791180672ba466b90c873a4aa8bf"),
        _download("test.ja", "d37dc460a81b064e4106c8913eb11fa300da05cf3f58a7a5bbfec7e20947ddef"),
    ),
    style="tokenised",
    recipe_changes={"vocabulary": 6000},
    validation_metric="bleu_morphemes",
    samplers=("bahdanau", "transformer"),
    ask="Your English sentence",
    hint="Type an English sentence and press Enter",
    examples=(
        "My father goes to work by car every day.",
        "She is reading a book in the library.",
        "Mary doesn't like fish.",
        "Where is the station?",
    ),
    failing="Have you ever been to Narita?",
    forced="父は毎日車で仕事に行きます。",
)
