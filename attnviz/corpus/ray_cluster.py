"""How this process joins a Ray cluster. Ray is an extra, `pip install -e '.[ray]'`."""

import os


def join(address: str, **options) -> None:
    """Join the cluster at this address (or `auto`), unless this process is in one. options : of `ray.init`.

    Ray collects statistics of its use and sends them, in a thread that never ends; here it does not, unless
    RAY_USAGE_STATS_ENABLED says so. Raises ImportError without Ray, ValueError when there is no such cluster.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    if not ray.is_initialized():
        try:
            ray.init(address, log_to_driver=False, **options)
        except (ConnectionError, ValueError) as error:
            raise ValueError(f"there is no Ray cluster at {address!r}: {error}") from None
