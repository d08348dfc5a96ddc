"""Numbers, powers and units that differ between a text and its translation."""

import pytest

from attnviz.confidence.between import changed, lost_units


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
        ("He is 25.", "彼は２５歳です。", ()),  # full-width digits are digits
        ("two halves of ½", "deux moitiés de 12", ("½", "12")),
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
