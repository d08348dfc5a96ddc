"""Metrics: which a pair has, sacreBLEU's own numbers, Moses' words by hand, and buckets of length."""

from importlib.metadata import version

import pytest
import sacrebleu

from attnviz.evaluation import metrics

FOUND = ["Un homme l'a vu, là-bas.", "Deux chiens noirs courent."]
REFERENCES = ["L'homme l'a vu là-bas aujourd'hui.", "Deux chiens noirs courent vite."]


@pytest.mark.parametrize(
    ("pair", "keys"),
    [
        ("en-fr", ["bleu", "bleu_lc", "bleu_tok_lc", "chrf"]),
        ("en-de", ["bleu", "bleu_lc", "bleu_tok_lc", "chrf"]),
        ("fr-en", ["bleu", "bleu_lc", "bleu_tok_lc", "chrf"]),
        ("en-ja", ["bleu_morphemes", "bleu_char", "chrf"]),
        ("ja-en", ["bleu", "bleu_lc", "bleu_tok_lc", "chrf"]),
        ("en-zh", ["bleu_words", "bleu_char", "chrf"]),
        ("reverse", ["exact_match"]),
        ("eng-deu", ["bleu", "bleu_lc", "chrf"]),
        ("xx-yy", ["bleu", "bleu_lc", "chrf"]),
        ("", ["bleu", "bleu_lc", "chrf"]),
    ],
)
def test_each_pair_has_its_own(pair, keys):
    assert [metric.key for metric in metrics.for_pair(pair)] == keys


@pytest.mark.parametrize(
    ("language", "texts", "divided"),
    [
        # an elision goes with the vowel before it, a mark stands apart, a hyphen stays
        (
            "fr",
            ("Un homme l'a vu, là-bas.", "L'homme l'a vu là-bas aujourd'hui."),
            ("un homme l' a vu , là-bas .", "l' homme l' a vu là-bas aujourd' hui ."),
        ),
        # a contraction goes with what comes after
        (
            "en",
            ("He's here, and we're there.", "He's here (and she's there)."),
            ("he 's here , and we 're there .", "he 's here ( and she 's there ) ."),
        ),
    ],
)
def test_tok_lc_is_bleu_on_words_divided_by_hand(language, texts, divided):
    wanted = sacrebleu.corpus_bleu([divided[0]], [[divided[1]]], tokenize="none", force=True).score
    scored = metrics.score(f"xx-{language}", [texts[0]], [texts[1]])
    assert scored["bleu_tok_lc"] == round(wanted, 2) and scored["bleu_tok_lc"] != scored["bleu_lc"]
    made = f"nrefs:1|case:lc|eff:no|tok:none|smooth:exp|version:{sacrebleu.__version__}"
    assert scored["bleu_tok_lc_signature"] == f"{made}|moses:{language}|sacremoses:{version('sacremoses')}"


def test_japanese_by_given_words_and_by_characters():
    """Divided otherwise, the words differ and the characters do not."""
    outputs, references = ["彼 は 行っ た 。 今日 も"], ["彼 は 行 っ た 。 今日 も"]
    scored = metrics.score("en-ja", outputs, references)
    assert scored["bleu_char"] == 100 and scored["bleu_morphemes"] < 90
    characters = [" ".join(text.replace(" ", "")) for text in (outputs[0], references[0])]
    assert scored["bleu_char"] == round(
        sacrebleu.corpus_bleu([characters[0]], [[characters[1]]], tokenize="none").score, 2
    )
    assert "tok:none" in scored["bleu_morphemes_signature"] and "tok:char" in scored["bleu_char_signature"]


def test_exact_match_counts_whole_sequences():
    assert metrics.score("reverse", ["c b a", "cb a", "c b", ""], ["c b a"] * 4) == {
        "exact_match": 50,
        "exact_match_signature": "exact match, spaces apart",
    }


def test_a_metric_by_its_key():
    assert (
        metrics.METRICS["bleu_lc"](FOUND, REFERENCES)
        == sacrebleu.corpus_bleu(FOUND, [REFERENCES], lowercase=True).score
    )
    assert all(key == metric.key for key, metric in metrics.METRICS.items())


@pytest.mark.parametrize("pair, key", [("en-ja", "bleu_morphemes"), ("en-zh", "bleu_words")])
def test_references_in_one_piece_have_no_figure_on_given_words(pair, key):
    """It would be 0 whatever was translated."""
    assert key in metrics.score(pair, ["我 是 狗"], ["我 是 狗"])
    scored = metrics.score(pair, ["我 是 狗"], ["我是狗"])
    assert key not in scored and f"{key}_signature" not in scored and scored["chrf"] == 100
