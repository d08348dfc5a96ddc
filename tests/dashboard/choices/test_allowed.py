"""What visitors may open on a server for strangers."""

import heads_app
import pytest
from serving import ROOT

from dashboard.server import security
from dashboard.choices.allowed import ALL, FOLDERS, HUB, UPLOADS, allowed


@pytest.mark.parametrize(
    ("public", "named", "wanted"),
    [
        ("", "", ALL),
        ("0", "hub", ALL),
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


@pytest.fixture(autouse=True)
def tiny_models(root, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(root))


def said(page) -> list[str]:
    return [box.value for box in (*page.error, *page.info)]


def test_a_public_server_offers_the_trained_models_alone(monkeypatch):
    monkeypatch.setenv("ATTNVIZ_PUBLIC", "1")
    page = heads_app.run(model="own model", own=str(ROOT))
    options = page.selectbox(key="model").options
    assert options and not {"A Hugging Face model", "A saved trace"} & set(options)
    assert not [field for field in page.text_input if field.key == "own"]


@pytest.mark.parametrize("name", [str(ROOT), "checkpoints", "~", "../attnviz", "\\\\server\\share"])
def test_names_of_the_hub_alone_open_no_folder(name, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_PUBLIC", "1")
    monkeypatch.setenv("ATTNVIZ_ALLOW", "hub")
    monkeypatch.chdir(ROOT)
    page = heads_app.run(model="A Hugging Face model", own=name)
    assert page.selectbox(key="model").value == "own model"
    assert said(page) == ["This server opens models by their names on the Hugging Face hub, and no folders."]


def test_folders_alone_ask_no_hub(monkeypatch):
    monkeypatch.setenv("ATTNVIZ_PUBLIC", "1")
    monkeypatch.setenv("ATTNVIZ_ALLOW", "folders")
    page = heads_app.run(model="A Hugging Face model", own="openai-community/gpt2")
    assert said(page) == ["This server opens models from folders only, not from the Hugging Face hub."]
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
