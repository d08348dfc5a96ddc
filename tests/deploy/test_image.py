"""The files for containers fit the project. No container is started: what is read here is what would run."""

import re
import tomllib
from pathlib import Path

from attnviz import cli
from dashboard.choices import settings

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()
COMPOSE = (ROOT / "deploy" / "compose.yaml").read_text()


def test_what_is_copied_is_there_and_is_all_that_the_page_imports():
    copied = [line.split()[1] for line in DOCKERFILE.splitlines() if line.startswith("COPY ")]
    assert copied == ["requirements.txt", "attnviz", "dashboard", "checkpoints"]
    assert all((ROOT / name).exists() for name in copied)
    assert (ROOT / re.search(r'"(dashboard/\w+\.py)"', DOCKERFILE)[1]).is_file()


def test_the_image_has_a_python_that_the_project_runs_on():
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert f"FROM python:{wanted.removeprefix('>=')}-slim" in DOCKERFILE


def test_the_page_runs_without_root_and_says_how_it_is():
    lines = DOCKERFILE.splitlines()
    assert lines.index("USER attnviz") < next(i for i, line in enumerate(lines) if line.startswith("CMD "))
    assert "HEALTHCHECK" in DOCKERFILE and "http://localhost:8501/_stcore/health" in DOCKERFILE


def test_containers_write_nowhere_but_in_memory():
    page, services = COMPOSE.split("services:")
    for part in (page, services):
        assert "read_only: true" in part and "tmpfs: [" in part and "cap_drop: [ALL]" in part
    servers = re.findall(r"server ([\w-]+):(\d+)", (ROOT / "deploy" / "replicas.conf").read_text())
    assert servers == [(name, "8501") for name in re.findall(r"^  (page-\d+): \*page$", services, re.MULTILINE)]


def test_the_demo_sets_what_the_page_reads_and_starts_it_as_its_program_does():
    space = (ROOT / "deploy" / "space" / "Dockerfile").read_text()
    read = {settings.HOSTS, settings.PUBLIC, settings.FRAMES, *settings.SETTINGS}
    assert set(re.findall(r"(ATTNVIZ_\w+)=", space)) <= read
    assert space.index("USER attnviz") < space.index('CMD ["sh"') and "HEALTHCHECK" in space
    [port] = set(re.findall(r"(?:EXPOSE |localhost:|--port )(\d+)", space))
    assert f"app_port: {port}\n" in (ROOT / "deploy" / "space" / "README.md").read_text()
    words = cli.parse(re.search(r"exec attnviz (.*?)\"", space)[1].split())
    assert (words.command, words.host, words.port, words.no_browser) == ("page", "0.0.0.0", int(port), True)
