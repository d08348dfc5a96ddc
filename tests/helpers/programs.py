"""The programs outside Python that tests and benchmarks use: two that install_programs.py installs, and a few that
every system has. The suite sees no others: its PATH is a folder of links to them."""

import os
import shutil
from pathlib import Path

# The same as a whole Chromium, without windows. Where the system has none: Playwright's own, of the same kind.
BROWSER = "chromium-headless-shell"
NGINX = "nginx"
SYSTEM = ("bash", "sh", "true")
# Playwright's browsers lie in its package, where install_programs.py puts them, not in a folder all projects share.
OWN = {"PLAYWRIGHT_BROWSERS_PATH": "0"}
SERVERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")  # folders of servers, which the PATH of a person may lack


def path_of(name: str) -> str | None:
    """Path of a program; None where there is none. It may lie in a folder for servers."""
    folders = [*os.environ.get("PATH", os.defpath).split(os.pathsep), *(SERVERS if name == NGINX else ())]
    return shutil.which(name, path=os.pathsep.join(folders))


def chromium() -> str | None:
    """Path of the browser of all tests and benchmarks; None: Playwright's own, see OWN."""
    return path_of(BROWSER)


def link(folder: Path) -> None:
    """Fill a folder with links to the programs that are there."""
    for name in (BROWSER, NGINX, *SYSTEM):
        if path := path_of(name):
            (folder / name).symlink_to(path)
