"""What several test files share."""

import contextlib
import functools
import gc
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import Phase, settings

LONG = 80  # characters of a value in the name of a test
# No page of a test lives long enough to make up for optimised scripts, or to need its memory back: a page opens with a
# twentieth less processor time where the garbage collector waits for 128 MB.
BRIEF = (
    "--no-opt --no-maglev --no-flush-bytecode --single-threaded-gc --min-semi-space-size=128 "
    "--max-semi-space-size=128 --initial-old-space-size=1024"
)
EMPTY = "/_stcore/health"  # an address of the server without a page
# A node of Ray that is killed counts as dead after 2 checks that fail at once. One that is only slow has 30 s for each.
DEAD = {
    "health_check_period_ms": 500,
    "health_check_initial_delay_ms": 1000,
    "health_check_failure_threshold": 2,
    "health_check_timeout_ms": 30_000,
}
# The suite tries the same inputs in each run, so that a change does not fail for what another one left, and tells of
# the first failing input as it is: to look for a smaller one can take 5 minutes. CONTRIBUTING.md says when to choose
# another of these by --hypothesis-profile. Nothing is timed: a busy machine is no failure.
PROFILES = {
    "suite": dict(derandomize=True, max_examples=40, phases=(Phase.explicit, Phase.generate)),
    "shrink": dict(derandomize=True),
    "search": dict(),
}
for name, choices in PROFILES.items():
    settings.register_profile(name, deadline=None, print_blob=True, **choices)
settings.load_profile("suite")
os.environ["OMP_NUM_THREADS"] = "1"  # before torch: the models are small, and the test processes share the cores
os.environ["TORCHDYNAMO_DISABLE"] = "1"  # torch.compile takes seconds, more than it saves here
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # else a thread of Ray asks around until the end of the process
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a server that a test starts finds the project compiled, as elsewhere
sys.dont_write_bytecode = False  # nor do the test processes compile each other's modules and tests again
os.environ.pop("ATTNVIZ_DATA", None)  # no data but what a test gives
gc.disable()  # until all tests are collected: what is made until then stays


def pytest_make_parametrize_id(val, argname):
    """The name of a test says how long a long value is, and does not repeat it: processes send each other all names."""
    return f"{argname} of {len(val)}" if isinstance(val, str | bytes) and len(val) > LONG else None


def pytest_configure(config):
    """The suite sees the programs that helpers/programs.py lists: no other that a machine happens to have can help."""
    if not hasattr(config, "workerinput"):  # the processes of pytest-xdist take the PATH over
        import programs

        folder = Path(tempfile.mkdtemp(prefix="programs-"))
        config.add_cleanup(lambda: shutil.rmtree(folder))
        programs.link(folder)
        os.environ["PATH"] = str(folder)


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist starts its processes
def pytest_sessionstart(session):
    """The processes that share the tests are forks of this one; see helpers/forked_workers.py."""
    if sys.platform == "linux" and getattr(session.config.option, "numprocesses", None):
        import forked_workers

        forked_workers.begin(session)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """See helpers/schedule.py. Another --dist is as pytest-xdist has it."""
    if config.getvalue("dist") != "loadgroup":
        return None
    import schedule

    return schedule.FilesAndGroups(config, log)


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what `-m` names
def pytest_collection_modifyitems(config, items):
    """What takes long is marked, and comes first where several processes share the tests."""
    import schedule

    groups = {item: {mark.args[0] for mark in item.iter_markers("xdist_group")} for item in items}
    slow = {item for item in items if schedule.is_slow(item.path, groups[item], item.fixturenames)}
    for item in slow:
        item.add_marker("slow")
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: (schedule.rank(groups[item]), item not in slow))


def pytest_collection_finish(session):
    """The garbage collector, a tenth of the time of what only computes, looks at no module again, and more seldom.

    Streamlit's test driver reads the metadata of every installed package for every app: once is enough."""
    gc.freeze()
    gc.set_threshold(5000, 20, 20)
    gc.enable()
    if sys.platform == "linux" and session.items:
        import forked

        forked.begin()
    if "streamlit.testing.v1" in sys.modules:
        from streamlit.components.v2 import manifest_scanner

        manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)
        _wait_for_the_end_of_scripts()


def _wait_for_the_end_of_scripts():
    """Streamlit's test driver looks a thousand times a second whether the script of a page has ended, which holds the
    script up: it waits for its thread first."""
    from streamlit.testing.v1 import local_script_runner

    look = local_script_runner.require_widgets_deltas

    def wait(runner, timeout):
        runner._script_thread.join(timeout)
        look(runner, timeout)

    local_script_runner.require_widgets_deltas = wait


def pytest_sessionfinish(session):
    """Garbage is collected once more, so that its errors are shown: pytest would look at everything five times."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def chrome():
    """One headless Chromium for all tests of a process. A test that waits looks at its page every 50 ms: at every
    frame, as by default, that takes four times the processor time (a twentieth of a core). It waits a minute, not five
    seconds: a slow machine is no fault of the page."""
    import serving
    from playwright.sync_api import Page, expect

    expect.set_options(timeout=60_000)

    with pytest.MonkeyPatch.context() as patch, serving.browser(BRIEF) as chrome:
        patch.setitem(Page.wait_for_function.__kwdefaults__, "polling", 50)
        yield chrome


@pytest.fixture(scope="session")
def visitor(chrome):
    """visitor(address): the browser of one visitor of that server. A page that stays open in it keeps the scripts
    compiled for those that follow."""
    import serving

    contexts = {}

    def of(address: str):
        if address not in contexts:
            # Without motion nothing fades, which takes a fifth of a page's processor time.
            contexts[address] = chrome.new_context(viewport=serving.SCREEN, reduced_motion="reduce")
            contexts[address].set_default_timeout(60_000)
            contexts[address].new_page().goto(f"{address}{EMPTY}")
        return contexts[address]

    return of


@pytest.fixture(scope="session")
def tab(visitor):
    """with tab(address) as page: a page in the browser of that visitor, as new. The next test gets it again: a
    page in a new tab costs half as much again."""
    left = {}

    @contextlib.contextmanager
    def of(address: str):
        unused = left.setdefault(address, [])
        page = unused.pop() if unused else visitor(address).new_page()
        page.bring_to_front()
        try:
            yield page
        except BaseException:  # pytest's own ends of a test are no Exceptions
            page.close()
            raise
        _empty(page, f"{address}{EMPTY}")
        unused.append(page)

    return of


def _empty(page, address: str) -> None:
    """Leave nothing of what was done on a page."""
    import serving
    from playwright.sync_api import Error

    try:
        page.goto(address)  # of the same server: the storage of its pages is in reach
    except Error:  # the page has gone back in its history meanwhile, which ends a visit that has begun
        page.goto(address)
    page.evaluate("sessionStorage.clear(); localStorage.clear()")
    page.mouse.move(0, 0)
    page.emulate_media(
        media="null", color_scheme="null", reduced_motion="reduce", forced_colors="null", contrast="null"
    )
    page.set_viewport_size(serving.SCREEN)


def _started(make, tries: int = 5):
    """A Ray cluster. Ray gives a part of a node 15 s to start, which no setting changes; beside other tests that can be
    too little, and then the next try begins. What Ray raises is an Exception of no class of its own."""
    for _ in range(tries - 1):
        with contextlib.suppress(Exception):
            return make()
    return make()


@pytest.fixture(scope="session")
def cluster():
    """A Ray cluster of one node with one processor; whoever needs it last may end it."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_raylet_start_wait_time_s", "300")  # a busy machine is no failure
        unused = {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}  # processes
        head = {"num_cpus": 1, "_system_config": DEAD, **unused}
        cluster = _started(lambda: Cluster(initialize_head=True, head_node_args=head))
        yield cluster
        cluster.shutdown()


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """A tiny data folder."""
    import tiny

    return tiny.write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session")
def root(tmp_path_factory):
    """A folder of tiny untrained checkpoints, not to be changed."""
    import tiny

    return tiny.write_models(tmp_path_factory.mktemp("checkpoints"))


@pytest.fixture(scope="session")
def reviews(tmp_path_factory):
    """A tiny data folder of labelled sentences."""
    import tiny

    return tiny.write_reviews(tmp_path_factory.mktemp("reviews"))


@pytest.fixture(scope="session")
def taught(tmp_path_factory, reviews):
    """A folder with a classifier that the command line has trained on them, not to be changed."""
    import small_classifier

    from attnviz.__main__ import main

    folder = tmp_path_factory.mktemp("taught")
    assert main([*small_classifier.TRAIN, "--data", str(reviews), "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """family of the transformers library -> the folder of a small model of it, written once, not to be changed."""
    import families

    root, written = tmp_path_factory.mktemp("hf"), {}
    return lambda family: written.get(family) or written.setdefault(family, families.write(root / family, family))


@pytest.fixture(scope="session")
def load(folder):
    """family of the transformers library -> the model by the real path, loaded once."""
    import attnviz

    loaded = {}
    return lambda family: loaded.get(family) or loaded.setdefault(family, attnviz.load(f"hf:{folder(family)}"))
