"""pandas, imported when one of its names is first used, because the import takes a fifth of a second and a server's
first chart does not need it. `from attnviz import lazy_pandas as pd`."""


def __getattr__(name: str):
    import pandas

    return getattr(pandas, name)
