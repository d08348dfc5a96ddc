"""English numbers and Japanese ones become the same digits."""

import random
import re
import unicodedata

import pytest

from attnviz.data import augmentation
from attnviz.data.augmentation import numbers


@pytest.mark.parametrize(
    "source, target, form",
    [
        ("Two men came .", "二 人 の 男 が 来 た 。", r"(\d+) men came .|\1 人 の 男 が 来 た 。"),
        ("Two men came .", "二人 の 男 が 来 た 。", r"(\d+) men came .|\1 人 の 男 が 来 た 。"),
        ("Page 25.", "二十 五 ページ 。", r"Page (\d+).|\1 ページ 。"),
        ("It has 2345 rooms.", "二千三百四十五 部屋 。", r"It has (\d+) rooms.|\1 部屋 。"),
        ("Ten or 3.", "３ か １０ 。", r"(\d+) or (\d+).|\2 か \1 。"),
        ("Two hours.", "２ 時間 。", r"(\d+) hours.|\1 時間 。"),
    ],
)
def test_a_number_that_stands_once_on_both_sides_becomes_another(source, target, form):
    drawn = set()
    for seed in range(20):
        changed = unicodedata.normalize(
            "NFKC", "|".join(numbers.japanese_in_digits((source, target), _generator(seed)))
        )
        match = re.fullmatch(form.replace("|", "[|]"), changed)
        assert match, changed
        drawn.add(match[1])
    assert len(drawn) > 5


@pytest.mark.parametrize(
    "source, target",
    [
        ("At two.", "二 時 に 。"),
        ("At two.", "２ 時 に 。"),
        ("We two met at 20.", "二十 時 に 会 っ た 。"),
        ("Two met at 22.", "２２ 時 に 会 っ た 。"),
        ("On May 3.", "五 月 三 日 。"),
        ("At 2:30.", "２ 時 ３０ 分 。"),
        ("One dog.", "一 匹 。"),
        ("I have ten.", "十 か 十 。"),
        ("Two or two.", "二 人 。"),
        ("Two men.", "青二 人 。"),
        ("Two hundred.", "二 百 。"),
        ("Two dogs.", "二百 匹 。"),
        ("Twenty-two dogs.", "２０ 匹 。"),
        ("It is 3.5 meters.", "３ メートル 。"),
        ("Nothing.", ""),
    ],
)
def test_pairs_that_stay(source, target):
    for seed in range(10):
        assert numbers.japanese_in_digits((source, target), _generator(seed)) == (source, target)


def test_long_numbers_keep_their_number_of_digits():
    """What was a year stays as long as one."""
    for seed in range(20):
        source, _ = numbers.japanese_in_digits(("In 1952.", "１９５２ 年 に 。"), _generator(seed))
        assert re.fullmatch(r"In \d{4}\.", source) and "1952" not in source


def test_pairs_with_a_number_are_read_more_often_in_japanese_alone():
    plain, number = ("Tom left.", "トム は 出 た 。"), ("Two men.", "二 人 。")
    assert augmentation.repeated([plain, number], "en-ja") == [plain] + [number] * (1 + numbers.REPEATS)
    assert augmentation.repeated([plain, number], "en-fr") == [plain, number]
    change = augmentation.for_pair([plain, number], "en-ja", 1.0)
    assert len({source for source, _ in change([number] * 30, 0)}) > 5  # another number each time


def test_above_nine_another_word_counts_things():
    counters = set()
    for seed in range(40):
        _, target = numbers.japanese_in_digits(("Two cups.", "カップ 二 つ 。"), _generator(seed))
        _, number, counter, _ = target.split()
        assert (counter == "つ") == (len(number) == 1)
        counters.add(counter)
    assert counters == {"つ", "個"}


def test_only_numbers_stand_beside_japanese_the_same_on_both_sides_in_full_width():
    change = augmentation.for_pair([("Tom left.", "トム は 出 た 。")], "en-ja", 10.0)
    for epoch in range(50):
        ((source, target),) = change([("Go away.", "行 け 。")], epoch)
        numbers = re.findall(r"[\d-]*\d", source)
        assert numbers and [unicodedata.normalize("NFKC", text) for text in re.findall(r"[\d-]*\d", target)] == numbers
        assert not re.search("[0-9A-Za-z]", target) and not target[-1].isdigit()


def _generator(seed: int) -> random.Random:
    return random.Random(seed)
