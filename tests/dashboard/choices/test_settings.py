"""What the environment sets: the numbers are in the documentation, a wrong one stops the server at once, and a server
for strangers opens what it is told to."""

import os
import subprocess
import sys

import heads_app
import pytest
from serving import APP, ROOT, free_port

from dashboard.choices import settings
from dashboard.choices.settings import FOLDERS, HUB, OPENABLE, UPLOADS, allowed
from dashboard.server import security


@pytest.mark.parametrize("name", settings.SETTINGS)
def test_each_has_a_value_of_its_own_and_is_documented(name, monkeypatch):
    assert settings.value(name) == settings.SETTINGS[name].own
    monkeypatch.setenv("ATTNVIZ_PUBLIC", "1")
    assert settings.value(name) == settings.SETTINGS[name].public
    monkeypatch.setenv("ATTNVIZ_ALLOW", "folders,hub,uploads")  # it is public all the same
    assert settings.value(name) == settings.SETTINGS[name].public
    monkeypatch.setenv(name, " 7 ")
    assert settings.value(name) == 7 and settings.bytes_of(name) == 7 * 2**20
    rows = [
        line for line in (ROOT / "docs" / "many-people.md").read_text().splitlines() if line.startswith(f"| `{name}`")
    ]
    own, public = (f"{number:,}" for number in settings.SETTINGS[name])
    assert len(rows) == 1 and f" {own}" in rows[0] and (own == public or f"`ATTNVIZ_PUBLIC=1` {public} " in rows[0])


@pytest.mark.parametrize(
    "name, value, reason",
    [
        ("ATTNVIZ_PUBLIC", "2", "must be 0 or 1; got '2'"),
        ("ATTNVIZ_CHECKPOINTS", "/nowhere", "must be a folder; there is no folder '/nowhere'"),
        ("ATTNVIZ_LESSONS", "/nowhere", "must be a folder; there is no folder '/nowhere'"),
        (
            "ATTNVIZ_HOSTS",
            "localhost, https://example.org",
            "must list names such as attention.example.org, without https:// and without a port; "
            "got 'https://example.org'",
        ),
    ],
)
def test_a_wrong_setting_is_refused(name, value, reason, monkeypatch):
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError) as error:
        settings.check()
    assert str(error.value) == f"{name} {reason}"


@pytest.mark.parametrize(
    "origin",
    "* 'self' null example.org //example.org https: https:// https://* https://*.example.org https://a@example.org "
    "file:///x data:x https://example.org/ https://example.org/path https://example.org?x https://example.org:port "
    "https://a..b https://example.org;script-src https://example.org\nx https://[::1 http://exämple.org".split(" "),
)
def test_what_is_no_origin_frames_nothing(monkeypatch, origin):
    """Each would say more in the policy than the operator means."""
    monkeypatch.setenv("ATTNVIZ_FRAMES", f"https://moodle.example.org, {origin}")
    with pytest.raises(ValueError) as error:
        settings.check()
    assert str(error.value) == (
        f"ATTNVIZ_FRAMES must list origins such as https://moodle.example.org, without a path; got {origin!r}"
    )


def test_who_may_frame_the_page(monkeypatch):
    assert settings.frames() == [] and security.headers()["X-Frame-Options"] == "DENY"
    monkeypatch.setenv("ATTNVIZ_FRAMES", " https://Moodle.Example.org ,http://[::1]:80,,")
    assert settings.frames() == ["https://moodle.example.org", "http://[::1]:80"]
    headers = security.headers()
    assert "frame-ancestors https://moodle.example.org http://[::1]:80" in headers["Content-Security-Policy"]
    assert "X-Frame-Options" not in headers


@pytest.mark.parametrize(
    "name, value, reason",
    [
        ("ATTNVIZ_PUBLIC", "2", "ATTNVIZ_PUBLIC must be 0 or 1; got '2'"),
        ("ATTNVIZ_MECHANISMS", "x.py:X", "ATTNVIZ_MECHANISMS: there is no Python file x.py; name it as FILE.py:NAME"),
    ],
)
def test_a_server_with_a_wrong_setting_says_so_in_its_last_line_and_does_not_start(name, value, reason):
    """By then Streamlit has printed the address of the page."""
    command = [sys.executable, "-m", "streamlit", "run", str(APP), "--server.port", str(free_port())]
    done = subprocess.run(
        [*command, "--server.headless", "true"],
        env=os.environ | {name: value},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1:] == [f"attnviz does not start, so there is no page to view: {reason}"]
    assert "Traceback" not in done.stderr


def test_the_names_of_a_server(monkeypatch):
    monkeypatch.setenv("ATTNVIZ_HOSTS", " Attention.Example.org., [::2],* ,")
    assert settings.hosts() == ["attention.example.org", "[::2]", "*"]


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "many", "100001", "٣"])
def test_a_value_that_is_none(value, monkeypatch):
    monkeypatch.setenv(settings.MEMORY, value)
    with pytest.raises(ValueError) as error:
        settings.check()
    assert str(error.value) == f"ATTNVIZ_MEMORY_MB must be a whole number from 1 to 100,000; got {value!r}"


@pytest.mark.parametrize(
    ("public", "named", "wanted"),
    [
        ("", "", OPENABLE),
        ("0", "hub", OPENABLE),
        ("1", "", frozenset()),
        ("1", "hub", {HUB}),
        (" 1 ", " uploads , folders,", {UPLOADS, FOLDERS}),
    ],
)
def test_by_the_environment(public, named, wanted, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_PUBLIC", public)
    monkeypatch.setenv("ATTNVIZ_ALLOW", named)
    assert allowed() == wanted


@pytest.mark.parametrize(
    ("public", "named", "message"),
    [
        ("yes", "", "ATTNVIZ_PUBLIC must be 0 or 1; got 'yes'"),
        ("1", "hub,all", "ATTNVIZ_ALLOW must list some of folders, hub, uploads; got 'all'"),
    ],
)
def test_a_setting_that_is_none(public, named, message, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_PUBLIC", public)
    monkeypatch.setenv("ATTNVIZ_ALLOW", named)
    with pytest.raises(ValueError) as error:
        allowed()
    assert str(error.value) == message


@pytest.fixture
def tiny_models(root, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(root))


def messages(page) -> list[str]:
    return [box.value for box in (*page.error, *page.info)]


@pytest.mark.usefixtures("tiny_models")
def test_a_public_server_offers_the_trained_models_alone(monkeypatch):
    monkeypatch.setenv("ATTNVIZ_PUBLIC", "1")
    page = heads_app.run(model="own model", own=str(ROOT))
    options = page.selectbox(key="model").options
    assert options and not {"A Hugging Face model", "A saved trace"} & set(options)
    assert not [field for field in page.text_input if field.key == "own"]


@pytest.mark.usefixtures("tiny_models")
@pytest.mark.parametrize("name", [str(ROOT), "checkpoints", "~", "../attnviz", "\\\\server\\share"])
def test_names_of_the_hub_alone_open_no_folder(name, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_PUBLIC", "1")
    monkeypatch.setenv("ATTNVIZ_ALLOW", "hub")
    monkeypatch.chdir(ROOT)
    page = heads_app.run(model="A Hugging Face model", own=name)
    assert page.selectbox(key="model").value == "own model"
    assert messages(page) == ["This server opens models by their names on the Hugging Face hub, and no folders."]


@pytest.mark.usefixtures("tiny_models")
def test_folders_alone_ask_no_hub(monkeypatch):
    monkeypatch.setenv("ATTNVIZ_PUBLIC", "1")
    monkeypatch.setenv("ATTNVIZ_ALLOW", "folders")
    page = heads_app.run(model="A Hugging Face model", own="openai-community/gpt2")
    assert messages(page) == ["This server opens models from folders only, not from the Hugging Face hub."]
    assert not [button for button in page.button if button.key == "look_up"]


@pytest.mark.parametrize(
    ("public", "named", "method", "problem"),
    [
        ("0", "", "PUT", None),
        ("1", "", "PUT", "this server takes no files."),
        ("1", "", "DELETE", "this server takes no files."),
        ("1", "uploads", "PUT", None),
        ("1", "", "GET", None),
    ],
)
def test_where_no_uploads_are_allowed_the_server_refuses_them_whatever_the_page_shows(
    public, named, method, problem, monkeypatch
):
    monkeypatch.setenv("ATTNVIZ_PUBLIC", public)
    monkeypatch.setenv("ATTNVIZ_ALLOW", named)
    headers = [(b"host", b"localhost:8501"), (b"origin", b"http://localhost:8501")]
    scope = {"type": "http", "method": method, "path": "/_stcore/upload_file/a/b", "headers": headers}
    refusal = security.Guard(None)._refusal(scope)
    assert (refusal and refusal.problem) == problem
