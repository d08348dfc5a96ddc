"""Japanese letters for systems that have none: a part of Noto Sans JP, under the SIL Open Font License 1.1 (beside it).

It holds the characters of the Japanese vocabulary and of the linked sentences, all kana, punctuation and wide Latin
letters: 2,500 of its 17,000. Made with fonttools from the npm package @fontsource/noto-sans-jp 5.3.0, without layout
features and hinting; its name is changed, so that a complete Noto Sans JP on the system takes precedence.
"""

from __future__ import annotations

import base64
import functools
import io
from dataclasses import replace
from pathlib import Path

JAPANESE = Path(__file__).with_name("japanese.ttf")
FAMILY = "attnviz Japanese"
# Fonts with Japanese of the systems, as CSS finds them; they go first.
SYSTEM_FONTS = (
    "Hiragino Sans W3",
    "HiraginoSans-W3",
    "Yu Gothic Regular",
    "YuGothic-Regular",
    "Meiryo",
    "Noto Sans CJK JP",
    "Noto Sans CJK JP Regular",
    "Noto Sans JP",
    "IPAPGothic",
)
_RANGES = ((0x3000, 0x30FF), (0x4E00, 0x9FFF), (0xFF01, 0xFF9F))  # kana and punctuation, kanji, wide Latin


@functools.cache
def family() -> str:
    """Register the font with matplotlib -> its family name."""
    from matplotlib import font_manager

    manager = font_manager.fontManager
    manager.addfont(JAPANESE)
    manager.ttflist.append(replace(manager.ttflist[-1], weight=700))  # it stands in titles too: without a warning
    return FAMILY


def face(text: str) -> str:
    """The `rule` that embeds the Japanese letters of `text` in a page or an SVG, as a subset of the font (0.2 kB per
    letter). "" if there are none."""
    codes = map(ord, set(text))
    letters = frozenset(code for code in codes if any(first <= code <= last for first, last in _RANGES))
    data = _part(letters) if letters else b""
    return rule(f"data:font/woff;base64,{base64.b64encode(data).decode()}", "woff") if data else ""


def rule(address: str, form: str, family: str = FAMILY, more: str = "") -> str:
    """CSS, `@font-face`: Japanese letters of the system, else of the font at `address`. Put the family first in a list
    of fonts: Chromium does not load a font listed after one that covers every letter. more : further CSS of the
    rule."""
    system = ", ".join(f'local("{name}")' for name in SYSTEM_FONTS)
    letters = ", ".join(f"U+{first:X}-{last:X}" for first, last in _RANGES)
    return (
        f'@font-face {{ font-family: "{family}"; {more}src: {system}, url({address}) format("{form}"); '
        f"unicode-range: {letters}; }}"
    )


@functools.lru_cache(maxsize=32)
def _part(letters: frozenset[int]) -> bytes:
    """The font reduced to these letters, as WOFF; b"" if it has none of them."""
    from fontTools import subset, ttLib

    with ttLib.TTFont(JAPANESE, recalcTimestamp=False) as font:
        held = letters & font.getBestCmap().keys()
        if not held:
            return b""
        part = subset.Subsetter()
        part.populate(unicodes=held)
        part.subset(font)
        font.flavor, file = "woff", io.BytesIO()
        font.save(file)
    return file.getvalue()
