"""Make sure that there is a Chromium for the browser tests: the system's, else Playwright's own, else the system's
packages."""

import os
import shutil
import subprocess
import sys

from serving import SHELL, chromium


def present() -> bool:
    """Is there a browser that starts?"""
    from playwright.sync_api import Error, sync_playwright

    with sync_playwright() as playwright:
        try:
            playwright.chromium.launch(executable_path=chromium(SHELL), args=["--no-sandbox"]).close()
        except Error as error:
            print(f"no Chromium that starts: {str(error).splitlines()[0]}", file=sys.stderr)
            return False
    return True


def install() -> None:
    """Try each source in turn until a browser starts. Exits with status 1 and a plain line when none does."""
    sudo = [] if not hasattr(os, "geteuid") or os.geteuid() == 0 else ["sudo"]
    quiet = {"DEBIAN_FRONTEND": "noninteractive"} | os.environ
    playwright = [sys.executable, "-m", "playwright", "install", "chromium"]
    sources = []
    if all(map(shutil.which, [*sudo, "apt-get"])):
        packages = [*sudo, "apt-get", "install", "-y", "-q"]
        sources += [[[*sudo, "apt-get", "update", "-q"], [*packages, SHELL]], [[*packages, "chromium"]]]
    sources.append([[*playwright, *(["--with-deps"] if all(map(shutil.which, sudo)) else [])]])
    for commands in sources:
        if present():
            return
        for command in commands:
            print("+", " ".join(command), flush=True)
            subprocess.run(command, env=quiet, check=False)
    if not present():
        sys.exit("The browser tests need Chromium; install it with your system's package manager and run this again.")


if __name__ == "__main__":
    install()
