"""Captions and everyday sentences together."""

import gzip

import tiny
from runs import history, plan

from attnviz import corpora, training
from attnviz.readable import readable

EVERYDAY = {"train": "I go.\tJe vais.\nRun!\tCours !\n", "val": "You go.\tTu vas.\n", "test": "He goes.\tIl va.\n"}


def write(folder, texts):
    folder.mkdir(parents=True)
    for name, text in texts.items():
        (folder / f"{name}.tsv.gz").write_bytes(gzip.compress(text.encode()))


def test_a_pass_has_each_caption_twice_and_each_everyday_sentence_once(tmp_path):
    folder = tiny.write_data(tmp_path)
    write(folder / "everyday_enfr", EVERYDAY)
    corpus = corpora.load("en-fr", folder)
    assert corpus.train == [*tiny.sentences(120, 0) * 2, ("I go.", "Je vais."), ("Run!", "Cours !")]  # Tatoeba's pairs are among these
    assert corpus.val == [*tiny.sentences(12, 1), ("You go.", "Tu vas.")]
    assert corpus.parts == ("captions",) * 12 + ("everyday",)
    assert corpus.tests["everyday"] == [("He goes.", "Il va.")] and list(corpus.tests)[0] == "test_2016_flickr"
    assert {"everyday_enfr/train.tsv.gz", "everyday_enfr/val.tsv.gz", "everyday_enfr/test.tsv.gz"} < set(corpus.files)


def test_everyday_japanese_is_divided_and_doubles_are_dropped(tmp_path):
    tanaka = tmp_path / "tanaka_enja"
    tanaka.mkdir()
    lines = {"en": "he is here .\nshe is here .\n" * 3, "ja": "彼 は ここ に いる 。\n彼女 は ここ に いる 。\n" * 3}
    for split in ("train", "dev", "test"):
        for language, text in lines.items():
            (tanaka / f"{split}.{language}").write_text(text, encoding="utf-8")
    write(tmp_path / "everyday_enja", dict.fromkeys(EVERYDAY, "He is here.\t彼はここにいる。\nHere he is.\t彼はここにいる。\n"))
    corpus = corpora.load("en-ja", tmp_path)
    assert corpus.train == [("he is here .", "彼 は ここ に いる 。"), ("she is here .", "彼女 は ここ に いる 。"),
                            ("Here he is.", "彼 は ここ に いる 。")]  # fmt: skip
    assert corpus.tests["everyday"][1] == ("Here he is.", "彼 は ここ に いる 。") and len(corpus.val) == 8
    assert corpus.parts == ("tanaka",) * 6 + ("everyday",) * 2
    assert (corpus.metric, corpus.style) == ("bleu_char", "tokenised")


def test_each_part_of_validation_has_its_score_in_the_history(tmp_path):
    folder = tiny.write_data(tmp_path / "data")
    write(folder / "everyday_enfr", EVERYDAY | {"val": "The dog runs.\tLe chien court.\n" + "x " * 300 + "\ty\n" + "The cat runs.\tLe chat court.\n"})
    corpus = corpora.load("en-fr", folder)
    run = training.train(plan(epochs=1), corpus, tmp_path / "out", "en-fr", compile=False)
    assert {"val_bleu_lc", "val_bleu_lc_captions", "val_bleu_lc_everyday", "val_loss"} <= history(run)[0].keys()
    text = training.checkpoints.load_text("en-fr", tmp_path / "out")
    assert readable(corpus, text)[0].parts == ("captions",) * 12 + ("everyday",) * 2  # the long one is not read
