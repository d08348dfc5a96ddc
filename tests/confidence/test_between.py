"""What only one of the two sides has: numbers, powers and units that differ, phrases that only the translation says
twice, and negations that only one has."""

import pytest

from attnviz.confidence.between import added_negation, changed, lost_negation, lost_units, repeated, twice


@pytest.mark.parametrize(
    "text, translation, differ",
    [
        ("It is 10².", "C'est 102.", ("10", "²", "102")),
        ("It is 10².", "C'est 10².", ()),
        ("at 5:45", "à 17h455", ("5", "45", "17", "455")),
        ("24,310 people, 3.5 each", "24.310 Leute, je 3,5", ()),
        ("4 people", "quatre personnes", ()),  # a small number may be a word
        ("4 people", "14 personnes", ("4", "14")),
        ("47 people", "des gens", ("47",)),
        ("in 1998", "一九九八年に", ()),
        ("in 1998", "千九百九十八年に", ()),
        ("25 people", "三十人です", ("25",)),
        ("30,000 people and 2,500,000 yen", "３万人と250万円", ()),
        ("3 million people and 1.5 Billion yen", "300万人と十五億円", ()),
        ("3 million people", "30万人", ("3", "300000")),
        ("3 million people", "3 millions de personnes", ()),
        ("30,000 people", "30万人", ("30000", "300000")),
        ("20 of them are best", "二十人が一番です", ()),
        ("He is 25.", "彼は２５歳です。", ()),  # full-width digits are digits
        ("two halves of ½", "deux moitiés de 12", ("½", "12")),
        ("I get up at six.", "私は毎朝６時に起きる。", ()),  # in words on one side, in digits on the other
        ("I get up at six.", "私は毎朝７時に起きる。", ("7",)),
        ("Two hundred and five men and twenty-five dogs", "205 hommes et 25 chiens", ()),
        ("three thousand four hundred cats", "3 400 chats", ()),
        ("in a couple of days", "２、３日で", ()),
    ],
)
def test_numbers(text, translation, differ):
    assert changed(text, translation) == differ


@pytest.mark.parametrize(
    "text, translation, lost",
    [
        ("3.5 km long", "3,5 Kmmm de long", ("km",)),
        ("3.5 km long", "3,5 km de long", ()),
        ("3.5 km long", "3,5 kilomètres de long", ()),
        ("30 g of sugar and 2 l of milk", "30 Zucker und 2 Liter Milch", ("g",)),
        ("65 m² for €1,150", "65 m² pour 1 150 euros", ()),
        ("4.2% at 20 °C", "4,2 Prozent", ("°",)),
        ("26.2 miles", "environ 26", ("miles",)),
        ("3 men", "trois hommes", ()),  # the m of men is no unit
        ("100 km", "100キロ", ()),
        ("85 km/h", "85 Km beim Surf", ("km/h",)),
        ("85 km/h", "85 Kilometern pro Stunde", ()),
        ("85 km/h", "85 km/h", ()),
        ("60 mph and 3 m/s", "60 mi/h et 3 mètres", ("m/s",)),
    ],
)
def test_units(text, translation, lost):
    assert lost_units(text, translation) == lost


@pytest.mark.parametrize(
    "text, translation, language, phrase",
    [
        ("near the flag", "in der Nähe der Flagge in der Nähe der Flagge", "de", "in der nähe der flagge"),
        ("of medium size", "de taille moyenne de taille moyenne", "fr", "de taille moyenne"),
        ("jumping high", "la femme saute haut haut", "fr", "haut"),
        ("We see ourselves", "nous nous voyons", "fr", ""),  # function words may
        ("near the shop and near the park", "in der Nähe des Ladens und in der Nähe des Parks", "de", ""),
        ("a man near a woman", "ein Mann in der Nähe, eine Frau in der Nähe", "de", ""),  # one content word, apart
        ("he loved the work", "qu'il a fait penser à elle, qu'il a fait penser", "fr", "qu il a fait penser"),
        ("very, very good", "très, très bon", "fr", ""),  # the source repeats too
        ("very, very good", "très, très vert vert", "fr", "vert"),  # but only once
        (
            "The cat is on the roof and the dog is on the roof.",
            "Le chat dort sur le toit, le chien dort sur le toit.",
            "fr",
            "",
        ),
        ("He ran and ran and ran.", "Er rannte und rannte und rannte.", "de", ""),
        ("in his right hand, in his left hand", "dans un quartier de quartier de quartier", "fr", "quartier de"),
        (
            "a man with a dog and a woman with a dog",
            "kleiner roter Ball, kleiner roter Ball, kleiner roter Ball",
            "de",
            "kleiner roter ball",
        ),
        ("I saw it and saw it again", "私はそれを見ました私はそれを見ました", "ja", ""),
        ("I saw it", "私はそれを見ました私はそれを見ました", "ja", "私はそれを見ました"),
    ],
)
def test_repeated(text, translation, language, phrase):
    assert repeated(text, translation, language) == phrase


@pytest.mark.parametrize(
    "text, translation, language, words",
    [
        ("neither confirm nor deny it", "weder bestätigen noch bestätigen", "de", ("bestätigen",)),
        ("a train or a subway", "un métro ou un métro", "fr", ("métro",)),
        ("a train or a subway", "un train ou un métro", "fr", ()),
        ("We walked on and on.", "Wir gingen weiter und weiter.", "de", ()),  # the source joins the same words too
        ("Lemons and limes", "Les citrons et les belles citrons", "fr", ()),  # not the first words after "et"
        ("to bed early", "früh zu Bett, ging früh ins Bett", "de", ("früh", "bett")),
        ("a bird", "鳥、鳥", "ja", ()),
    ],
)
def test_words_that_probably_stand_for_different_ones(text, translation, language, words):
    assert twice(text, translation, language) == words


def test_one_word_that_is_there_twice_counts_where_another_is_missing():
    """A root that the source has twice excuses one of them."""
    smoke = "a festival with smoke", "un festival de fumée avec de la fumée", "fr"
    assert twice(*smoke, missing=True) == ("fumée",) and twice(*smoke) == ()
    brush = "She brushes her teeth with a toothbrush", "se brosse les dents avec une brosse à dents", "fr"
    assert twice(*brush, missing=True) == ("dents",) and twice(*brush) == ()
    assert twice("two skiers, one skier", "zwei Skifahrer, ein Skifahrer", "de", missing=True) == ()


@pytest.mark.parametrize(
    "text, translation, language, word",
    [
        ("The thief left no fingerprints.", "Le voleur laissa des empreintes.", "fr", "no"),
        ("The thief left no fingerprints.", "Le voleur ne laissa aucune empreinte.", "fr", ""),
        ("She doesn't eat meat.", "Elle mange de la viande et du pain.", "fr", "doesn't"),
        ("She doesn’t eat meat.", "Sie isst Fleisch und Brot.", "de", "doesn’t"),
        ("She doesn't eat meat.", "Sie isst kein Fleisch.", "de", ""),
        ("Two children without shirts sit there.", "Zwei Kinder mit Hemden sitzen dort.", "de", "without"),
        ("Nobody helped us.", "Quelqu'un nous a aidés.", "fr", "Nobody"),
        ("He is not happy.", "Er ist unglücklich.", "de", ""),  # a prefix denies
        ("I don't know.", "Je l'ignore.", "fr", ""),
        ("Tom is fast, isn't he?", "Tom ist schnell, nicht wahr?", "de", ""),
        ("Tom is fast, isn't he?", "Tom court vite !", "fr", ""),  # a question at the end denies nothing
        ("Not only he came.", "Lui aussi est venu.", "fr", ""),
        ("A knot in the nose.", "Un nœud dans le nez.", "fr", ""),
        ("He is not here.", "彼はここにいる。", "ja", ""),  # no list
    ],
)
def test_lost_negations(text, translation, language, word):
    assert lost_negation(text, translation, language) == word


@pytest.mark.parametrize(
    "text, translation, language, words",
    [
        ("Everyone wanted to leave.", "Niemand wollte gehen.", "de", "Niemand"),
        ("I lost my notebook today.", "Ich habe heute kein Notizbuch verloren.", "de", "kein"),
        ("She forgot nothing.", "Sie hat nichts vergessen.", "de", ""),
        ("She failed.", "Sie hat es nicht geschafft.", "de", ""),  # other words deny too
        ("He eats fish.", "Il ne mange pas de poisson.", "fr", "ne mange pas"),
        ("He rarely eats fish.", "Il ne mange pas souvent de poisson.", "fr", ""),
        ("You speak French, right?", "Vous parlez français, n'est-ce pas ?", "fr", ""),
        ("He eats fish.", "彼は魚を食べない。", "ja", ""),  # no list
    ],
)
def test_added_negations(text, translation, language, words):
    assert added_negation(text, translation, language) == words
