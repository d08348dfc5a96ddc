"""deploy/nginx.conf with the real nginx, two real servers and a real browser: visitors stay with their server, and come
back to the same view when it is lost."""

import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from http.client import HTTPResponse

import other_pairs
import programs
import pytest
import serving
import tiny

DEPLOY = serving.ROOT / "deploy"
NGINX = programs.path_of(programs.NGINX)
VIEW = "?text=A+dog+runs+in+the+snow."
pytestmark = [
    pytest.mark.skipif(NGINX is None, reason="nginx is not installed"),
    pytest.mark.xdist_group("nginx"),
]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]


class Site:
    """nginx before two servers. pids : port of a server -> its process."""

    def __init__(self, port, folder, pids):
        self.address, self.folder, self.pids = f"http://localhost:{port}", folder, pids

    def get(self, path="/_stcore/health", cookie="", **headers) -> HTTPResponse:
        request = urllib.request.Request(self.address + path, headers=headers | ({"Cookie": cookie} if cookie else {}))
        return urllib.request.urlopen(request, timeout=20)

    def cookies(self, cookie="") -> list[str]:
        """What nginx has the browser keep; Streamlit's own cookie is another."""
        headers = self.get(cookie=cookie).headers.get_all("Set-Cookie", [])
        return [entry for entry in headers if entry.startswith("attnviz_server=")]

    def served(self) -> list[tuple[str, str]]:
        """Visitor's number and port of the server of each request so far, as nginx has written them."""
        time.sleep(0.2)
        return re.findall(r"^(\w+) .*?:(\d+)$", (self.folder / "access.log").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nginx")
    models = other_pairs.write(tiny.write_models(folder / "models"))
    public = {"ATTNVIZ_PUBLIC": "1", "ATTNVIZ_CHECKPOINTS": str(models)}  # the first as compose.yaml has it
    with serving.running(**public) as (first, first_pid), serving.running(**public) as (second, second_pid):
        pids = {address.rsplit(":", 1)[1]: pid for address, pid in ((first, first_pid), (second, second_pid))}
        servers = "".join(f"server 127.0.0.1:{port} max_fails=1 fail_timeout=5s;\n" for port in pids)
        (folder / "replicas.conf").write_text(servers)
        port, written = free_port(), (DEPLOY / "nginx.conf").read_text()
        log = 'log_format test "$visitor $upstream_addr"; access_log access.log test;'
        for old, new in (("listen 8080;", f"listen 127.0.0.1:{port};"), ("access_log off;", log)):
            assert old in written
            written = written.replace(old, new)
        (folder / "nginx.conf").write_text(written)
        command = [NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf")]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            serving.wait(f"http://localhost:{port}", process)
            yield Site(port, folder, pids)
        finally:
            process.terminate()
            process.wait(20)


@pytest.fixture
def page(site, tab):
    with tab(site.address) as page:
        yield page


def test_the_configuration_as_it_ships_is_valid(tmp_path):
    """But for the names of its servers, which only compose knows."""
    (tmp_path / "nginx.conf").write_text((DEPLOY / "nginx.conf").read_text())
    replicas = (DEPLOY / "replicas.conf").read_text()
    assert len(re.findall(r"^server page-\d:8501 ", replicas, re.MULTILINE)) == 2
    (tmp_path / "replicas.conf").write_text(re.sub(r"page-\d", "127.0.0.1", replicas))
    command = [NGINX, "-t", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_visitor_gets_one_cookie_and_stays_with_one_server(site):
    cookies = []
    for _ in range(12):
        (cookie,) = site.cookies()
        assert re.fullmatch(r"attnviz_server=\w{32}; Path=/; HttpOnly; SameSite=Lax", cookie)
        cookies.append(cookie.split(";")[0])
    assert len(set(cookies)) == 12
    for cookie in cookies:
        for _ in range(3):
            assert site.cookies(cookie) == []
    servers = {}
    for visitor, port in site.served():
        servers.setdefault(visitor, set()).add(port)
    mine = [servers[cookie.split("=")[1]] for cookie in cookies]
    assert all(len(ports) == 1 for ports in mine)
    assert set().union(*mine) == set(site.pids)  # 12 visitors, two servers: both have some (but once in 2048 runs)


def test_the_page_refuses_other_names_behind_nginx_too(site):
    with pytest.raises(urllib.error.HTTPError) as error:
        site.get("/", Host="elsewhere.example")
    assert error.value.code == 403


def test_a_public_site_takes_no_files_and_offers_neither_folders_nor_names_of_the_hub(site, page):
    request = urllib.request.Request(site.address + "/_stcore/upload_file/a/b", b"x", method="PUT")
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(request, timeout=20)
    assert (error.value.code, error.value.read()) == (403, b"Refused: this server takes no files.\n")
    page.goto(f"{site.address}/heads?model=A+Hugging+Face+model&own=%2F")
    page.locator(".st-key-chart-overview .main-svg").first.wait_for(timeout=60_000)
    page.locator(".st-key-model [role=combobox], .st-key-model input").first.click()
    page.get_by_role("option").first.wait_for(timeout=60_000)
    options = page.get_by_role("option").all_inner_texts()
    assert len(options) > 1 and not {"A Hugging Face model", "A saved trace"} & set(options)
    page.goto(f"{site.address}/many?show=Bahdanau&from=A+file+on+this+machine&path=%2Fetc%2Fpasswd")
    page.get_by_text(re.compile(r": 25 of \d+ sentences")).first.wait_for(timeout=60_000)
    offered = page.locator(".st-key-from [role=radio], .st-key-from button").all_inner_texts()
    assert [words for words in offered if words.strip()] == ["Sentences of this project", "Pasted"]
    assert "passwd" not in page.locator("body").inner_text()


def test_a_lost_server_s_visitor_comes_back_to_the_same_view(site, page):
    """The last test: it kills a server."""
    page.goto(site.address + VIEW)
    page.locator(".said").first.wait_for(timeout=60_000)
    before, translation = page.url, page.locator(".said").first.inner_text()
    (cookie,) = (entry["value"] for entry in page.context.cookies() if entry["name"] == "attnviz_server")
    ports = {port for visitor, port in site.served() if visitor == cookie}
    assert len(ports) == 1  # the WebSocket too
    os.kill(site.pids[ports.pop()], signal.SIGKILL)
    page.goto(before)
    page.locator(".said").first.wait_for(timeout=60_000)
    assert page.locator(".said").first.inner_text() == translation
    assert page.locator(".st-key-text input").input_value() == "A dog runs in the snow."
    assert page.url == before
