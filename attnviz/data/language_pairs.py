"""The language pairs, one entry each, with how their corpora are read and where they are downloaded.

Multi30K (Elliott et al. 2016) has image captions in English, French and German; the Tanaka corpus has everyday
sentences in English and Japanese.
"""

from functools import partial
from pathlib import Path

from attnviz.data.readers import DataFolder
from attnviz.data.task import Download, Everyday, Splits, Task

MULTI30K_URL = "https://github.com/multi30k/dataset/raw/master/data/task1/raw"
TESTS = ("test_2016_flickr", "test_2017_flickr")
# Captions once a pass for French: read twice, they passed their targets by 3 BLEU and everyday sentences missed theirs.
# There are even more everyday sentences for German, so a pass reads each caption twice there.
FRENCH_EVERYDAY = Everyday(own_part="captions")
GERMAN_EVERYDAY = Everyday(own_part="captions", repeat=2)


def _read_multi30k(source: str, target: str, data: Path) -> Splits:
    """multi30k/{train,val,test_2016_flickr,test_2017_flickr}.LANG[.gz]."""
    captions = DataFolder(data, "multi30k")
    train, val = (captions.parallel(name, source, target) for name in ("train", "val"))
    tests = {name: captions.parallel(name, source, target) for name in TESTS}
    return Splits(train, val, tests, captions.files)


def _downloads(language: str, *digests: str) -> tuple[Download, ...]:
    """digests : SHA-256 of train, val and the tests."""
    names = [f"{split}.{language}.gz" for split in ("train", "val", *TESTS)]
    return tuple(
        Download(f"multi30k/{name}", (f"{MULTI30K_URL}/{name}",), digest) for name, digest in zip(names, digests)
    )


_ENGLISH = _downloads(
    "en",
    "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6",
    "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227",
    "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182",
    "ce1450ddc5ab0834502579d77a170849952e15a2938b34cc503bdc25ebb4fb98",
)
_FRENCH = _downloads(
    "fr",
    "5925a3c18f1587b6b54b87743106e6e8ab93618edb6f65d19eac0621f853a10d",
    "5304e444d842e962b2dda4d816b70b22a1765b15401642b7ca37a67477e708dc",
    "cb3160d69b002bb638e66cc7612fcd56cb0af82eadc9c142dedc438afb885ef6",
    "6f3764e31dac41e9455e612958bcfd4e877c5e15cd66df2c2b2be6d9bd83e5b6",
)
_GERMAN = _downloads(
    "de",
    "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72",
    "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660",
    "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16",
    "c3078bc3b36808bf9d20eb2347ed6137016179ef59ec0d2b9b8ecc3fb2880081",
)

EN_FR = Task(
    name="en-fr",
    source="en",
    target="fr",
    title="English → French",
    output="French text",
    read=partial(_read_multi30k, "en", "fr"),
    everyday=FRENCH_EVERYDAY,
    downloads=_ENGLISH + _FRENCH,
    ask="Your English sentence",
    hint="Type an English sentence and press Enter",
    examples=(
        "The black dog is running across the green grass.",
        "Tom is not here.",
        "Can you tell me where the nearest train station is?",
        "Mary left Boston in 1987.",
    ),
    failing="The stock market crashed.",
    forced="Le chien noir court dans l'herbe verte.",
)
EN_DE = Task(
    name="en-de",
    source="en",
    target="de",
    title="English → German",
    output="German text",
    read=partial(_read_multi30k, "en", "de"),
    everyday=GERMAN_EVERYDAY,
    downloads=_ENGLISH + _GERMAN,
    recipe_changes={"vocabulary": 6000},
    ask="Your English sentence",
    hint="Type an English sentence and press Enter",
    examples=(
        "A man in a blue shirt is standing on a ladder.",
        "She is not at home because she has to work.",
        "Can you tell me where the nearest train station is?",
        "Tom has 37 books at home.",
    ),
    failing="The stock market crashed.",
    forced="Ein Mann in einem blauen Hemd steht auf einer Leiter.",
)


TANAKA_URL = "https://github.com/odashi/small_parallel_enja/raw/master"


def _read_tanaka(data: Path) -> Splits:
    """tanaka_enja/{train,dev,test}.{en,ja}[.gz]."""
    folder = DataFolder(data, "tanaka_enja")
    train, dev, test = (folder.parallel(name, "en", "ja") for name in ("train", "dev", "test"))
    return Splits(train, dev, {"test": test}, folder.files)


def _download(name: str, digest: str) -> Download:
    return Download(f"tanaka_enja/{name}", (f"{TANAKA_URL}/{name}",), digest)


def _download_train(language: str, digest: str) -> Download:
    """Published in five parts of 10,000 lines; the last 1,000 lines are not used."""
    name = f"train.{language}"
    return Download(f"tanaka_enja/{name}", tuple(f"{TANAKA_URL}/{name}.{part:03}" for part in range(5)), digest, 49_000)


EN_JA = Task(
    name="en-ja",
    source="en",
    target="ja",
    title="English → Japanese",
    output="Japanese text",
    read=_read_tanaka,
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
