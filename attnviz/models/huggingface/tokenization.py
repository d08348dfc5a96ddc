"""The tokenizer of a Hugging Face model: read from checked copies of its files; text to tokens and back.

Slow steps are first tried in another process. A fast tokenizer returns the offsets of its pieces in the typed text. For
a slow one, the text of its pieces is aligned with the typed text.
"""

import copy
import itertools
import json
import os.path
import re
import shutil
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from attnviz import arguments
from attnviz.data import tokenizer_rules
from attnviz.data.styles import SPACE
from attnviz.data.tokenizer import Tokens
from attnviz.models.huggingface import ModelError, folder_rules, read
from attnviz.models.huggingface.tokenizer_trial import Trial, Tried
from attnviz.storage import folders
from attnviz.trace import Token, visible

VOCABULARIES = ("tokenizer.json", "vocab.*", "*.model", "*.spm", "*.bpe.*")
PAIR = "|||"  # between two texts that are read as a pair
SAFE = {"trust_remote_code": False, "local_files_only": True}  # wherever the transformers library reads a folder
_BLANKS = f"{SPACE}Ġ"  # what stands for a space before a piece, in the two ways that vocabularies have


def load_tokenizer(name: str, library: ModuleType, folder: Path, rows: int) -> Any:
    """The tokenizer in a folder. name : of the model. rows : the most rows of its embedding.

    Raises ModelError, FileError, TokenizerError.
    """
    missing = ModelError(
        f"{name}: its tokenizer is missing; save it beside the model: tokenizer.save_pretrained(folder)"
    )
    if not any(any(folder.glob(pattern)) for pattern in VOCABULARIES):
        raise missing
    with folder_rules.tokenizer_files(folder, rows) as files_copy:
        trial = _try(files_copy)
        tokenizer = read(name, "its tokenizer", lambda: library.AutoTokenizer.from_pretrained(files_copy, **SAFE))
        files = {"tokenizer.json", *tokenizer.vocab_files_names.values()} - {"tokenizer_config.json"}
        if not any((folder / file).is_file() for file in files):  # the library then makes an empty tokenizer
            raise missing
        return read(name, "its tokenizer", lambda: _careful(tokenizer, files_copy, rows, trial))


def _try(copy: Path) -> Trial | None:
    """Have another process read the files: native code reads them, and may end the process -> the trial of the folder,
    where there was one. Raises TokenizerError."""
    file = copy / "tokenizer.json"
    if file.is_file() and "model" in json.loads(
        file.read_text(encoding="utf-8")
    ):  # else the library says what it lacks
        keep = folders.TemporaryFolder()
        place = Path(keep.name) / "tokenizer.json"
        shutil.copyfile(file, place)
        Trial("json", place, keep).ask(text="a")
    elif not file.is_file() and any(any(copy.glob(pattern)) for pattern in folder_rules.COMPILED):
        trial = _trial_of_folder(copy)
        trial.ask(text="a")  # the library runs what such files describe when it reads them
        return trial
    return None


def _careful(tokenizer: Any, copy: Path, rows: int, trial: Trial | None) -> Any:
    """The tokenizer without padding and truncation. Raises TokenizerError.

    Unless the time of every step is linear in the length of a text, each text is first tried in another process.
    """
    if not tokenizer.is_fast:
        return Tried(tokenizer, trial or _trial_of_folder(copy))
    backend = tokenizer.backend_tokenizer
    backend.no_padding()
    backend.no_truncation()
    content, linear = tokenizer_rules.check(json.loads(backend.to_str()), rows)
    if linear:
        return tokenizer
    keep = folders.TemporaryFolder()
    place = Path(keep.name) / "tokenizer.json"
    place.write_text(json.dumps(content), encoding="utf-8")
    return Tried(tokenizer, Trial("json", place, keep))


def _trial_of_folder(copy: Path) -> Trial:
    keep = folders.TemporaryFolder()
    shutil.copytree(copy, keep.name, dirs_exist_ok=True)
    return Trial("folder", Path(keep.name), keep)


def encode(tokenizer, text: str, target: bool = False, pair: bool = False) -> Tokens:
    """Pieces of a text, with those that the tokenizer adds around it. target : is it a text that the model produces?
    pair : may it be two texts, with PAIR between them?

    ValueError when a slow tokenizer has changed more than the spaces, so that its pieces cannot be located.
    """
    own = getattr(tokenizer, "untried", tokenizer)
    if target and getattr(own, "tgt_lang", "") is None:  # M2M-100 reads no target without a language
        own.tgt_lang = own.src_lang
    first, divided, second = text.partition(PAIR) if pair else (text, "", "")
    given: dict[str, Any] = {"text_target" if target else "text": first}
    given |= {"text_pair": second, "return_token_type_ids": True} if divided else {}
    if not tokenizer.is_fast:
        if divided:
            raise ValueError("the tokenizer does not say where in two texts its pieces are")
        ids = tokenizer(**given, verbose=False)["input_ids"]
        return Tokens(tuple(ids), _moved(text, *spell(tokenizer, ids)))
    encoding = tokenizer(**given, return_offsets_mapping=True, return_special_tokens_mask=True, verbose=False)
    ids, added = encoding["input_ids"], encoding["special_tokens_mask"]
    special = [mark == 1 or _is_special(tokenizer, number) for number, mark in zip(ids, added)]
    begins = [len(first) + len(PAIR) if number == 1 else 0 for number in encoding.sequence_ids()]
    spans = [
        None if mark else (span[0] + begin, span[1] + begin)
        for span, mark, begin in zip(encoding["offset_mapping"], added, begins)
    ]
    names = _names(tokenizer, ids)
    unknown = [number == tokenizer.unk_token_id for number in ids]
    words = [None if word is None else word + begin for word, begin in zip(encoding.word_ids(), begins)]
    segments = tuple(encoding.get("token_type_ids", ())) if divided else ()
    return Tokens(tuple(ids), _place(text, spans, words, names, special, unknown), segments=segments)


def behind(tokens: Tokens, count: int) -> Tokens:
    """Tokens of a text of which the first `count` characters are a prefix -> those of the text after it. The tokens of
    the prefix are special."""
    own = next((token.word for token in tokens.tokens if token.end > count and not token.special), None)
    placed = []
    for token in tokens.tokens:
        if token.end <= count and (token.special or token.word is None or token.word != own):
            placed.append(Token(token.text or token.piece or "", 0, 0, special=True))
            continue
        cut = max(count - token.start, 0)  # a piece that begins in the prefix
        word = None if token.word is None or own is None else token.word - own
        start, end = max(token.start - count, 0), max(token.end - count, 0)
        text = token.text if token.special else token.text[cut:]
        placed.append(replace(token, text=text, start=start, end=end, word=word))
    return replace(tokens, tokens=tuple(placed))


def produced_language(tokenizer) -> str:
    """The code of the language that a tokenizer of two languages names as its target, as Marian's; "" of others."""
    own = getattr(tokenizer, "untried", tokenizer)
    code = getattr(own, "target_lang", None) or own.init_kwargs.get("target_lang")
    return code if isinstance(code, str) else ""


def language_codes(tokenizer) -> tuple[str, ...]:
    """The language codes of a multilingual tokenizer, such as NLLB's; () for others."""
    if not hasattr(tokenizer, "src_lang") or not hasattr(tokenizer, "set_src_lang_special_tokens"):
        return ()
    named = getattr(tokenizer, "lang_code_to_id", None) or [
        token for token in tokenizer.all_special_tokens if re.fullmatch(r"[a-z]{2,3}_[A-Z]\w+", token)
    ]
    numbers = {code: tokenizer.convert_tokens_to_ids(_language_token(tokenizer, code)) for code in named}
    return tuple(sorted(code for code, number in numbers.items() if number not in (None, tokenizer.unk_token_id)))


def _language_token(tokenizer, code: str) -> str:
    return tokenizer.get_lang_token(code) if hasattr(tokenizer, "get_lang_token") else code


def for_languages(tokenizer, source: str, target: str) -> tuple[Any, int | None, bool]:
    """A copy of the tokenizer that reads `source` and produces `target`, "" for its own; the id of the token of the
    target language; and whether it must be produced first (NLLB, M2M) or the decoder starts with it (mBART). ValueError
    for an unknown code."""
    codes = language_codes(tokenizer)
    for code in filter(None, (source, target)):
        if code not in codes:
            had = f"it has {arguments.listed(codes[:200])}" if codes else "it reads one language, or says none"
            raise ValueError(f"its tokenizer has no language {code!r:.40}{arguments.guess(code, codes)}; {had}")
    own = _copied(getattr(tokenizer, "untried", tokenizer))
    own.src_lang = source or own.src_lang
    number, first = None, True
    if target:
        own.tgt_lang = target
        own.set_tgt_lang_special_tokens(target)
        number, first = own.convert_tokens_to_ids(_language_token(own, target)), bool(own.prefix_tokens)
        own.set_src_lang_special_tokens(own.src_lang)
    return (tokenizer.again(own) if hasattr(tokenizer, "again") else own), number, first


def _copied(tokenizer):
    """A copy whose languages may be set. A deep copy of a slow tokenizer would read its files, which no longer exist; a
    shallow one is enough, because setting a language replaces attributes and modifies none."""
    if tokenizer.is_fast:
        return copy.deepcopy(tokenizer)
    own = object.__new__(type(tokenizer))
    vars(own).update(vars(tokenizer))
    return own


def spell(tokenizer, ids: list[int]) -> tuple[str, tuple[Token, ...]]:
    """The text that produced ids spell, and its tokens with offsets into that text.

    A piece ends where the text of all pieces up to it ends. Words are those of the tokenizer, if it has words.
    """
    text = _decode(tokenizer, ids)
    blank = len(text) - len(text.lstrip())
    text, ends = text[blank:], [0]
    for count in range(1, len(ids) + 1):
        # half a character is not there yet
        shared = os.path.commonprefix([_decode(tokenizer, ids[:count])[blank:], text])
        ends.append(max(ends[-1], len(shared)))
    special = [_is_special(tokenizer, number) for number in ids]
    spans = [None if mark else span for span, mark in zip(itertools.pairwise(ends), special)]
    names = _names(tokenizer, ids)
    words = [None] * len(ids)
    if tokenizer.is_fast:
        encoding = tokenizer(text_target=text, add_special_tokens=False, verbose=False)
        starts = [None if span is None else _surface(text, span, piece)[0] for span, piece in zip(spans, names)]
        words = [None if start in (None, len(text)) else encoding.char_to_word(start) for start in starts]
    return text, _place(text, spans, words, names, special, [number == tokenizer.unk_token_id for number in ids])


def name(tokenizer, number: int) -> str:
    """A piece as a reader sees it."""
    text = "" if _is_special(tokenizer, number) else _decode(tokenizer, [number])
    if text.startswith("##") and len(text) > 2:  # of a vocabulary of word pieces: it goes on with a word
        return f"·{text[2:]}"
    return text.strip() or (text and visible.SPACE) or tokenizer.convert_ids_to_tokens(number) or f"#{number}"


def _place(text: str, spans, words, names, special, unknown) -> tuple[Token, ...]:
    """Tokens at their spans, without the white space before them. A span of None is put at the end of the previous
    token.

    A word begins where the tokenizer says so, or after white space, because some tokenizers have no words. In these, a
    piece that is only the space before a word begins that word.
    """
    # False: no word before, and none that waits for its letters
    tokens, word, before, end, opened = [], -1, False, 0, False
    for span, given, piece, mark, strange in zip(spans, words, names, special, unknown):
        start, after = (end, end) if span is None else _surface(text, span, piece)
        if mark:
            tokens.append(Token(piece, start, after, special=True))
            before = opened = False
        else:
            blank = given is None and not piece.strip(_BLANKS)
            word += not opened and (blank or before is False or given != before or text[end:start].isspace())
            opened = blank
            tokens.append(
                Token(text[start:after], start, after, word=word, unknown=strange, piece=piece.lstrip(_BLANKS) or piece)
            )
            before = given
        end = max(end, after)
    return tuple(tokens)


def _moved(text: str, written: str, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
    """Tokens of `written` as tokens of `text`, which may differ from it in white space only."""
    places, letters = (
        [i for i, character in enumerate(string) if not character.isspace()] for string in (text, written)
    )
    if [text[i] for i in places] != [written[i] for i in letters]:
        raise ValueError("the tokenizer changes the text and does not say where in it its pieces are")
    place = dict(zip(letters, places))
    moved, end = [], 0
    for token in tokens:
        shown = [place[i] for i in range(token.start, token.end) if i in place]
        start, end = (shown[0], shown[-1] + 1) if shown else (end, end)
        moved.append(replace(token, start=start, end=end, text=token.text if token.special else text[start:end]))
    return tuple(moved)


def _surface(text: str, span: tuple[int, int], piece: str) -> tuple[int, int]:
    """The span of characters that a piece shows: empty for a space that was not typed, and without leading white
    space."""
    start, end = span
    shown = text[start:end].lstrip()
    if piece == SPACE and shown and shown != SPACE:  # which people may type
        return start, start
    return (end - len(shown), end) if shown else (start, end)


def _names(tokenizer, ids: list[int]) -> list[str]:
    """The pieces as in the vocabulary; for an id that only the model knows, the number."""
    return [piece or f"#{number}" for piece, number in zip(tokenizer.convert_ids_to_tokens(ids), ids)]


def _is_special(tokenizer, number: int) -> bool:
    return number in tokenizer.all_special_ids and number != tokenizer.unk_token_id


def _decode(tokenizer, ids: list[int]) -> str:
    with tokenizer_rules.contained():
        return tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
