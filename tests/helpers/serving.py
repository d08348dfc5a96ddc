"""A real Streamlit server and a real Chromium, for tests and benchmarks."""

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import programs

ROOT = Path(__file__).resolve().parents[2]
APP = ROOT / "dashboard" / "app.py"
SCREEN = {"width": 1366, "height": 900}  # of most tests
popen = subprocess.Popen  # in tests forked.py has another


@contextlib.contextmanager
def server(script: Path = APP, root: Path = ROOT, **environment: str) -> Iterator[str]:
    """Run a Streamlit script on a free port of this machine -> its address."""
    with running(script, root, **environment) as (address, _):
        yield address


@contextlib.contextmanager
def running(
    script: Path = APP,
    root: Path = ROOT,
    log: int | IO = subprocess.DEVNULL,
    as_people: bool = False,
    **environment: str,
) -> Iterator[tuple[str, int]]:
    """The same -> its address, and the number of its process.

    root : the checkout whose attnviz it imports. log : a file for its standard error. as_people : by the command, where
    tests start it as a fork that has imported Streamlit.
    """
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        str(script),
        "--server.port",
        str(port),
        "--server.headless",
        "true",
        "--server.address",
        "localhost",
        "--browser.gatherUsageStats",
        "false",
    ]
    start = subprocess.Popen if as_people else popen
    process = start(command, cwd=root, env=os.environ | environment, stdout=subprocess.DEVNULL, stderr=log)
    address = f"http://localhost:{port}"
    try:
        wait(address, process)
        yield address, process.pid
    finally:
        process.terminate()
        process.wait(20)


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]


def wait(address: str, process: subprocess.Popen, seconds: float = 60, path: str = "/_stcore/health") -> None:
    """Until the server of this process answers. RuntimeError when it has ended, TimeoutError."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"the server stopped with status {process.returncode}")
        try:
            with urllib.request.urlopen(f"{address}{path}", timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.02)
    raise TimeoutError(f"{address} did not answer in {seconds} s")


@contextlib.contextmanager
def browser(scripts: str = "") -> Iterator:
    """The browser that `programs.chromium` names (playwright's Browser). scripts : options of V8, which runs them."""
    from playwright.sync_api import sync_playwright

    arguments = [
        "--no-sandbox",
        "--disable-background-networking",
        "--disable-component-update",
        "--no-first-run",
        "--process-per-site",
        # Playwright listens to errors, and V8 then reads a script again for each that it throws: .1 to .2 s for
        # Plotly's, which a person's browser does not spend.
        f"--js-flags=--no-enable-lazy-source-positions {scripts}",
    ]
    os.environ |= programs.OWN  # read by the process that starts browsers
    with sync_playwright() as playwright:
        chrome = playwright.chromium.launch(executable_path=programs.chromium(), args=arguments)
        try:
            yield chrome
        finally:
            chrome.close()
