"""Scores of a model: its pair's metrics, and statistics that agree with attnviz.stats; attention metrics by hand."""

import numpy as np
import pytest
import sacrebleu
import tiny
import torch

from attnviz import progress, stats
from attnviz.data import batching
from attnviz.data.tokenizer import EOS, PAD, train_vocabulary
from attnviz.evaluation import metrics, translation
from attnviz.evaluation.translation import AntiDiagonal, MeanEntropy, attention_sums
from attnviz.mechanisms import Config
from attnviz.models.model import TextError
from attnviz.models.translator import Translator
from attnviz.networks import decode
from attnviz.networks.registry import build

A, B = 5, 6  # any pieces


def unrolled(tokens, *layers):
    """Steps with given tokens (B, T) and cross weights (B, H, T, S) of each layer."""
    return decode.Unrolled(torch.tensor(tokens), None, [torch.tensor(layer) for layer in layers], [], [])


def sharp(*keys):
    return np.eye(4)[list(keys)].tolist()


def test_attention_sums_by_hand():
    # one layer, one head; the first sentence has 2 rows, the second 1 row and one padded key
    cross = torch.tensor([[[[0.5, 0.5], [1.0, 0.0]]], [[[1.0, 0.0], [0.3, 0.7]]]])
    assert attention_sums([cross], [2, 1]).tolist() == pytest.approx([np.log(2), 0.5 + 1 + 1, 3])


def test_mean_entropy_is_the_mean_over_all_rows_of_all_batches():
    metric = MeanEntropy()
    assert metric.result() == {"entropy_nats": None, "max_weight": None}
    metric.add(unrolled([[A, EOS]], [[[[0.5, 0.5], [1.0, 0.0]]]]), [2], [2])
    metric.add(unrolled([[EOS]], [[[[0.75, 0.25]]]]), [1], [2])
    entropy = np.log(2) - 0.75 * np.log(0.75) - 0.25 * np.log(0.25)
    assert metric.result() == pytest.approx({"entropy_nats": entropy / 3, "max_weight": (0.5 + 1 + 0.75) / 3})


def test_padding_adds_nothing(root):
    for name in tiny.WIDTHS:
        model = Translator.load(f"en-fr/{name}", root)
        ids = model.tokenizer.batch_ids(["The dog runs.", "The black white dog sleeps."])
        source = batching.pad(ids)
        together = attention_sums(decode.greedy(model.model, source, source != PAD).cross, [5, 5])
        alone = [decode.greedy(model.model, torch.tensor([row])).cross for row in ids]
        assert together.tolist() == pytest.approx(sum(attention_sums(cross, [5]) for cross in alone).tolist(), abs=1e-4)


def test_the_antidiagonal_by_hand():
    """Two sentences, of 3 and 2 pieces and <eos>. The first looks at 2 1 1 and <eos>: 2 of 3 right; the second, which
    goes on too long, at 1 0 0: 2 of 3. A second head looks at 0 everywhere: right at the last step of each."""
    metric = AntiDiagonal()
    first, second, still = sharp(2, 1, 1, 3), sharp(1, 0, 0, 2), sharp(0, 0, 0, 0)
    tokens = [[A, B, A, EOS], [A, A, B, EOS]]
    metric.add(unrolled(tokens, [[first, still], [second, still]]), [4, 4], [4, 3])
    assert metric.result() == {"antidiagonal": 66.67, "antidiagonal_heads": [[66.67, 33.33]]}
    metric.add(unrolled([[B]], [[sharp(0), sharp(1)]]), [1], [2])  # cut short: a step without <eos>
    assert metric.result() == {"antidiagonal": 71.43, "antidiagonal_heads": [[71.43, 28.57]]}


def test_steps_after_the_end_do_not_count():
    metric = AntiDiagonal()
    metric.add(unrolled([[A, EOS, B, B]], [[sharp(0, 1, 0, 0)]]), [2], [2])
    assert metric.result()["antidiagonal"] == 100


def test_the_antidiagonal_of_no_attention_and_of_no_step():
    metric = AntiDiagonal()
    metric.add(unrolled([[A, EOS]]), [2], [2])
    assert metric.result() == {"antidiagonal": None, "antidiagonal_heads": None}
    metric.add(unrolled([[EOS]], [[sharp(0)]]), [1], [2])
    assert metric.result() == {"antidiagonal": None, "antidiagonal_heads": None}


PAIRS = tiny.sentences(9, 7)
SOURCES, REFERENCES = [a for a, _ in PAIRS], [b for _, b in PAIRS]


@pytest.fixture(scope="module", params=[name for name in tiny.WIDTHS if name != "fixed-context"])
def translator(request, root):
    return Translator.load(f"en-fr/{request.param}", root)


@pytest.fixture(scope="module")
def bahdanau(root):
    return Translator.load("en-fr/bahdanau", root)


@pytest.mark.parametrize("beam", [1, 3])
def test_attention_is_what_stats_says_of_each_trace(translator, beam):
    scores = translation.score(translator, SOURCES, REFERENCES, beam=beam)
    frames = [stats.steps(translator.trace(source, beam=beam)) for source in SOURCES]
    rows = np.concatenate([frame[frame.kind == "cross"][["entropy_nats", "max_weight"]].to_numpy() for frame in frames])
    assert scores["entropy_nats"] == pytest.approx(rows[:, 0].mean(), abs=1e-5)
    assert scores["max_weight"] == pytest.approx(rows[:, 1].mean(), abs=1e-5)


def test_a_model_without_attention_has_no_figures_of_it(root):
    scores = translation.score(Translator.load("en-fr/fixed-context", root), SOURCES, REFERENCES)
    assert scores["entropy_nats"] is None and scores["max_weight"] is None and scores["bleu"] >= 0


def test_overlap_is_sacrebleu_with_signatures(bahdanau):
    scores = translation.score(bahdanau, SOURCES, REFERENCES)
    texts = [bahdanau.trace(source).translation for source in SOURCES]
    assert scores["bleu"] == round(sacrebleu.corpus_bleu(texts, [REFERENCES]).score, 2)
    assert scores["bleu_lc"] == round(sacrebleu.corpus_bleu(texts, [REFERENCES], lowercase=True).score, 2)
    assert scores["chrf"] == round(sacrebleu.corpus_chrf(texts, [REFERENCES]).score, 2)
    version = sacrebleu.__version__
    assert scores["bleu_signature"] == f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{version}"
    assert scores["bleu_lc_signature"] == f"nrefs:1|case:lc|eff:no|tok:13a|smooth:exp|version:{version}"
    assert scores["chrf_signature"] == f"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:{version}"
    assert (scores["model"], scores["sentences"], scores["beam"]) == ("en-fr/bahdanau", 9, 1)
    assert scores["sentences_per_second"] * scores["ms_per_sentence"] == pytest.approx(1000, rel=1e-2)
    assert scores["seconds"] == pytest.approx(9 / scores["sentences_per_second"], abs=1e-3)


def test_translate_gives_what_each_sentence_gives_alone(translator):
    """Also of a model that never ends its sentences: each is cut at its own limit, not at that of the longest."""
    together = translation.translate(translator.model, translator.tokenizer, [*SOURCES, ""], "cpu")
    assert together[:-1] == [translator.trace(source).translation for source in SOURCES]


def test_nothing_to_translate(bahdanau):
    assert translation.translate(bahdanau.model, bahdanau.tokenizer, [], "cpu") == []


@pytest.mark.parametrize("beam", [1, 2])
def test_an_empty_source_counts_and_gets_an_empty_translation(bahdanau, beam):
    sources = ["", SOURCES[0], "  "]
    translated, _ = translation.translations(bahdanau, sources, beam)
    assert translated == ["", bahdanau.trace(SOURCES[0], beam=beam).translation, ""]
    assert translation.score(bahdanau, sources, ["", REFERENCES[0], ""], beam=beam)["sentences"] == 3


@pytest.mark.parametrize(("beam", "shown"), [(1, "9/9"), (2, "9/9")])
def test_progress_goes_to_standard_error(bahdanau, capsys, monkeypatch, beam, shown):
    monkeypatch.setattr(progress, "SECONDS", 0)  # nothing is written of work that takes less
    translation.score(bahdanau, SOURCES, REFERENCES, beam=beam, progress=True)
    captured = capsys.readouterr()
    assert captured.out == "" and shown in captured.err


def test_no_progress_unless_asked(bahdanau, capsys):
    translation.score(bahdanau, SOURCES, REFERENCES)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("sources", "references", "beam", "kind", "message"),
    [
        (["a"], ["b"], 0, ValueError, "beam must be from 1 to 20; got 0"),
        (["a"], ["b"], 21, ValueError, "beam must be from 1 to 20; got 21"),
        (["a"], [], 1, ValueError, "sources and references must be aligned; got 1 and 0"),
        ([], [], 1, ValueError, "sources must hold at least one sentence with visible text; got none in 0 lines"),
        (
            ["", " "],
            ["", ""],
            1,
            ValueError,
            "sources must hold at least one sentence with visible text; got none in 2 lines",
        ),
        (
            ["The dog.", "dog " * 300],
            ["", ""],
            1,
            TextError,
            "sentence 2 is too long: 301 pieces with <eos>, and the models read at most 200; "
            "shorten it or leave it out",
        ),
    ],
)
def test_errors(bahdanau, sources, references, beam, kind, message):
    with pytest.raises(kind) as caught:
        translation.score(bahdanau, sources, references, beam=beam)
    assert str(caught.value) == message


def test_nothing_is_changed(translator):
    before = {key: value.clone() for key, value in translator.model.state_dict().items()}
    state = torch.get_rng_state()
    translation.score(translator, SOURCES, REFERENCES)
    assert torch.equal(torch.get_rng_state(), state) and not translator.model.training
    assert all(torch.equal(value, before[key]) for key, value in translator.model.state_dict().items())


def untrained(pair, style, texts, mechanism):
    """A model of another pair, seeded so that it says something."""
    text = train_vocabulary(texts * 3, 100, style)
    torch.manual_seed(3)
    config = Config(mechanism, len(text), tiny.WIDTHS[mechanism])
    return Translator(f"{pair}/{mechanism}", mechanism, build(config).eval(), text, {})


def test_the_pair_says_which_metrics():
    """Japanese is scored on words as given, which print does not show; reversal by sequences that are exactly right."""
    sources, references = (
        ["I ate an apple.", "Where is she?"],
        ["私 は リンゴ を 食べ た 。", "彼女 は どこ で す か 。"],
    )
    japanese = untrained("en-ja", "tokenised", [*sources, *references], "bahdanau")
    scores = translation.score(japanese, sources, references)
    texts, _ = translation.translations(japanese, sources)
    assert any(" " in text for text in texts)
    shown = [japanese.trace(source).translation for source in sources]
    assert [text.replace(" ", "") for text in texts] == [text.replace(" ", "") for text in shown]
    assert {key: scores[key] for key in metrics.score("en-ja", texts, references)} == metrics.score(
        "en-ja", texts, references
    )
    assert "bleu" not in scores and "antidiagonal" not in scores


def test_reversal_is_measured_on_the_antidiagonal():
    for mechanism, shape in (("transformer", (2, 2)), ("bahdanau", (1, 1))):
        model = untrained("reverse", "symbols", ["a b c k", "k b a"], mechanism)
        scores = translation.score(model, ["a b c", "k b"], ["c b a", "b k"])
        assert scores["exact_match"] in (0, 50, 100) and "exact match" in scores["exact_match_signature"]
        assert np.shape(scores["antidiagonal_heads"]) == shape and scores["antidiagonal"] == np.max(
            scores["antidiagonal_heads"]
        )
    without = translation.score(untrained("reverse", "symbols", ["a b c"], "fixed-context"), ["a b c"], ["c b a"])
    assert without["antidiagonal"] is None and without["antidiagonal_heads"] is None
