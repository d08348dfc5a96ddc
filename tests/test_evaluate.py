"""Scores: sacreBLEU's own numbers, and attention statistics that agree with attnviz.stats sentence by sentence."""

import numpy as np
import pytest
import sacrebleu
import tiny
import torch

from attnviz import corpora, decode, evaluate, stats
from attnviz.text import PAD
from attnviz.translator import TextError, Translator

PAIRS = tiny.sentences(9, 7)
SOURCES, REFERENCES = [a for a, _ in PAIRS], [b for _, b in PAIRS]


@pytest.fixture(scope="module", params=tiny.WIDTHS)
def translator(request, root):
    return Translator.load(f"en-fr/{request.param}", root)


@pytest.fixture(scope="module")
def bahdanau(root):
    return Translator.load("en-fr/bahdanau", root)


@pytest.mark.parametrize("beam", [1, 3])
def test_attention_is_what_stats_says_of_each_trace(translator, beam):
    found = evaluate.score(translator, SOURCES, REFERENCES, beam=beam)
    frames = [stats.steps(translator.trace(source, beam=beam)) for source in SOURCES]
    rows = np.concatenate([frame[frame.kind == "cross"][["entropy_nats", "max_weight"]].to_numpy() for frame in frames])
    assert found["entropy_nats"] == pytest.approx(rows[:, 0].mean(), abs=1e-5)
    assert found["max_weight"] == pytest.approx(rows[:, 1].mean(), abs=1e-5)


def test_attention_sums_by_hand():
    # one layer, one head; the first sentence has 2 rows, the second 1 row and one padded key
    cross = torch.tensor([[[[0.5, 0.5], [1.0, 0.0]]], [[[1.0, 0.0], [0.3, 0.7]]]])
    assert evaluate.attention_sums([cross], [2, 1]).tolist() == pytest.approx([np.log(2), 0.5 + 1 + 1, 3])


def test_overlap_is_sacrebleu_with_signatures(bahdanau):
    found = evaluate.score(bahdanau, SOURCES, REFERENCES)
    texts = [bahdanau.trace(source).translation for source in SOURCES]
    assert found["bleu"] == round(sacrebleu.corpus_bleu(texts, [REFERENCES]).score, 2)
    assert found["bleu_lc"] == round(sacrebleu.corpus_bleu(texts, [REFERENCES], lowercase=True).score, 2)
    assert found["chrf"] == round(sacrebleu.corpus_chrf(texts, [REFERENCES]).score, 2)
    version = sacrebleu.__version__
    assert found["bleu_signature"] == f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{version}"
    assert found["bleu_lc_signature"] == f"nrefs:1|case:lc|eff:no|tok:13a|smooth:exp|version:{version}"
    assert found["chrf_signature"] == f"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:{version}"
    assert (found["model"], found["sentences"], found["beam"]) == ("en-fr/bahdanau", 9, 1)
    assert found["sentences_per_second"] > 0


def test_translate_gives_what_each_sentence_gives_alone(translator):
    """Also of a model that never ends its sentences: each is cut at its own limit, not at that of the longest."""
    together = evaluate.translate(translator.model, translator.text, [*SOURCES, ""], "cpu")
    assert together[:-1] == [translator.trace(source).translation for source in SOURCES]


def test_nothing_to_translate(bahdanau):
    assert evaluate.translate(bahdanau.model, bahdanau.text, [], "cpu") == []


@pytest.mark.parametrize("beam", [1, 2])
def test_an_empty_source_counts_and_gets_an_empty_translation(bahdanau, monkeypatch, beam):
    seen = []
    monkeypatch.setattr(evaluate, "_overlap", lambda found, references: seen.extend(found) or {})
    found = evaluate.score(bahdanau, ["", SOURCES[0], "  "], ["", REFERENCES[0], ""], beam=beam)
    assert seen == ["", bahdanau.trace(SOURCES[0], beam=beam).translation, ""]
    assert found["sentences"] == 3


def test_perfect_translations_score_100_with_empty_lines(bahdanau):
    assert evaluate._overlap([*REFERENCES, ""], [*REFERENCES, ""])["bleu"] == 100


@pytest.mark.parametrize(("beam", "shown"), [(1, "9/9"), (2, "9/9")])
def test_progress_goes_to_standard_error(bahdanau, capsys, beam, shown):
    evaluate.score(bahdanau, SOURCES, REFERENCES, beam=beam, progress=True)
    captured = capsys.readouterr()
    assert captured.out == "" and shown in captured.err


def test_no_progress_unless_asked(bahdanau, capsys):
    evaluate.score(bahdanau, SOURCES, REFERENCES)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("sources", "references", "beam", "kind", "message"),
    [
        (["a"], ["b"], 0, ValueError, "beam must be from 1 to 20; got 0"),
        (["a"], ["b"], 21, ValueError, "beam must be from 1 to 20; got 21"),
        (["a"], [], 1, ValueError, "sources and references must be aligned; got 1 and 0"),
        ([], [], 1, ValueError, "sources must hold at least one sentence with visible text; got none in 0 lines"),
        (["", " "], ["", ""], 1, ValueError, "sources must hold at least one sentence with visible text; got none in 2 lines"),
        (["The dog.", "dog " * 300], ["", ""], 1, TextError,
         "sentence 2 is too long: 301 pieces with the end mark, and the models read at most 200; shorten it or leave it out"),
    ],
)  # fmt: skip
def test_errors(bahdanau, sources, references, beam, kind, message):
    with pytest.raises(kind) as caught:
        evaluate.score(bahdanau, sources, references, beam=beam)
    assert str(caught.value) == message


def test_nothing_is_changed(translator):
    before = {key: value.clone() for key, value in translator.model.state_dict().items()}
    state = torch.get_rng_state()
    evaluate.score(translator, SOURCES, REFERENCES)
    assert torch.equal(torch.get_rng_state(), state) and not translator.model.training
    assert all(torch.equal(value, before[key]) for key, value in translator.model.state_dict().items())


def test_padding_adds_nothing(translator):
    ids = translator.text.batch_ids(["The dog runs.", "The black white dog sleeps."])
    source = corpora.pad(ids)
    together = evaluate.attention_sums(decode.greedy(translator.model, source, source != PAD).cross, [5, 5])
    alone = [decode.greedy(translator.model, torch.tensor([row])).cross for row in ids]
    assert together.tolist() == pytest.approx(sum(evaluate.attention_sums(cross, [5]) for cross in alone).tolist(), abs=1e-4)
