"""Run a user's Python file. It can do whatever its author can, so only the person who starts attnviz may name it."""

import contextlib
import importlib.util
import io
import sys
import tokenize
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from attnviz.arguments import guess

ANYTHING = (Exception, SystemExit)  # that a person's code may raise; Ctrl-C goes through
_MAIN = 'put what is to run as a program below `if __name__ == "__main__":`'


def run(path: Path) -> ModuleType:
    """Import a file, which may import its neighbours. Its output goes to standard error.

    ValueError if it is not a Python file, is not in its declared encoding, raises an exception, or ends the program.
    """
    if path.suffix != ".py" or not path.is_file():
        raise ValueError(f"there is no Python file {path}{_similar(path)}; name it as FILE.py:NAME")
    spec = importlib.util.spec_from_file_location(f"attnviz_own_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"there is no Python file {path}; name it as FILE.py:NAME")
    _check_encoding(path)
    module, folder = importlib.util.module_from_spec(spec), str(path.resolve().parent)
    sys.path.insert(0, folder)
    sys.modules[spec.name] = module  # dataclasses look their module up
    try:
        with contextlib.redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
    except SystemExit as error:
        raise ValueError(f"{path} ends the program when it is imported ({text_of(error)}): {_MAIN}") from None
    except Exception as error:  # the file may raise anything
        raise ValueError(f"{path} cannot be imported: {_where_and_why(error, path)}") from None
    finally:
        sys.path.remove(folder)
    module.__name__ = spec.name  # which the file may have changed
    return module


def _check_encoding(path: Path) -> None:
    """ValueError for bytes that are not in the file's encoding: UTF-8, or the one declared in the first two lines.
    Python accepts such bytes in a comment but not in a string."""
    try:
        content, encoding = path.read_bytes(), "utf-8"
        with contextlib.suppress(SyntaxError):  # of an unknown encoding, and of bytes in the first lines
            encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        content.decode(encoding)
    except UnicodeDecodeError as error:
        place = f"line {content.count(bytes([10]), 0, error.start) + 1}, byte 0x{content[error.start]:02X}"
        raise ValueError(
            f"{path} is not in {encoding.upper()} ({place}): save it as UTF-8, or name its encoding in the first line, "
            "such as `# coding: latin-1`"
        ) from None
    except (OSError, LookupError):  # what Python says when it runs the file
        return


def in_words(error: BaseException) -> str:
    """An exception of a person's code in one line."""
    text = text_of(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def where_and_why(error: BaseException, module: str) -> str:
    """An exception of a person's code in one line, with the last line of that module that ran, if one did."""
    place = place_of(error, module)
    return f"{place}, {in_words(error)}" if place else in_words(error)


def place_of(error: BaseException, module: str) -> str:
    """The last line of a module that ran before an exception, such as `mine.py, line 12`; "" if none did."""
    frames = traceback.walk_tb(error.__traceback__)
    places = [(frame.f_code.co_filename, line) for frame, line in frames if frame.f_globals.get("__name__") == module]
    return "".join(f"{Path(file).name}, line {line}" for file, line in places[-1:])


def line_reached(error: BaseException, call: Callable) -> int:
    """The line of a person's own function, such as `forward`, that raised or called what raised; 0 if unknown."""
    code = getattr(call, "__code__", None)
    frames = traceback.walk_tb(error.__traceback__)
    return next((line for frame, line in frames if frame.f_code is code), 0)


def is_slip(error: BaseException, kind: type) -> bool:
    """Is it an error that no argument causes: of a name, or of an attribute of a package, a class or a `kind`?"""
    holder = error.obj if isinstance(error, AttributeError) else None
    return isinstance(error, NameError) or isinstance(holder, ModuleType | type | kind)


def text_of(error: BaseException) -> str:
    """The message of an exception of a user's code, in one line; "" if even that fails."""
    try:
        return " ".join(str(error).split())[:300] if error.args != (None,) else ""
    except Exception:  # `str` is code of the error's class
        return ""


def _where_and_why(error: Exception, path: Path) -> str:
    """`line 12, ` of the file, if the error has it, and the error in words."""
    file = str(path.absolute())
    if isinstance(error, SyntaxError) and error.filename == file:
        return f"line {error.lineno}, {type(error).__name__}: {error.msg}"  # its text names file and line again
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return "".join(f"line {line}, " for line in lines[-1:]) + in_words(error)


def _similar(path: Path) -> str:
    """`; did you mean mine.py` if a Python file of its folder is called like the path, else ""."""
    name = path.name if path.suffix == ".py" else f"{path.name.partition(':')[0]}.py"
    try:
        return guess(name, {file.name: str(file) for file in sorted(path.parent.glob("*.py")) if file.is_file()})
    except OSError:  # a folder of another user
        return ""
