"""Install what the tests need beside Python packages: a browser, without which this fails, and nginx, without which the
tests of deploy/ are skipped. Prints a line for what is skipped."""

import os
import shutil
import subprocess
import sys

import programs
import serving

SUDO = [] if not hasattr(os, "geteuid") or os.geteuid() == 0 else ["sudo"]
APT = all(map(shutil.which, [*SUDO, "apt-get"]))


def run(*command: str) -> None:
    """Its status does not matter: what is there afterwards does."""
    print("+", " ".join(command), flush=True)
    subprocess.run(command, env={"DEBIAN_FRONTEND": "noninteractive"} | os.environ | programs.OWN, check=False)


def packages(*names: str) -> None:
    """Install packages of the system, where it is Debian or one like it."""
    if APT:
        run(*SUDO, "apt-get", "update", "-q")
        run(*SUDO, "apt-get", "install", "-y", "-q", "--no-install-recommends", *names)


def browser_starts() -> bool:
    from playwright.sync_api import Error

    try:
        with serving.browser():
            return True
    except Error as error:
        print(f"no browser that starts: {str(error).splitlines()[0]}", file=sys.stderr)
        return False


def browser() -> None:
    """The system's, else Playwright's own with the libraries that it needs."""
    if browser_starts():
        return
    packages(programs.BROWSER)
    if not programs.chromium():
        with_libraries = ["--with-deps"] if all(map(shutil.which, SUDO)) else []
        run(sys.executable, "-m", "playwright", "install", "--only-shell", *with_libraries, "chromium")
    if not browser_starts():
        sys.exit(
            f"The browser tests need Chromium: install your system's {programs.BROWSER}, or make "
            "`python -m playwright install --only-shell chromium` work, and run this again."
        )


def nginx() -> None:
    """Debian starts a server when it is installed: a person who runs tests has not asked for one."""
    if not programs.path_of(programs.NGINX):
        packages(programs.NGINX)
        if programs.path_of(programs.NGINX) and os.path.isdir("/run/systemd/system"):
            run(*SUDO, "systemctl", "disable", "--now", "nginx")
    if not programs.path_of(programs.NGINX):
        why = "could not be installed" if APT else "is not installed, and this system has no apt-get to install it"
        print(f"Skipped: tests/deploy/test_nginx.py. nginx {why}.")


if __name__ == "__main__":
    browser()
    nginx()
