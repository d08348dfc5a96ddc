"""pandas, imported when one of its names is first used: that takes a fifth of a second, and the first chart of a server
needs none of it. `from attnviz import lazy_pandas as pd`."""


def __getattr__(name: str):
    import pandas

    return getattr(pandas, name)
