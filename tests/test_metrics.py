"""Metrics: which a pair has, sacreBLEU's own numbers, Moses' words by hand, and buckets of length."""

from importlib.metadata import version

import pandas as pd
import pytest
import sacrebleu

from attnviz import metrics

FOUND = ["Un homme l'a vu, là-bas.", "Deux chiens noirs courent."]
REFERENCES = ["L'homme l'a vu là-bas aujourd'hui.", "Deux chiens noirs courent vite."]


@pytest.mark.parametrize(("pair", "keys"), [
    ("en-fr", ["bleu", "bleu_lc", "bleu_tok_lc", "chrf"]), ("en-de", ["bleu", "bleu_lc", "bleu_tok_lc", "chrf"]),
    ("fr-en", ["bleu", "bleu_lc", "bleu_tok_lc", "chrf"]), ("en-ja", ["bleu_morphemes", "bleu_char", "chrf"]),
    ("ja-en", ["bleu", "bleu_lc", "bleu_tok_lc", "chrf"]), ("en-zh", ["bleu_words", "bleu_char", "chrf"]),
    ("reverse", ["exact_match"]), ("eng-deu", ["bleu", "bleu_lc", "chrf"]), ("xx-yy", ["bleu", "bleu_lc", "chrf"]),
    ("", ["bleu", "bleu_lc", "chrf"]),
])  # fmt: skip
def test_each_pair_has_its_own(pair, keys):
    assert [metric.key for metric in metrics.of(pair)] == keys


@pytest.mark.parametrize(("language", "texts", "divided"), [
    # an elision goes with the vowel before it, a mark stands apart, a hyphen stays
    ("fr", ("Un homme l'a vu, là-bas.", "L'homme l'a vu là-bas aujourd'hui."),
     ("un homme l' a vu , là-bas .", "l' homme l' a vu là-bas aujourd' hui .")),
    # a contraction goes with what comes after
    ("en", ("He's here, and we're there.", "He's here (and she's there)."),
     ("he 's here , and we 're there .", "he 's here ( and she 's there ) .")),
])  # fmt: skip
def test_tok_lc_is_bleu_on_words_divided_by_hand(language, texts, divided):
    wanted = sacrebleu.corpus_bleu([divided[0]], [[divided[1]]], tokenize="none", force=True).score
    scored = metrics.score(f"xx-{language}", [texts[0]], [texts[1]])
    assert scored["bleu_tok_lc"] == round(wanted, 2) and scored["bleu_tok_lc"] != scored["bleu_lc"]
    made = f"nrefs:1|case:lc|eff:no|tok:none|smooth:exp|version:{sacrebleu.__version__}"
    assert scored["bleu_tok_lc_signature"] == f"{made}|moses:{language}|sacremoses:{version('sacremoses')}"


def test_japanese_by_given_words_and_by_characters():
    """Divided otherwise, the words differ and the characters do not."""
    found, references = ["彼 は 行っ た 。 今日 も"], ["彼 は 行 っ た 。 今日 も"]
    scored = metrics.score("en-ja", found, references)
    assert scored["bleu_char"] == 100 and scored["bleu_morphemes"] < 90
    characters = [" ".join(text.replace(" ", "")) for text in (found[0], references[0])]
    assert scored["bleu_char"] == round(sacrebleu.corpus_bleu([characters[0]], [[characters[1]]], tokenize="none").score, 2)
    assert "tok:none" in scored["bleu_morphemes_signature"] and "tok:char" in scored["bleu_char_signature"]


def test_exact_match_counts_whole_sequences():
    assert metrics.score("reverse", ["c b a", "cb a", "c b", ""], ["c b a"] * 4) == {
        "exact_match": 50, "exact_match_signature": "exact match, spaces apart"}


def test_a_metric_by_its_key():
    assert metrics.METRICS["bleu_lc"](FOUND, REFERENCES) == sacrebleu.corpus_bleu(FOUND, [REFERENCES], lowercase=True).score
    assert all(key == metric.key for key, metric in metrics.METRICS.items())


# --- by length


def test_by_length_is_the_score_of_each_bucket():
    sources = ["one", "one two", "one two three", "1 2 3 4 5 6 7"]
    found, references = [*FOUND, *FOUND], [*REFERENCES, *REFERENCES]
    frame = metrics.by_length(sources, references, found, [(1, 2), (3, 6), (8, 9)], "en-fr")
    assert list(frame.columns) == ["low", "high", "sentences", "words", "metric", "score"]
    assert len(frame) == 3 * 4 and frame.metric.tolist()[:4] == ["bleu", "bleu_lc", "bleu_tok_lc", "chrf"]
    sizes = frame.groupby("low", sort=False)[["sentences", "words"]].first()
    assert sizes.sentences.tolist() == [2, 1, 0] and sizes.words.tolist()[:2] == [1.5, 3] and pd.isna(sizes.words.iloc[2])
    for low, chosen in ((1, slice(0, 2)), (3, slice(2, 3))):
        line = frame.query(f"low == {low} and metric == 'bleu'").iloc[0]
        assert line.score == pytest.approx(sacrebleu.corpus_bleu(found[chosen], [references[chosen]]).score)
    assert frame.query("low == 8").score.isna().all()


@pytest.mark.parametrize(("texts", "edges", "message"), [
    ((["a"], ["b"], []), [(1, 2)], "sources, references and found must be aligned; got 1, 1 and 0"),
    ((["a"], ["b"], ["c"]), [(1, 2), (5, 4)], "a bucket must go from fewest to most words; got 5 to 4"),
])  # fmt: skip
def test_by_length_says_what_is_wrong(texts, edges, message):
    with pytest.raises(ValueError) as error:
        metrics.by_length(*texts, edges)
    assert str(error.value) == message
