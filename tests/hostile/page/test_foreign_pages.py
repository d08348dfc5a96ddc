"""A page from elsewhere neither drives nor reads nor frames this server, and makes it tell nobody where it is."""

import http.server
import logging
import re
import threading

import pytest
from offline_server import offline_server

from dashboard.server import index_page, security

pytestmark = pytest.mark.xdist_group("hostile-server")
SCRIPT = min(index_page.STREAMLITS)
FOREIGN = [
    "evil.example",
    "evil.example:8501",
    "localhost.evil.example",
    "192.168.0.7",
    "localhost@evil.example",
    "a b",
    "",
]


@pytest.fixture(scope="module")
def port(watched):
    return watched.host.partition(":")[2]


@pytest.mark.parametrize("host", [*FOREIGN, None])
@pytest.mark.parametrize("path", ["/", "/heads", "/_stcore/health", "/media/x", SCRIPT])
def test_a_name_that_is_not_ours_is_refused(watched, host, path):
    answer = watched.ask(path, Host=host)
    assert answer.status in (400, 403), answer.text[:200]  # 400: by the HTTP parser, for what is no name
    assert "<html" not in answer.text and answer.text != "ok"


def test_the_refusal_says_what_to_do(watched):
    assert watched.ask("/", Host="evil.example:80").text == (
        "Refused: this server answers requests for 127.0.0.1, [::1], localhost, and this one is for 'evil.example:80'. "
        "Whoever runs the server can add a name with the environment variable ATTNVIZ_HOSTS.\n"
    )
    assert len(watched.ask("/", Host="e" * 5000).text) < 400


@pytest.mark.parametrize("name", ["localhost", "LOCALHOST", "localhost.", "127.0.0.1", "[::1]"])
def test_names_of_this_machine(watched, port, name):
    assert watched.ask("/_stcore/health", Host=f"{name}:{port}").text == "ok"
    assert watched.open_socket(Host=f"{name}:{port}", Origin=f"http://{name}:{port}") == 101


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "https://evil.example:8501",
        "http://localhost",
        "http://localhost:1",
        "http://[::1]:9",
        "http://0.0.0.0:8501",
        "http://localhost:8501@evil.example",
        "null",
        "file://",
        "",
        "http://[",
        "OWN#",
        "OWN?",
        "OWN/",
        "OWN,http://evil.example",
        "OWN.evil.example",
        "http://evil.example#OWN",
        "ws://HOST",
        "http://@HOST",
        "HOST",
    ],
)
def test_a_socket_is_for_our_own_pages(watched, origin):
    """Streamlit asks the internet for this machine's address before it refuses: the watched server would have seen
    it."""
    origin = origin.replace("OWN", watched.address).replace("HOST", watched.host)
    assert watched.open_socket(Origin=origin) == 403
    assert watched.left == ""


def test_a_socket_opens_for_our_page_and_for_programs(watched):
    assert watched.open_socket(Origin=watched.address) == 101
    assert watched.open_socket() == 101
    assert watched.open_socket(Host="evil.example", Origin="http://evil.example") == 403


def test_a_foreign_page_uploads_nothing(watched):
    answer = watched.ask("/_stcore/upload_file/a/b", "PUT", b"x", Origin="http://evil.example")
    assert answer.status == 403 and "not a page of" in answer.text


def test_what_every_answer_says(watched):
    assert watched.ask(SCRIPT).headers["ETag"] is None  # it is not Streamlit that sends it
    for path in ("/", "/heads", "/_stcore/health", "/nothing-here", SCRIPT):
        headers = watched.ask(path).headers
        rules = dict(rule.split(" ", 1) for rule in headers["Content-Security-Policy"].split("; "))
        assert headers["X-Frame-Options"] == "DENY" and rules["frame-ancestors"] == "'none'"
        assert "unsafe-inline" not in rules["script-src"] and rules["default-src"] == "'self'"
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "same-origin"
        assert headers["Access-Control-Allow-Origin"] is None


@pytest.fixture(scope="module")
def serve_elsewhere():
    """A page of another origin: serve(html) -> its address."""
    servers = []

    def serve(html: str) -> str:
        class Page(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(html.encode())

            def log_message(self, *_):
                pass

        servers.append(http.server.ThreadingHTTPServer(("localhost", 0), Page))
        threading.Thread(target=servers[-1].serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def operated(tmp_path_factory, serve_elsewhere):
    """A server whose operator has added names, and pages that may frame it -> it, and the address of such a page."""
    lesson = serve_elsewhere("<body></body>")
    names = {"ATTNVIZ_HOSTS": "Attn.example.org, 10.0.0.5", "ATTNVIZ_FRAMES": f"https://moodle.example.org, {lesson}"}
    with offline_server(tmp_path_factory.mktemp("operated") / "left.log", **names) as server:
        yield server, lesson


def test_the_operator_adds_names_and_pages_that_frame_this_one(operated):
    server, lesson = operated
    assert server.ask("/_stcore/health", Host="attn.example.org").text == "ok"
    assert server.ask("/_stcore/health", Host="10.0.0.5:8501").text == "ok"
    assert server.ask("/_stcore/health").text == "ok"
    assert server.ask("/", Host="evil.example").status == 403
    # A proxy that does not pass the name on: the page is at the operator's name, and the request for localhost.
    assert server.open_socket(Origin="https://attn.example.org") == 101
    assert server.open_socket(Origin="https://evil.example", Host="attn.example.org") == 403
    headers = server.ask("/").headers
    assert f"frame-ancestors https://moodle.example.org {lesson}" in headers["Content-Security-Policy"]
    assert headers["X-Frame-Options"] is None  # it knows no origins
    assert server.left == ""


# "Embed" is clicked as soon as it is in the page: a button that can be seen does something.
CLICK_AT_ONCE = """new MutationObserver((_, observer) => {
  const button = document.querySelector(".copy-link[data-embeds]");
  if (button) { observer.disconnect(); button.click(); }
}).observe(document, { childList: true, subtree: true });"""


@pytest.fixture(scope="module")
def copied(operated, chrome, tmp_path_factory):
    """What a teacher gets on the page: the HTML of two frames, of the view and of its bars alone, and a file."""
    (server, _), file = operated, tmp_path_factory.mktemp("given") / "attnviz.html"
    page = chrome.new_page()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server.address)
    page.add_init_script(CLICK_AT_ONCE)
    page.goto(server.address)
    codes = []
    for name in (None, re.compile("^Copy the HTML of a frame with step 1 ")):
        if name:
            page.get_by_role("button", name=name).first.click()
        page.get_by_text("Copied, for this computer only").wait_for()
        codes.append(page.evaluate("navigator.clipboard.readText()"))
        page.get_by_text("Copied, for this computer only").wait_for(state="detached")
    with page.expect_download() as download:
        page.get_by_role("button", name="This page as one HTML").click()
    download.value.save_as(file)
    page.close()
    return *codes, file


def page_with_frames(chrome, address: str, *codes: str):
    """A page at an address that holds HTML, as an author pastes it -> the page, which has loaded its frames."""
    page = chrome.new_page(viewport={"width": 1100, "height": 800})
    page.goto(address)
    page.set_content("".join(codes), wait_until="load")
    return page


def test_in_a_frame_are_the_maps_or_one_panel_as_high_as_they_are(operated, copied, serve_elsewhere, chrome):
    server, lesson = operated
    page = page_with_frames(chrome, lesson, *copied[:2])
    whole, bars = page.frames[1:]
    whole.locator(".st-key-maps .js-plotly-plot").first.wait_for()
    bars.locator(".st-key-chart-step .js-plotly-plot").first.wait_for()
    for hidden in ("[data-testid=stSidebar]", ".stAppHeader", "nav.pages", ".st-key-text", ".copy-link"):
        assert whole.locator(hidden).locator("visible=true").count() == 0, hidden
    for shown, place in ((whole, 0), (bars, 1)):
        assert shown.get_by_role("button", name="Copy the HTML").count() == 0
        own = shown.locator(".stMainBlockContainer")
        for _ in range(50):  # the frame below is out of sight
            own_height = own.bounding_box()["height"]
            frame_height = page.locator("iframe").nth(place).bounding_box()["height"]
            if abs(own_height - frame_height) < 2 and own_height > 250:
                break
            page.wait_for_timeout(100)
        assert abs(own_height - frame_height) < 2 and own_height > 250
    for part, in_bars in (("step", True), ("chart-step", True), ("maps", False), ("chart-heatmaps .plot", False)):
        assert whole.locator(f".st-key-{part}").first.bounding_box() is not None, part
        assert (bars.locator(f".st-key-{part}").first.bounding_box() is not None) == in_bars, part
    page.close()
    page = page_with_frames(chrome, serve_elsewhere("<body></body>"), copied[0])
    refused = page.frames[1]
    assert "attnviz" not in refused.content() and refused.locator("#root").count() == 0
    page.close()
    assert server.left == ""


def test_the_file_beside_the_frame_opens_without_a_server(copied, chrome):
    page = chrome.new_page()
    page.goto(copied[2].as_uri())
    page.locator(".heatmaplayer image").first.wait_for()
    page.close()


def test_a_page_from_elsewhere_in_a_real_browser(watched, serve_elsewhere, chrome):
    """It can neither frame the page, nor open its socket, nor read its files."""
    page = chrome.new_page()
    page.goto(
        serve_elsewhere(f"""<iframe src="{watched.address}/" id="frame"></iframe><script>
      window.socket = new Promise((done) => {{
        const socket = new WebSocket("{watched.address.replace("http", "ws")}/_stcore/stream", ["streamlit"]);
        socket.onopen = () => done("open"); socket.onerror = () => done("refused");
      }});
      window.read = fetch("{watched.address}/").then((answer) => answer.text(), () => "refused");
    </script>""")
    )
    assert page.evaluate("window.socket") == "refused"
    assert page.evaluate("window.read") == "refused"
    framed = next(frame for frame in page.frames if frame != page.main_frame)
    assert "attnviz" not in framed.content() and framed.locator("#root").count() == 0
    page.close()
    assert watched.left == ""


def test_the_page_runs_no_script_that_is_not_its_own(watched, chrome):
    """The last net below escaping: markup that came through would still run nothing."""
    page = chrome.new_page()
    page.goto(f"{watched.address}/_stcore/health")
    page.evaluate(
        """document.body.innerHTML =
            '<img src="x:" onerror="window.ran = 1"><a href="javascript:window.ran = 1">x</a>'"""
    )
    page.evaluate("document.querySelector('a').click()")
    page.evaluate("document.head.append(Object.assign(document.createElement('script'), {text: 'window.ran = 1'}))")
    page.wait_for_timeout(100)
    assert page.evaluate("window.ran") is None
    page.close()


def test_a_page_on_another_port_of_the_same_name_opens_no_socket(operated):
    """The name of the operator too: another server may stand there."""
    server, _ = operated
    for name in ("localhost", "attn.example.org"):
        own = f"{name}:{server.host.partition(':')[2]}"
        assert server.open_socket(Host=own, Origin=f"http://{own}") == 101
        for port in (":1", ":80", ":8502", ""):
            assert server.open_socket(Host=own, Origin=f"http://{name}{port}") == 403


def test_nothing_is_told_about_visitors(watched):
    for path in ("metrics", "metrics?families=session_events", "script-health-check", "allowed-message-origins", ""):
        assert watched.ask(f"/_stcore/{path}").status == 404, path


def test_refused_requests_do_not_fill_the_log(caplog):
    log, sparing = logging.getLogger("attnviz"), security.Sparing(seconds=3600)

    def refuse(times):
        for number in range(times):
            log.warning("refused a request: %s", number)

    log.addFilter(sparing)
    try:
        refuse(1000)
        log.warning("something else")
        assert caplog.messages == ["refused a request: 0", "something else"]
        sparing._next.clear()
        refuse(1)
        assert caplog.messages[2:] == ["refused a request: 0 (999 more before it)"]
    finally:
        log.removeFilter(sparing)
