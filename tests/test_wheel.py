"""The package as a person installs it: built, put into an empty environment, and used outside of this project."""

import asyncio
import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
import tomllib
import zipfile
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import pytest
from client import Client
from packaging.requirements import Requirement
from packaging.version import Version
from serving import free_port, wait

import attnviz
from attnviz.models import checkpoint_files

ROOT = Path(__file__).resolve().parents[1]
LARGEST = 60e6  # bytes of the package; package indexes take 100 MB
WHOLE = {  # the models that every page and chapter needs
    *(f"reverse/{name}" for name in ("bahdanau", "luong-general", "transformer")),
    *(f"en-fr/{name}" for name in ("bahdanau", "fixed-context", "luong-general", "transformer")),
    *("sst2/self-attention", "en/writer", "shakespeare/writer"),
}
SENTENCE, OTHER = "A dog runs.", "en-de/luong-dot"  # a model whose weights are fetched
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """program(*words, **environment): the program of the package, in a folder outside of this project.

    Its environment is empty but for this package. Others come from the environment of the tests, by a .pth file.
    """
    place = tmp_path_factory.mktemp("installed")
    python = place / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / "venv"], check=True)
    site = next((place / "venv" / "lib").glob("python*/site-packages"))
    here = next(path for path in sys.path if path.endswith("site-packages"))
    (site / "others.pth").write_text(here, encoding="utf-8")
    options = ["--quiet", "--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", *options, wheel], check=True)
    alone = {name: value for name, value in os.environ.items() if not name.startswith(("ATTNVIZ", "PYTHONPATH"))}

    def program(*words, start=subprocess.run, name="attnviz", **environment):
        more = {"text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": place}
        settings = {"ATTNVIZ_DATA": str(place / "data"), "NO_PROXY": "127.0.0.1"} | environment
        return start([python.with_name(name), *words], env=alone | settings, **more)

    return program


@pytest.fixture(scope="module")
def mirror():
    """mirror(folder): the address of a server of this machine that has the files of a folder."""
    servers = []

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words):
            pass

    def serve(folder):
        handler = functools.partial(Quiet, directory=str(folder))
        servers.append(http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def test_the_package_holds_the_library_the_page_and_models_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    folders = ("attnviz/", "attnviz-")
    other = [name for name in names if not name.startswith(folders) or re.search(r"(^|/)(tests?|bench|docs)/", name)]
    assert other == [] and wheel.stat().st_size < LARGEST

    def below(folder, source):
        files = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
        left_out = {name for name in files if name.endswith((".pyc", "screenshot.png"))}
        return {f"{folder}/{name}" for name in files - left_out}

    assert below("attnviz", ROOT / "attnviz") | below("attnviz/page/dashboard", ROOT / "dashboard") <= set(names)
    assert {"attnviz/page/dashboard/.streamlit/config.toml", "attnviz/py.typed"} <= set(names)
    assert below("attnviz/page/lessons", ROOT / "docs" / "lessons") <= set(names)
    weights = {name.removeprefix("attnviz/checkpoints/") for name in names if name.endswith("model.safetensors")}
    assert weights == {f"{name}/model.safetensors" for name in WHOLE}
    cards = {name.removesuffix("/card.json") for name in names if name.endswith("/card.json")}
    assert cards == {f"attnviz/checkpoints/{name}" for name in checkpoint_files.names(checkpoint_files.ROOT)}
    licences = {name.partition("/licenses/")[2] for name in names if "/licenses/" in name}
    assert licences == {"LICENSE", "attnviz/export/fonts/LICENSE.noto-sans-jp.txt", "attnviz/plotlyjs/LICENSE.txt"}


def test_every_model_that_is_fetched_has_its_hash_on_its_card():
    for name in checkpoint_files.names(checkpoint_files.ROOT):
        card = checkpoint_files.read_card(name)
        assert name in WHOLE or re.fullmatch("[0-9a-f]{64}", card["weights_sha256"]), name


def test_the_ranges_of_the_package_hold_the_tested_releases():
    """requirements.txt names the same packages, each in a part of the package's range; what is installed is in both."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    tested = {entry.name: entry for entry in map(Requirement, (line for line in lines if not line.startswith("#")))}
    ranges = {entry.name: entry for entry in map(Requirement, PROJECT["dependencies"])}
    assert tested.keys() == ranges.keys()
    for name, entry in tested.items():
        versions = [
            Version(part.version.removesuffix(".*")) for part in entry.specifier if part.operator in (">=", "==")
        ]
        assert versions and all(version in ranges[name].specifier for version in versions), name
        release = metadata.version(name).partition("+")[0]
        assert release in entry.specifier and release in ranges[name].specifier, name


def test_the_library_is_there_without_the_page_and_weights_come_from_a_mirror_once(installed, mirror, tmp_path):
    """Who imports it and traces pays for no Streamlit. What was fetched is then there without the mirror."""
    code = f"""
import sys, attnviz
model = attnviz.load("en-fr/bahdanau")
trace = model.trace({SENTENCE!r})
print(attnviz.__file__, attnviz.__version__, trace.translation, sep="|")
print([name for name in ("streamlit", "matplotlib", "transformers", "pooch") if name in sys.modules])
import os
for address in ("", {mirror(checkpoint_files.ROOT)!r}, "http://127.0.0.1:9"):
    os.environ["ATTNVIZ_MIRROR"] = address
    try:
        print(attnviz.load({OTHER!r}).trace({SENTENCE!r}).translation)
    except ValueError as error:
        print(error)
"""
    data = {"ATTNVIZ_DATA": str(tmp_path)}
    ended = installed("-c", code, name="python", **data)
    assert ended.returncode == 0, ended.stderr
    first, modules, alone, *translations = ended.stdout.splitlines()
    file, version, translation = first.split("|")
    assert "site-packages/attnviz" in file and Path(file).is_relative_to(ROOT) is False
    assert (version, translation, modules) == (attnviz.__version__, "Un chien court.", "[]")

    assert alone == (
        f"the weights of {OTHER} are not part of the installed package; set ATTNVIZ_MIRROR to the address of a copy of "
        "the project's folder checkpoints, such as https://example.org/checkpoints, or ATTNVIZ_CHECKPOINTS to "
        "that folder"
    )
    assert len(translations) == 2 and translations[0] == translations[1] and "Ein Hund" in translations[0], ended.stderr
    lines = installed("models", **data).stdout.splitlines()[1:]
    assert {line.split()[0] for line in lines if "fetched on first use" not in line} == WHOLE | {OTHER}


def test_what_cannot_be_fetched_is_said_in_a_sentence_and_nothing_is_kept(installed, mirror, tmp_path):
    """Not even where the server has another file of that name."""
    wrong, empty, data = tmp_path / "wrong", tmp_path / "empty", tmp_path / "data"
    (wrong / OTHER).mkdir(parents=True), empty.mkdir(), data.mkdir()
    (wrong / OTHER / "model.safetensors").write_bytes(b"other weights")
    scheme = "ATTNVIZ_MIRROR must begin with https:// or http://; got "
    problems = {
        "http://127.0.0.1:9": "no server answers there; is this machine connected to the network?",
        mirror(wrong): "the file there has another SHA-256 than the card of the model says, so nothing is kept",
        mirror(empty): "the server answers 404",
        "ftp://example.org": f"{scheme}'ftp://example.org'",
        "/etc": f"{scheme}'/etc'",
        "http://": f"{scheme}'http:'",
        "http://[": "cannot fetch http://[/en-de/luong-dot/model.safetensors: ",
        "http://a b": "cannot fetch http://a b/en-de/luong-dot/model.safetensors: ",
    }
    code = f"""
import os
from attnviz.models import checkpoint_files
for address in {list(problems)!r}:
    os.environ["ATTNVIZ_MIRROR"] = address
    try:
        checkpoint_files.fetch({OTHER!r})
    except checkpoint_files.CheckpointError as error:
        print(error)
"""
    ended = installed("-c", code, name="python", ATTNVIZ_DATA=str(data))
    sentences = ended.stdout.splitlines()
    assert len(sentences) == len(problems), ended.stderr
    assert [problem for sentence, problem in zip(sentences, problems.values()) if problem not in sentence] == []
    assert [path for path in data.rglob("*") if path.is_file()] == []


def test_a_model_of_ones_own_lies_in_the_data_folder_and_not_in_the_package(installed, tmp_path):
    """`train` without --out writes to the first folder of checkpoints."""
    shutil.copytree(checkpoint_files.ROOT / "reverse" / "bahdanau", tmp_path / "checkpoints" / "own" / "bahdanau")
    code = "from attnviz.models.checkpoint_files import names, root_of, roots\n"
    code += "print(roots()[0]); print(root_of('own/bahdanau')); print('own/bahdanau' in names())"
    ended = installed("-c", code, name="python", ATTNVIZ_DATA=str(tmp_path))
    own = str(tmp_path / "checkpoints")
    assert ended.stdout.splitlines() == [own, own, "True"], ended.stderr


def test_the_program_opens_the_page(installed):
    port = free_port()
    server = installed("--no-browser", "--port", str(port), start=subprocess.Popen)
    try:
        wait(f"http://localhost:{port}", server)

        async def visit():
            async with Client(f"http://localhost:{port}") as client:
                return await client.open(), await client.type(SENTENCE)

        with ThreadPoolExecutor(1) as pool:  # this thread may have a loop: a browser's
            first, typed = pool.submit(asyncio.run, visit()).result()
        assert first.heatmaps and typed.heatmaps and "Un chien court." not in first.problems + typed.problems
        taken = installed("--no-browser", "--port", str(port))
        assert taken.returncode == 2 and f"port {port} of localhost cannot be used" in taken.stderr
    finally:
        server.terminate()
        server.communicate(timeout=20)


def test_a_shell_completes_commands_options_and_models(installed):
    script = installed("--print-completion", "bash").stdout

    def completions(*words):
        ask = f'{script}\nCOMP_WORDS=({" ".join(words)} ""); COMP_CWORD={len(words)}\n_shtab_attnviz\n'
        shown = subprocess.run(
            ["bash", "-c", f'{ask}printf "%s\\n" "${{COMPREPLY[@]}}"'], capture_output=True, text=True
        )
        return shown.stdout.split()

    assert {"trace", "page", "models"} <= set(completions("attnviz"))
    assert set(completions("attnviz", "trace", "--model")) >= {OTHER, "en-fr/bahdanau"}
    for shell in ("zsh", "fish"):
        assert "en-fr/bahdanau" in installed("--print-completion", shell).stdout
