"""Scores of a model: its pair's metrics on what it translates, and statistics that agree with attnviz.stats."""

import numpy as np
import pytest
import sacrebleu
import tiny
import torch

from attnviz import progress
from attnviz import stats
from attnviz.data.tokenizer import train_vocabulary
from attnviz.evaluation import metrics, translation
from attnviz.mechanisms import Config
from attnviz.models.model import TextError
from attnviz.models.translator import Translator
from attnviz.networks.registry import build

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
