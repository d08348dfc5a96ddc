"""Shards on a Ray cluster: Ray Data's `map_batches` with an actor that keeps its model loaded.

Ray is an extra, `pip install -e '.[ray]'`. The shards of a node that dies are computed again by others: they are
written whole or not at all, so none is lost or doubled.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from attnviz.corpus import ray_cluster
from attnviz.corpus.shards import Done, Shard, Worker


class Actor:
    """A worker on a node of the cluster."""

    def __init__(self, worker: Worker):
        self.worker = worker

    def __call__(self, batch: dict) -> dict:
        """batch : one shard in the column `shard` -> its result in the column `done`."""
        return {"done": [self.worker(shard) for shard in batch["shard"]]}


def compute(worker: Worker, shards: Iterable[Shard], workers: int, address: str) -> Iterator[Done]:
    """All shards by `workers` actors, each as soon as it is done. address : of the cluster, or `auto`.

    The input is read through first, into Ray's memory, which goes to disk where it is full; this process keeps none.
    Raises ValueError when Ray is not installed, or there is no such cluster.
    """
    try:
        import ray
        from ray.data.extensions import ArrowPythonObjectArray
    except ImportError:
        raise ValueError("--ray needs Ray; install it with: pip install -e '.[ray]'") from None
    ray_cluster.join(address)
    blocks = [ray.put(pa.table({"shard": ArrowPythonObjectArray.from_objects([shard])})) for shard in shards]
    if not blocks:
        return
    data = ray.data.from_arrow_refs(blocks).map_batches(
        Actor,
        fn_constructor_args=(worker,),
        batch_size=1,
        compute=ray.data.ActorPoolStrategy(size=workers),
        num_cpus=1,
    )
    yield from (row["done"] for row in data.iter_rows())
