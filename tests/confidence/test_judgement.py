"""Signs of a translation, the level that they make, and the reasons that a reader is told."""

import math
from dataclasses import replace

import pytest

from attnviz.alignment import Covered
from attnviz.confidence import FEATURES, Scale, Signs, TrainingWords, judgement, signs
from attnviz.confidence.lexicon import Entry, Lexicon, Unsaid
from attnviz.confidence.training_words import KATAKANA, Word
from attnviz.data.loops import Loop
from attnviz.trace import Token, Trace

SURE = Signs((-0.1, -0.1), "b", (), 4, 5, (), (), 4, (), None, "", True)
SCALE = Scale(-3.0, {"mean": 2.0}, unusual=0.3, outside=0.8, usual=-0.2, unread=0.05)
NARITA = Word("Narita", 0, 6, 4)


def trace(source, target, log_probs, **more):
    return Trace(
        model="en-fr/x",
        mechanism="x",
        text="".join(source),
        translation="".join(target),
        forced=False,
        source=tokens(source),
        target=tokens(target),
        log_probs=log_probs,
        alternatives=(),
        maps=(),
        **more,
    )


def tokens(words):
    starts = [sum(map(len, words[:number])) for number in range(len(words))]
    return tuple(Token(word, a, a + len(word), word=number) for number, (word, a) in enumerate(zip(words, starts)))


def test_signs_of_a_trace():
    doubts = signs(trace(["Na", "ri", "ta", "."], ["ti"] * 8, (-1.0,) * 7 + (-2.0,)), TrainingWords({"run": 1}, 1))
    assert doubts.new == (Word("Narita", 0, 6, 3),) and doubts.words == 1 and doubts.read == 4 and doubts.least == "ti"
    assert doubts.loop == Loop(0, 1, 8) and doubts.looping == "ti" and doubts.complete


def test_the_reasons_name_a_piece_without_characters():
    assert signs(trace(["a"], ["", "b"], (-2.0, -1.0)), TrainingWords({}, 1)).least == "␣"


def test_the_reasons_show_an_unknown_character_that_prints_nothing():
    blank = replace(tokens(["\u2800"])[0], unknown=True)
    assert signs(replace(trace(["\u2800"], ["b"], (-1.0,)), source=(blank,)), TrainingWords({}, 1)).unknown == (
        "U+2800",
    )


def test_what_a_loop_repeats_is_spaced_as_in_the_translation():
    words = ["Er"] + [" in", " der", " Nähe"] * 8
    placed = [replace(token, text=token.text.strip(), start=token.start + 1) for token in tokens(words)[1:]]
    looping = replace(trace(["a"], words, (-0.1,) * 25), target=(*tokens(words)[:1], *placed))
    assert signs(looping, TrainingWords({}, 1)).looping == "in der Nähe"


@pytest.mark.parametrize(
    "pieces, made, written",
    [
        (["Der", " Stra", "ßen", "rand", "."], [Word("Straßenrand", 4, 15, 3)], 2),
        (["O", "ui", "."], [], 1),
        (["Nr", ".", " 5", "5", "5", "1", "2"], [], 1),  # a number is no word
        (["私", "は", "行", "く"], [], 1),
    ],
)
def test_words_of_the_target_that_are_made_of_many_pieces(pieces, made, written):
    result = signs(trace(["I"], pieces, (-0.1,) * len(pieces)), TrainingWords({}, 1))
    assert (list(result.made), result.written) == (made, written)


@pytest.mark.parametrize(
    "source, target, broken",
    [
        ("34 dogs", "trois4 chiens", ("trois4",)),
        ("396 and 40", "drei96, fünf0", ("drei96", "fünf0")),
        ("6:45", "à 6h45, le 12e", ()),
        ("Covid19", "le Covid19", ()),  # typed so
        ("34", "私は３冊", ()),
    ],
)
def test_numbers_that_are_half_a_word(source, target, broken):
    assert signs(trace([source], [target], (-0.1,)), TrainingWords({}, 1)).broken == broken


def test_what_the_two_sides_do_not_share():
    source, target = (
        TrainingWords({"we": 9, "met": 9, "in": 9}, 9),
        TrainingWords({"wir": 9, "trafen": 9, "nahe": 3}, 9),
    )
    pieces = ["Wir", " tra", "fen", " Nkeci", " bei", " 35", " Nahewir", "."]
    doubts = signs(trace(["We met Nkechi in 3.5 km"], pieces, (-0.1,) * 7 + (-0.3,)), source, (), target)
    assert doubts.lost_names == ("Nkechi",) and doubts.lost_units == ("km",) and doubts.changed == ("3", "5", "35")
    assert [word for word, _ in doubts.invented] == ["Nkeci", "bei", "Nahewir"]  # parts of four letters make a compound
    assert doubts.rarity == (pytest.approx(math.log(10)), 0, 0) and doubts.covered == ()


def test_a_common_word_that_is_copied_counts_as_made_up_but_no_name():
    source, target = TrainingWords({"the": 9, "clocks": 4, "paris": 2}, 9), TrainingWords({"les": 9}, 9)
    text = ["The", " clocks", " of", " Paris", " and", " kvass"]  # kvass is new on both sides: it may be its name
    doubts = signs(trace(text, ["Les", " clocks", " Paris", " kvass"], (-0.1,) * 4), source, (), target)
    assert doubts.copied == (("clocks", 2.5),) and doubts.invented == () and doubts.surprise == 2.5
    assert "“clocks” stands in the translation as in the source: untranslated." in judgement(doubts, SCALE).reasons


@pytest.mark.parametrize(
    "source, target, read_as, copied",
    [
        ("A spider", "Ein Spider", "", "Spider"),  # a noun, with a capital in German, which knows it from Spider-Man
        ("A SPIDER", "Ein Spider", "A spider", "Spider"),
        ("A Spider", "Ein Spider", "", ""),  # a name
        ("A pool", "Ein Pool", "", ""),  # a word of both languages
    ],
)
def test_a_copy_is_seen_in_small_letters_and_in_capitals(source, target, read_as, copied):
    words = (
        TrainingWords({"a": 90, "spider": 17, "pool": 17}, 90),
        TrainingWords({"ein": 90, "spider": 2, "pool": 5}, 90),
    )
    doubts = signs(replace(trace([source], [target], (-0.1,)), read_as=read_as), words[0], (), words[1])
    assert [word for word, _ in doubts.copied] == [copied][: bool(copied)]


def test_a_usual_one_with_strange_words_names_them():
    """In its title: few readers open the reasons."""
    seen = replace(SURE, copied=(("Spider", 2.5),), invented=(("hégerhog", -0.2), ("cinemain", -0.3)))
    words = "“Spider” is as in the source and “hégerhog”, “cinemain” are in no training text"
    assert judgement(seen, SCALE).title == f"a typical probability for this model, but {words}"
    assert judgement(replace(seen, loop=Loop(0, 1, 8)), SCALE).title == "outside what this model has learnt"
    seen = replace(SURE, unlearnt=("plunger",), invented=(("décharga", -0.2),), twice=("colère",))
    words = "“plunger”, “décharga” are in no training text and “colère” is there twice"
    assert judgement(seen, SCALE).title == f"a typical probability for this model, but {words}"


def test_a_usual_one_names_words_that_usually_translate_others_and_words_that_are_missing():
    wrong = Unsaid("pilote", ("pilot", "rider", "driver", "race"), 2.5), Unsaid("Zog", ("pull",), 4.0)
    seen = replace(SURE, unfounded=wrong, invented=(("Zog", -0.2),), dropped=("pill",))
    result = judgement(seen, SCALE)
    assert result.level == "usual" and result.strange == (
        "“Zog” is in no training text",
        "“pill” is probably missing or wrong",
        "“pilote” usually translates “pilot”",
    )
    assert "“pilote” usually translates other words than those of the source: pilot, rider, driver." in result.reasons


def test_a_word_that_is_there_twice_is_named_once():
    seen = replace(SURE, made=(Word("biscuits", 0, 8, 3), Word("biscuits", 12, 20, 3)))
    assert [reason for reason in judgement(seen, SCALE).reasons if "biscuits" in reason] == [
        "“biscuits” in the translation was put together from 3 pieces."
    ]


def test_a_missing_word_is_named_unless_it_is_copied():
    lexicon = Lexicon({"seven": Entry(("sept",), 99, 99), "tom": Entry(("tom",), 99, 99)})  # 5.3 nats
    seen = signs(trace(["Tom's", " seven"], ["Toms"], (-0.1,)), TrainingWords({"tom": 9}, 9), (), None, lexicon)
    assert seen.dropped == ("seven",) and len(seen.unsaid) == 2


def test_a_new_word_is_named_unless_it_is_copied_as_a_name():
    source = TrainingWords({"a": 9, "near": 3}, 9)
    seen = signs(trace(["A", " plunger", " near", " Narita", ",", " kvass"], [" kvass"], (-0.1,)), source)
    copied = signs(
        trace(["tumour", " kvass"], ["tumour", " kvass"], (-0.1,) * 2), source, (), TrainingWords({"kvass": 2}, 9)
    )
    assert copied.unlearnt == ("tumour",)  # the translation has it, but no training translation
    assert seen.unlearnt == ("plunger",) and [word.text for word in seen.new] == ["plunger", "Narita", "kvass"]


def test_a_word_that_is_there_twice_counts_where_a_word_of_the_source_is_missing():
    lexicon = Lexicon({"fabric": Entry(("tissu",), 20, 18)})  # 1.9 nats
    pieces = ["un", " métier", " vert", " nylon", " vert"]
    fabric, cloth = (
        signs(trace([" green", " nylon", word], pieces, (-0.1,) * 5), TrainingWords({}, 9), (), None, lexicon)
        for word in (" fabric", " cloth")
    )
    assert (fabric.twice, cloth.twice) == (("vert",), ()) and not fabric.repeated and not cloth.repeated
    reason = "The translation has “vert” twice, where the source probably has different words."
    assert reason in judgement(fabric, SCALE).reasons and reason not in judgement(cloth, SCALE).reasons


def test_a_made_up_word_in_katakana_is_named():
    """In Japanese only such words can be told apart. They change no level: counted, they find no more poor ones."""
    target = TrainingWords.learn(["ベートーベンはウィーンに住んでいた。", "ピアノを弾く。"], KATAKANA)
    assert target.counts == {"ベートーベン": 1, "ウィーン": 1, "ピアノ": 1}
    written = ["ベート", "ベレート", "は", "ウィーン", "の", "ア", "へ。"]
    japanese = replace(trace(["Beethoven"], written, (-0.2,) * 7), model="en-ja/bahdanau")
    seen = signs(japanese, TrainingWords({"beethoven": 3}, 9), (), target)
    assert seen.invented == (("ベートベレート", pytest.approx(-0.2)),) and seen.surprise == 0
    assert "“ベートベレート” is in no training text" in judgement(seen, SCALE).title


def test_a_word_that_is_said_is_not_untranslated_though_no_row_reads_it():
    seen = replace(SURE, covered=(Covered("workers", 0.01), Covered("dog", 0.01)), translated=("workers",))
    assert seen.untranslated(0.05) == ("dog",)


def test_reasons_name_what_differs():
    seen = replace(SURE, changed=("10", "²", "102"), lost_units=("km",), lost_names=("Nkechi",), repeated="der flagge")
    seen = replace(seen, longest=4, covered=(Covered("repair", 0.01), Covered("dog", 0.9)), lost_negation="no")
    seen = replace(seen, added_negation="ne … pas")
    assert judgement(seen, SCALE).reasons[:8] == (
        "The text has 5 pieces. Nearly all training texts of this model have at most 4.",
        "The numbers differ: “10”, “²”, “102” are on one side only.",
        "The unit “km” of the source is not in the translation.",
        "The name “Nkechi” is not in the translation.",
        "The source denies with “no”, and nothing in the translation seems to.",
        "The translation denies with “ne … pas”, and nothing in the source seems to.",
        "The translation says “der flagge” again, and the source has no such repeat.",
        "No row of the map reads “repair”: part of the source is probably untranslated.",
    )


def test_words_left_out_and_made_up_count_together():
    """In nats: a word of which no usual translation is there, and words that no training sentence has."""
    seen = replace(
        SURE, unsaid=(Unsaid("battle", ("bataille", "combat", "champ", "lutte"), 3.0), Unsaid("a", ("b",), 1))
    )
    reason = "None of the usual translations of “battle” is in the translation: bataille, combat, champ."
    assert judgement(seen, replace(SCALE, unsaid=3.9)).level == "unusual" and seen.surprise == 4.0
    usual = judgement(seen, replace(SCALE, unsaid=4.1))
    assert usual.level == "usual" == judgement(seen, SCALE).level and usual.reasons[0] == reason
    assert judgement(replace(seen, invented=(("noiseau", -0.1),)), replace(SCALE, unsaid=4.1)).level == "unusual"


def test_a_trace_without_log_probabilities():
    with pytest.raises(
        ValueError, match="must be of pieces and have their log-probabilities; got en-fr/x at the level of pieces"
    ):
        signs(trace(["a"], ["b"], ()), TrainingWords({}, 0))


@pytest.mark.parametrize(
    "seen, level",
    [
        (SURE, "usual"),
        (replace(SURE, log_probs=(-1.2,)), "unusual"),
        (replace(SURE, log_probs=(-3.0,)), "outside"),
        (replace(SURE, broken=("trois4",)), "unusual"),
        (replace(SURE, broken=("trois4",), log_probs=(-3.0,)), "outside"),
        (replace(SURE, changed=("102",)), "unusual"),
        (replace(SURE, lost_units=("km",)), "unusual"),
        (replace(SURE, lost_names=("Narita",)), "unusual"),
        (replace(SURE, repeated="der Flagge"), "unusual"),
        (replace(SURE, lost_negation="no"), "unusual"),
        (replace(SURE, added_negation="nicht"), "unusual"),
        (replace(SURE, longest=3), "unusual"),
        (replace(SURE, covered=(Covered("repair", 0.04),)), "unusual"),
        (replace(SURE, covered=(Covered("repair", 0.05),)), "usual"),
        (replace(SURE, new=(NARITA,)), "usual"),
        (replace(SURE, new=(NARITA, NARITA)), "outside"),
        (replace(SURE, unknown=("☃",)), "outside"),
        (replace(SURE, loop=Loop(0, 1, 8)), "outside"),
        (replace(SURE, complete=False), "outside"),
    ],
)
def test_levels(seen, level):
    assert judgement(seen, SCALE).level == level


def test_risk_by_hand():
    assert SCALE.risk(replace(SURE, log_probs=(-1.0, -2.0))) == pytest.approx(1 / (1 + math.exp(3.0 - 2.0 * 1.5)))


def test_reasons():
    assert judgement(SURE, SCALE).reasons == (
        "The model gave its pieces a probability of 90% on average; 82% is usual.",
        "It was least sure of “b”: 90%.",
    )
    seen = replace(SURE, log_probs=(-0.5, -5.0), new=(NARITA, Word("Xq", 7, 9, 1)), loop=Loop(0, 1, 9), looping="ti")
    seen = replace(seen, made=(Word("Narrita", 0, 7, 3),), broken=("trois4",))
    assert judgement(seen, SCALE).reasons == (
        "The translation repeats itself: “ti” 9 times in a row. Decoding was stopped there.",
        "“trois4” is half a word and half a number.",
        "“Narita” is in no training sentence and was cut into 4 pieces.",
        "“Xq” is in no training sentence and was cut into 1 piece.",
        "“Narrita” in the translation was put together from 3 pieces.",
        "The model gave its pieces a probability of 6% on average; 82% is usual.",
        "It was least sure of “b”: under 1%.",
    )


def test_a_risk_is_never_said_to_be_certain():
    certain = judgement(replace(SURE, log_probs=(-30.0,)), SCALE)
    assert certain.why[-2] == "Estimated risk that the translation is poor: over 99%."
    assert certain.lines[0] == "This translation is outside what this model has learnt."


def test_what_is_measured_is_said_of_a_usual_one_too():
    usual = judgement(SURE, SCALE)
    assert usual.lines[0] == "This translation has a typical probability for this model."
    assert usual.why[-1] == "All this is about probabilities and words: it is not a check of the meaning."
    made_up = judgement(replace(SURE, invented=(("kmosque", -0.2),)), SCALE)
    assert made_up.level == "usual" and "“kmosque” in the translation is in no training" in made_up.reasons[0]


def test_a_scale_refuses_strange_weights_and_thresholds():
    with pytest.raises(ValueError, match="weights must be of the features mean, .*; got colour"):
        Scale(0.0, {"colour": 1.0})
    with pytest.raises(ValueError, match="thresholds must be 0 <= unusual <= outside <= 1; got 0.9 and 0.5"):
        Scale(0.0, {}, 0.9, 0.5)
    with pytest.raises(ValueError, match="usual must be at most 0, and unsaid at least 0; got 0.5 and 0.0"):
        Scale(0.0, {}, usual=0.5)
    with pytest.raises(ValueError, match="numbers must be finite"):
        Scale(0.0, {}, unsaid=math.nan)


def test_every_feature_is_a_number():
    assert all(math.isfinite(of(replace(SURE, agreement=50.0))) for of in FEATURES.values())
