"""Japanese letters for systems that have none: a part of Noto Sans JP, under the SIL Open Font License 1.1 (beside it).

It holds the characters of the Japanese vocabulary and of the linked sentences, all kana, punctuation and wide Latin
letters: 2,500 of its 17,000. Made with fonttools from the npm package @fontsource/noto-sans-jp 5.3.0, without layout
features and hinting; its name is changed, so that a whole Noto Sans JP on the system goes first.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

JAPANESE = Path(__file__).with_name("japanese.ttf")
FAMILY = "attnviz Japanese"


@functools.cache
def family() -> str:
    """The name by which matplotlib then knows the font."""
    from matplotlib import font_manager

    manager = font_manager.fontManager
    manager.addfont(JAPANESE)
    manager.ttflist.append(replace(manager.ttflist[-1], weight=700))  # it stands in titles too: without a warning
    return FAMILY
