"""The server's start: what it sends first, how its sockets are set, and how the messages of a page leave."""

import asyncio
import gc
import hashlib
import os
import re
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from plotly.offline import get_plotlyjs_version
from serving import ROOT
from starlette.applications import Starlette
from starlette.middleware.gzip import GZipMiddleware
from starlette.testclient import TestClient
from streamlit import config
from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.runtime import app_session
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner import ScriptRunnerEvent
from streamlit.watcher.polling_path_watcher import PollingPathWatcher
from streamlit.web.server.starlette.starlette_static_routes import create_streamlit_static_handler

from dashboard import browser
from dashboard.server import connections, index_page, warm_up


@pytest.fixture(scope="module")
def client():
    return TestClient(Starlette(routes=index_page.routes))


def test_the_index_is_streamlits_with_plotly_and_the_stops_of_back_at_the_end_of_its_head(client):
    outside, body, inside = client.get("/").text.partition("<body>")
    page = outside + body + inside.removeprefix(index_page.STYLE)
    styles, scripts = index_page.JAPANESE + index_page.GREY, index_page.SCRIPT + index_page.OWN_SCRIPT
    before, after = page.split(styles + index_page.PRELOAD + scripts + index_page.STOPS)
    assert before + after == index_page.INDEX.read_text(encoding="utf-8")
    assert after.startswith("</head>")


def test_the_scripts_that_are_loaded_ahead_are_streamlits():
    """Of each element one file, and what it imports, which the index page does not ask for itself."""
    files = re.findall(r'<link rel="modulepreload" href="\./static/js/([^"]+)">', index_page.PRELOAD)
    for name in index_page.SHOWN:
        assert [file.split(".")[0] for file in files].count(name) == 1
    assert "serialization" in {file.split(".")[0] for file in files}  # BidiComponent imports it
    assert len(files) == len(set(files))
    for file in files:
        assert (index_page.INDEX.parent / "static" / "js" / file).is_file()
        assert file not in index_page.INDEX.read_text(encoding="utf-8")


def test_scripts_of_streamlit_are_sent_at_once_and_as_streamlit_sends_them():
    """Large ones, and what is no script, are left to Streamlit."""
    streamlits = create_streamlit_static_handler(str(index_page.INDEX.parent), None)
    ours, theirs = TestClient(index_page.Scripts(streamlits)), TestClient(streamlits)
    index = index_page.INDEX.read_text(encoding="utf-8")
    files = re.findall(r'"modulepreload"[^>]* href="\./([^"]+)">', index + index_page.PRELOAD)
    at_once = [file for file in files if "etag" not in ours.get(f"/{file}").headers]  # Streamlit says when it changed
    assert len(files) > 60 and len(at_once) >= 0.9 * len(files)
    for path in (f"/{at_once[0]}", f"/{at_once[-1]}", "/static/js/none.js", "/static/js/..%2f..%2findex.html"):
        answer, expected = ours.get(path), theirs.get(path)
        assert (answer.status_code, answer.content) == (expected.status_code, expected.content)
        assert answer.headers.get("cache-control") == expected.headers.get("cache-control")
    assert ours.get(f"/{at_once[0]}").headers["content-type"] == "text/javascript; charset=utf-8"
    assert "etag" in ours.head(f"/{at_once[0]}").headers


def test_an_address_that_is_no_page_has_the_styles_and_scripts_of_the_pages_too(client):
    """Streamlit says there that it found no such page, and shows the first one."""
    streamlits = create_streamlit_static_handler(str(index_page.INDEX.parent), None)
    packed = GZipMiddleware(streamlits, minimum_size=500)  # as Streamlit's own server has it
    ours = TestClient(index_page.OtherAddresses(packed), follow_redirects=False)
    for path in ("/nothing-here", "/index.html"):
        assert ours.get(path).text == client.get("/heads").text
    answer = ours.get("/inside/a/x%2Fy?text=A+dog")
    assert (answer.status_code, answer.headers["location"]) == (307, "../../../y?text=A+dog")
    assert ours.head("/nothing-here").status_code == 200
    for path in ("/favicon.png", "/static/js/none.js"):  # as Streamlit sends it
        theirs = TestClient(streamlits).get(path)
        answer = ours.get(path)
        assert (answer.status_code, answer.content) == (theirs.status_code, theirs.content)


def test_the_browser_gets_the_plotly_that_figures_are_made_for(client):
    [source] = re.findall(r'src="\./(.*)"', index_page.SCRIPT)
    answer = client.get(f"/{source}", headers={"Accept-Encoding": "gzip"})
    assert source == f"{index_page.PLOTLY.name}?v={hashlib.sha256(answer.content).hexdigest()[:16]}"
    assert answer.headers["content-encoding"] == "identity"
    licence, _, whole = index_page.PLOTLY.read_text(encoding="utf-8").partition("(\n function(root, factory) {")
    inside = answer.text.removeprefix(licence)
    assert inside.startswith('"use strict";var Plotly=') and inside.endswith("window.Plotly = Plotly;\n")
    assert whole.partition("=> {\n")[2] == inside + "return Plotly;\n}));"
    assert f"plotly.js (cartesian - minified) v{get_plotlyjs_version()}\n" in answer.text[:200]


def test_the_browser_gets_our_scripts_once_and_keeps_no_other_version(client):
    [address] = re.findall(r'src="\./(.*?)"', index_page.OWN_SCRIPT)
    answer = client.get(f"/{address}")
    assert answer.text == browser.loaded() and answer.headers["cache-control"] == "public, max-age=86400"
    assert client.get("/attnviz.js?v=0").headers["cache-control"] == "no-store"
    for name in (Path(browser.__file__).parent / "scripts").glob("*.js"):
        if name.name not in ("arguments.js", "drag.js", "history.js"):  # of components, and in the page itself
            assert browser.script(name.name) in answer.text


def test_the_first_charts_are_drawn_before_pandas_is_imported():
    """Else the browser waits for .2 s."""
    code = (
        "import sys, dashboard.server.index_page\n"
        "from dashboard.session import caches\n"
        "from dashboard.compare import pictures, scene, view\n"
        "from dashboard.compare.scene import CompareChoices\n"
        "choices = CompareChoices('The black dog.', ('bahdanau', 'transformer'), 'en-fr')\n"
        "for column in scene.compose(choices, caches.trace).columns:\n"
        "    view._heatmap(column, None, False, None, '')\n"
        "print('pandas' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True) == "False\n"


def test_the_model_process_starts_before_numpy_is_imported():
    """It takes longest to start."""
    code = "import sys, dashboard.server.warm_up; print({'numpy', 'pandas', 'torch'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True) == "set()\n"


def test_the_process_of_the_page_imports_no_torch_before_the_first_picture():
    """It takes a second and 200 MB; the models have a process of their own."""
    script = "import sys, dashboard.compare.sidebar, dashboard.compare.view; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True).returncode == 0


def test_settings_are_read_at_the_start_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(PollingPathWatcher, "_check_if_path_changed", PollingPathWatcher._check_if_path_changed)
    executor = ThreadPoolExecutor(1)  # of its own: what is asked of it last is done last
    monkeypatch.setattr(PollingPathWatcher, "_executor", executor)
    warm_up.leave_settings_alone()
    settings, changed = tmp_path / "config.toml", []
    settings.write_text("a = 1")
    PollingPathWatcher(str(settings), changed.append)
    settings.write_text("a = 23")
    os.utime(settings, (0, 2**31))  # surely later
    executor.submit(len, "").result()  # after the first look
    executor.shutdown()
    assert changed == []


@pytest.mark.parametrize("family, address", [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_answers_are_sent_at_once(family, address):
    try:
        listener = socket.create_server((address, 0), family=family)
    except OSError:
        pytest.skip(f"this machine has no {address}")
    with listener:
        held = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 0
        warm_up.send_at_once()
        if held is not None:
            assert len(os.listdir("/proc/self/fd")) == held  # nothing is left open
        with socket.create_connection(listener.getsockname()[:2]) as client, listener.accept()[0] as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
            assert client.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 0  # not one that listens: left alone


@pytest.mark.parametrize("problem", [None, ImportError("no torch")])
def test_after_the_imports_everything_is_as_before(problem):
    before = sys.getswitchinterval()
    assert gc.isenabled()
    with suppress(ImportError), warm_up._importing():
        assert not gc.isenabled() and sys.getswitchinterval() < before
        if problem:
            raise problem
    assert gc.isenabled() and sys.getswitchinterval() == before
    gc.unfreeze()  # the other tests' garbage is no garbage until then


def test_a_cluster_that_is_not_there_is_one_line_on_the_console():
    pytest.importorskip("ray")
    code = "from dashboard.server import warm_up; warm_up.warm()"
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=os.environ | {"ATTNVIZ_RAY": "foo"}, capture_output=True, text=True
    )
    assert ended.returncode == 0 and "Traceback" not in ended.stderr
    assert ended.stderr.splitlines()[-1] == "attnviz: there is no Ray cluster at 'foo': Invalid address format: foo"


class Written(list):
    """A transport, of what it is given to send."""

    closed = False
    write = list.append

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


def in_a_loop(work):
    """In a thread of its own: where browser tests ran before in this process, its main thread has a loop already."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def test_what_is_written_to_a_browser_at_once_is_sent_at_once():
    async def work():
        first, second = Written(), Written()
        for transport in map(connections.Packets, (first, second)):
            transport.write(b"a")
            transport.write(b"b")
        before = list(first), list(second)
        transport.close()
        while not first:
            await asyncio.sleep(connections.PACKET)
        return before, first, second, second.closed, first.closed

    assert in_a_loop(work()) == (([], []), [b"ab"], [b"ab"], True, False)


class Session:
    """What the messages of a page need of Streamlit's session."""

    def __init__(self, events: list):
        self._scriptrunner, self._events = "this run", events
        self._event_loop = asyncio.get_running_loop()
        self._browser_queue = self
        self.enqueue = events.append
        self._message_enqueued_callback = lambda: events.append("wake")
        self._call_soon_on_event_loop = self._event_loop.call_soon_threadsafe


def test_the_messages_of_a_run_leave_together_and_before_its_end(monkeypatch):
    """Of a run that was given up none leaves, as in Streamlit. An end that cannot be handled takes no message with it,
    and is reported."""

    def handle(session, sender, event, *_, **details):
        session.enqueue((event, details))
        raise RuntimeError("no end")

    monkeypatch.setattr(AppSession, "_on_scriptrunner_event", None)
    monkeypatch.setattr(AppSession, "_handle_scriptrunner_event_on_event_loop", handle)
    connections.gather()
    message, end = ScriptRunnerEvent.ENQUEUE_FORWARD_MSG, ScriptRunnerEvent.FRAGMENT_STOPPED_WITH_SUCCESS

    async def work():
        events, reported = [], []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(str(context["exception"])))
        session = Session(events)
        for sender, number in (("this run", 1), ("this run", 2), ("a run before", 3), ("this run", 4)):
            AppSession._on_scriptrunner_event(session, sender, event=message, forward_msg=number)
        AppSession._on_scriptrunner_event(session, "this run", event=end, run_descriptor="run")
        AppSession._on_scriptrunner_event(session, "this run", event=message, forward_msg=5)
        async with asyncio.timeout(10):
            while events[-2:] != [5, "wake"]:
                await asyncio.sleep(connections.TOGETHER)
        return events, reported

    events = [1, 2, 4, (end, {"run_descriptor": "run"}), 5, "wake"]
    assert in_a_loop(work()) == (events, ["no end"])


def test_the_theme_of_the_configuration_is_worked_out_once_and_is_streamlits(monkeypatch):
    sections = []
    options = {"theme": {"baseRadius": "8px", "font": "serif"}, "theme.light": {"primaryColor": "#123456"}}
    monkeypatch.setattr(
        config, "get_options_for_section", lambda name: [sections.append(name), options.get(name, {})][1]
    )
    monkeypatch.setattr(app_session, "_populate_theme_msg", app_session._populate_theme_msg)

    def theme() -> bytes:
        message = CustomThemeConfig()
        app_session._populate_theme_msg(message)
        for name, part in (("light", message.light), ("dark", message.dark), ("sidebar", message.sidebar)):
            app_session._populate_theme_msg(part, f"theme.{name}")
        return message.SerializeToString(deterministic=True)

    streamlits = theme()
    connections.remember_theme()
    sections.clear()
    assert [theme(), theme()] == [streamlits] * 2 and b"123456" in streamlits
    assert sorted(sections) == ["theme", "theme.dark", "theme.light", "theme.sidebar"]
