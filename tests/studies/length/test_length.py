"""The study of sentence length: buckets, lines and rows, by hand and against other code."""

import math
import statistics

import numpy as np
import pytest
import sacrebleu
import scipy.stats
import tiny

from attnviz import gold, stats
from attnviz.evaluation import translation
from attnviz.evaluation.translation import EntropyBySentence
from attnviz.models.translator import Translator
from attnviz.studies import length, measured_models
from attnviz.studies.length import Bucket, BucketTexts

PAIRS = tiny.sentences(9, 7)
LINKED = gold.shipped("en-fr")[:9]


@pytest.fixture(autouse=True)
def fewer_links(monkeypatch):
    monkeypatch.setattr(gold, "shipped", lambda pair: LINKED)


@pytest.fixture(scope="module", params=["bahdanau", "transformer", "fixed-context"])
def model(request, root):
    return measured_models.load(f"en-fr/{request.param}", root, 1)


# --- length


def test_captions_are_joined_until_they_are_long_enough():
    words = [("a", "A"), ("b c", "B C"), ("d e f", "D E F"), ("g", "G"), ("h i j k l", "H"), ("m n o", "M"), ("p", "P")]
    assert length.single(words, 2, 3) == [[words[1]], [words[2]], [words[5]]]
    # 1 + 2 + 3 words are past the bucket's end, 1 + 5 too; 3 + 1 fit, and what is left over is too short
    assert length.joined(words, 4, 5) == [words[5:7]]
    assert length.joined(words, 3, 6) == [words[0:2], words[2:3], words[3:5], words[5:6]]


def test_the_texts_of_buckets_count_what_is_left_out(root, monkeypatch):
    text = Translator.load("en-fr/bahdanau", root).tokenizer
    pairs = [("The dog runs.", "Le chien court.")] * 8
    monkeypatch.setattr(length, "BUCKETS", (Bucket(3, 3, False), Bucket(6, 7, True), Bucket(12, 12, True)))
    pieces = len(text.ids("The dog runs. The dog runs."))
    monkeypatch.setattr(length, "MOST_PIECES", pieces)
    single, double, fourfold = length.bucket_texts({length.TEST: pairs}, text)
    assert (len(single.pairs), single.sentences, single.left_out) == (8, 8, 0) and (
        len(fourfold.pairs),
        fourfold.sentences,
        fourfold.left_out,
    ) == (0, 0, 2)
    assert (
        double.pairs == [("The dog runs. The dog runs.", "Le chien court. Le chien court.")] * 4
        and double.sentences == 8
    )


def test_everyday_sentences_have_buckets_of_their_own_where_there_are_some(root):
    text = Translator.load("en-fr/bahdanau", root).tokenizer
    captions, spoken = [("The dog runs fast now.", "Le chien court.")], ("I do not know.", "Je ne sais pas.")
    long = (" ".join(["and"] * 15), "et")
    kinds = length.bucket_texts({length.TEST: captions, "everyday": [spoken, long]}, text)
    assert [texts.bucket.title for texts in kinds[-2:]] == ["everyday, 4–9 words", "everyday, 12–20 words"]
    assert [texts.pairs for texts in kinds] == [captions, [], [], [], [spoken], [long]]
    assert [texts.bucket for texts in length.bucket_texts({length.TEST: captions}, text)] == list(length.BUCKETS[:4])


def test_the_line_is_that_of_least_squares():
    generator = np.random.default_rng(1)
    sentences = [
        (int(pieces), float(0.5 * np.log(pieces) + generator.normal())) for pieces in generator.integers(5, 90, size=60)
    ]
    wanted = scipy.stats.linregress(np.log([p for p, _ in sentences]), [e for _, e in sentences])
    fitted = length.fit(sentences)
    assert fitted["slope"] == pytest.approx(wanted.slope) and fitted["intercept"] == pytest.approx(wanted.intercept)
    assert fitted["explained"] == pytest.approx(wanted.rvalue**2) and fitted["sentences"] == 60
    uniform = length.fit([(n, math.log(n)) for n in (3, 5, 9, 9)])
    assert (uniform["slope"], uniform["intercept"], uniform["explained"]) == pytest.approx((1, 0, 1))
    assert (uniform["from"], uniform["to"]) == (3, 9)
    assert length.fit([(4, 1.0), (4, 2.0)])["slope"] is None and length.fit([(4, 1.0), (5, 1.0)])["explained"] is None


def test_points_are_means_by_pieces():
    assert length.by_pieces([(7, 2.0), (3, 1.0), (7, 3.0)]) == [
        {"pieces": 3, "sentences": 1, "entropy_nats": 1.0},
        {"pieces": 7, "sentences": 2, "entropy_nats": 2.5},
    ]


def by_trace(model, sources):
    """(pieces, mean entropy of the rows) of each source, from its trace."""
    traces = [model.translator.trace(source) for source in sources]
    frames = [stats.steps(trace) for trace in traces]
    return [(len(t.source), frame[frame.kind == "cross"].entropy_nats.mean()) for t, frame in zip(traces, frames)]


def test_entropy_by_sentence_is_what_stats_says_of_each_trace(model):
    sources = [source for source, _ in PAIRS]
    by_sentence = translation.translations(model.translator, sources, also=(EntropyBySentence,))[1]["by_sentence"]
    if model.mechanism == "fixed-context":
        assert by_sentence is None
        return
    wanted = sorted(by_trace(model, sources))
    assert np.allclose(sorted(by_sentence), wanted, atol=1e-4) and len(by_sentence) == 9


def test_a_row_of_a_bucket(model):
    bucket = Bucket(3, 9, False)
    row, sentences = length.measure_bucket(model, BucketTexts(bucket, PAIRS, 9, 2))
    traces = [model.translator.trace(source) for source, _ in PAIRS]
    references = [reference for _, reference in PAIRS]
    assert row["bleu_lc"] == round(
        sacrebleu.corpus_bleu([t.translation for t in traces], [references], lowercase=True).score, 2
    )
    assert row["words"] == round(statistics.fmean(len(source.split()) for source, _ in PAIRS), 2)
    produced, wanted = (
        sum(len(text.split()) for text in side) for side in ([t.translation for t in traces], references)
    )
    assert row["length_ratio"] == round(produced / wanted, 4) and (row["left_out"], row["sentences"], row["low"]) == (
        2,
        9,
        3,
    )
    forced = [model.translator.trace(*pair) for pair in PAIRS]
    assert row["loss"] == pytest.approx(-sum(t.log_prob for t in forced) / sum(len(t.target) for t in forced), abs=1e-3)
    if model.mechanism == "fixed-context":
        assert sentences == [] and "entropy_nats" not in row and "pieces" not in row
        return
    pieces, entropies = zip(*by_trace(model, [source for source, _ in PAIRS]))
    assert row["entropy_nats"] == pytest.approx(statistics.fmean(entropies), abs=1e-3)
    assert row["pieces"] == pytest.approx(math.exp(statistics.fmean(map(math.log, pieces))), abs=0.01)


def test_the_gap_to_no_attention_is_said_by_bucket():
    rows = [
        {"mechanism": name, "seed": 1, **bucket.key, "bleu_lc": score}
        for name, scores in (("fixed-context", (50, 40, 20)), ("bahdanau", (55, 44.5, 40)))
        for bucket, score in zip(length.BUCKETS, scores)
    ]
    rows.append({"mechanism": "bahdanau", "seed": 1, **length.BUCKETS[3].key})
    gain = length._gain({"rows": rows})
    assert gain.endswith("in the same buckets: Bahdanau · additive +5.0 / +4.5 / +20.0 / –.")
    assert "is missing" in length._gain({"rows": rows[3:]})
