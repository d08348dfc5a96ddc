"""Models in checkpoints/next: they wait there for the others of their pair."""

import functools

import pytest
import sacrebleu
from captions import PAIRS

from attnviz import confidence, loading
from attnviz.confidence.calibration import BEST, FLAGGED
from attnviz.models import checkpoints

NEXT = checkpoints.ROOT / "next"
# BLEU with a beam of 5, on captions of 2016 and 2017 (tok-lc) and on everyday sentences (13a, lower-cased): at least.
# Alignment error rate: at most; of a recurrent model that of the one it replaces, and .02. Names and numbers copied: at
# least; only the Transformer has a target, .95. BLEU on captions.PAIRS: as measured, less 1.
BARS = {
    "en-fr/transformer": (60, 52, 46, 0.20, 0.95, 86.2),
    "en-fr/bahdanau": (56, 47, 42, 0.356, 0.93, 82.8),
    "en-fr/luong-general": (56, 47, 42, 0.178, 0.94, 82.4),
    "en-fr/luong-dot": (56, 47, 42, 0.173, 0.91, 82.4),
    "en-fr/luong-concat": (56, 47, 42, 0.26, 0.94, 80.8),
    "en-fr/scaled-dot": (56, 47, 42, 0.21, 0.87, 84.0),
}
TESTS = ("test_2016_flickr_beam_5", "test_2017_flickr_beam_5")
EVERYDAY = ("Where is the nearest train station?", "Tom doesn't want to go to Boston.", "I have 37 books at home.")
SHARED = ("gare", "Boston", "37")  # what each translation says
WRONG = {("en-fr/scaled-dot", "37")}  # it writes "trois": its card says how many numbers it copies

every = pytest.mark.parametrize("name", BARS)


@functools.cache
def load(name):
    return loading.load(name, NEXT)


def test_one_vocabulary_a_pair_and_nothing_else():
    assert set(checkpoints.names(NEXT)) == set(BARS)
    assert {path.parent.name for path in NEXT.rglob("tokenizer.json")} == {name.split("/")[0] for name in BARS}


@every
def test_the_card_is_of_these_weights_and_says_what_they_reach(name):
    card = checkpoints.verify(name, NEXT)
    first, second, everyday, error, copied, _ = BARS[name]
    scores = card["scores"]
    assert [scores[test]["bleu_tok_lc"] >= bar for test, bar in zip(TESTS, (first, second))] == [True, True]
    assert scores["everyday_beam_5"]["bleu_lc"] >= everyday
    assert "case:lc" in scores["everyday_beam_5"]["bleu_lc_signature"]
    assert card["alignment"]["best_head"]["error_rate"] <= error
    assert card["copied"]["beam_5"]["share"] >= copied
    assert card["confidence"]["worst_tenth"] >= FLAGGED and card["confidence"]["best_half"] <= BEST
    assert (NEXT / name / "model.safetensors").stat().st_size <= 12e6


@every
def test_it_translates_captions_and_everyday_sentences(name):
    translations = [load(name).trace(source).translation for source, _ in PAIRS]
    score = sacrebleu.corpus_bleu(translations, [[reference for _, reference in PAIRS]], lowercase=True).score
    assert score >= BARS[name][-1]
    for text, shared in zip(EVERYDAY, SHARED):
        assert (shared in load(name).trace(text).translation) == ((name, shared) not in WRONG)


@every
def test_everyday_sentences_are_usual_for_it(name):
    judge = confidence.Judge.load(name, NEXT)
    assert judge(load(name).trace("Tom is not here.")).level == "usual"
    assert judge(load(name).trace("Qwzx vbnk plorf the zzyx grumble.")).level == "outside"
