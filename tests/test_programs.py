"""The suite, and what it starts, sees only the programs that helpers/programs.py lists."""

import os
import subprocess
import sys
from pathlib import Path

import programs
import pytest

HELPERS = Path(programs.__file__).parent


def test_the_path_holds_nothing_else():
    names = set(os.listdir(os.environ["PATH"]))
    assert {"bash", "sh", "true"} <= names <= {programs.BROWSER, programs.NGINX, *programs.SYSTEM}


@pytest.mark.parametrize("name", [Path(sys.executable).name, "ls", "git", "chromium", "google-chrome"])
def test_another_program_is_not_there(name):
    with pytest.raises(FileNotFoundError):
        subprocess.run([name, "--version"], capture_output=True)


def test_browsers_that_playwright_has_elsewhere_are_not_seen(chrome):
    """Those of its package count alone, which install_programs.py fills."""
    package = Path(sys.modules["playwright"].__file__).parent
    assert Path(chrome.browser_type.executable_path).is_relative_to(package)


def installed(tmp_path, step: str) -> subprocess.CompletedProcess:
    """A step of install_programs.py on a machine that has no program and reaches no server."""
    code = f"""
import programs
programs.OWN["PLAYWRIGHT_BROWSERS_PATH"], programs.SERVERS = {str(tmp_path)!r}, ()
import install_programs
install_programs.{step}()"""
    alone = {"PATH": str(tmp_path), "PLAYWRIGHT_DOWNLOAD_HOST": "http://127.0.0.1:9", "PYTHONPATH": str(HELPERS)}
    return subprocess.run([sys.executable, "-c", code], env=os.environ | alone, capture_output=True, text=True)


def test_without_nginx_the_install_step_says_what_is_skipped(tmp_path):
    ended = installed(tmp_path, "nginx")
    why = "nginx is not installed, and this system has no apt-get to install it."
    assert (ended.returncode, ended.stdout) == (0, f"Skipped: tests/deploy/test_nginx.py. {why}\n")


def test_without_a_browser_the_install_step_fails(tmp_path):
    ended = installed(tmp_path, "browser")
    assert ended.returncode == 1 and "playwright install --only-shell" in ended.stdout
    assert ended.stderr.splitlines()[-1].startswith("The browser tests need Chromium: install your system's chromium-")
