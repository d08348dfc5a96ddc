"""Reading JSON that someone else wrote: whatever is wrong with it is one plain sentence."""

import json
import sys


def parse(text: str | bytes):
    """JSON -> its value. Raises ValueError with a reason that completes "it cannot be read: …".

    text : bytes are UTF-8, with or without a byte order mark.
    """
    try:
        return json.loads(text.decode("utf-8-sig") if isinstance(text, bytes) else text)
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not text in UTF-8 (byte {error.start:,})") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error.msg} in line {error.lineno:,}, column {error.colno:,}") from None
    except ValueError:  # Python converts no longer number, which would take long
        raise ValueError(f"it has a number of more than {sys.get_int_max_str_digits():,} digits") from None
    except RecursionError:
        raise ValueError("its lists or objects are nested too deeply") from None
