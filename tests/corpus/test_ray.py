"""The same run on a Ray cluster of two nodes on this machine, one of which is killed in the middle."""

import errno
import socket
import threading

import pytest
import tiny
from corpora_files import same_files, write_lines

from attnviz import corpus

SHARD = 4


@pytest.mark.xdist_group("ray")
def test_a_node_that_is_killed_loses_nothing_and_repeats_nothing(root, cluster, tmp_path, monkeypatch):
    import ray  # takes a second, which a test process without a cluster need not spend

    monkeypatch.delenv("RAY_USAGE_STATS_ENABLED")  # as a person has it
    lines = write_lines(tmp_path / "in.txt", [english for english, _ in tiny.sentences(48, 1)])
    settings = corpus.CorpusConfig(("en-fr/bahdanau",), str(lines), beam=8, root=str(root), shard=SHARD)
    list(corpus.run(settings, tmp_path / "alone"))
    try:
        second = cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        ray.init(cluster.address, log_to_driver=False)
        killed = False
        for progress in corpus.run(settings, tmp_path / "cluster", workers=2, ray=cluster.address):
            busy = ray.available_resources().get("CPU", 0) == 0  # an actor on each node: there is a processor on each
            if progress.done and busy and not killed:
                killed = True
                cluster.remove_node(second, allow_graceful=False)
                cluster.add_node(num_cpus=1)
        assert killed and progress.done == progress.total == len(lines.read_text().splitlines())
    finally:
        ray.shutdown()
    same_files(tmp_path / "alone", tmp_path / "cluster")
    assert not [thread.name for thread in threading.enumerate() if "usage" in thread.name]  # nothing is sent


@pytest.mark.parametrize("form", ["127.0.0.1:{}", "ray://127.0.0.1:{}"])
def test_an_address_at_which_nothing_listens_is_refused_at_once(form):
    """Ray itself would ask for more than a minute."""
    pytest.importorskip("ray")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # and does not listen
        address = form.format(free.getsockname()[1])
        with pytest.raises(ValueError) as error:
            corpus.join_cluster(address)
    assert str(error.value) == (
        f"there is no Ray cluster at {address!r}: nothing answers there ([Errno {errno.ECONNREFUSED}] "
        "Connection refused). Give the address that `ray start --head` printed, or start a cluster with it"
    )
