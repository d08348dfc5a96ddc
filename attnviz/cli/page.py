"""`attnviz`, or `python -m attnviz page`: open the page in a browser."""

import os
import runpy
import socket
import sys
import threading
import time
import webbrowser
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from importlib.util import find_spec
from pathlib import Path

import attnviz

HELP = "open the page in a browser (what attnviz does without a command)"
FIRST_PORT, TRIED = 8501, 20  # ports that are tried without --port
LOCAL = ("localhost", "127.0.0.1", "::1")
EVERYWHERE = ("0.0.0.0", "::")  # every address of this machine
HOSTS, PUBLIC = "ATTNVIZ_HOSTS", "ATTNVIZ_PUBLIC"  # read by the page
PATIENCE = 60.0  # s until the page must answer


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--port", type=_port, metavar="N", help=f"of the page (default: the first free one from {FIRST_PORT} on)"
    )
    parser.add_argument(
        "--host",
        type=_host,
        default="localhost",
        metavar="NAME",
        help="address of this machine that the page is at. Only localhost, the default, is for you alone",
    )
    parser.add_argument("--no-browser", action="store_true", help="open no browser; the address is printed")


def run(args: Namespace) -> None:
    """Start the server of the page in this process, which ends with it."""
    script = file()
    if script is None or find_spec("streamlit") is None:
        raise ValueError("Streamlit, which shows the page, is not installed; install it with: pip install streamlit")
    port = args.port or _free(args.host)
    if _is_taken(args.host, port):
        raise ValueError(
            f"port {port} of {args.host} cannot be used: another program listens there; choose another --port"
        )
    if args.host not in LOCAL:
        _open_to_others(args.host)
    if not args.no_browser:
        name = "localhost" if args.host in LOCAL + EVERYWHERE else args.host
        threading.Thread(target=_open, args=(name, port), daemon=True).start()
    sys.argv = ["streamlit", "run", str(script), "--server.port", str(port), "--server.address", args.host]
    runpy.run_module("streamlit", run_name="__main__")


def file() -> Path | None:
    """The path of the page's script, for `streamlit run`: inside the installed package, or in the project's folder."""
    package = Path(attnviz.__file__).resolve().parent
    scripts = [folder / "dashboard" / "app.py" for folder in (package / "page", package.parent)]
    return next(filter(Path.is_file, scripts), None)


def _port(text: str) -> int:
    if not (text.isdecimal() and 1 <= int(text) <= 65_535):
        raise ArgumentTypeError(f"must be a whole number from 1 to 65535; got {text!r:.80}")
    return int(text)


def _host(text: str) -> str:
    if not text.strip() or len(text) > 253 or not text.isprintable() or set(text) & {"/", " ", ","}:
        raise ArgumentTypeError(f"must be a name or an address of this machine; got {text!r:.80}")
    return text


def _free(host: str) -> int:
    """The first free port. ValueError if no port is free."""
    ports = range(FIRST_PORT, FIRST_PORT + TRIED)
    port = next((port for port in ports if not _is_taken(host, port)), None)
    if port is None:
        raise ValueError(f"the ports {ports[0]} to {ports[-1]} are in use; choose another --port")
    return port


def _is_taken(host: str, port: int) -> bool:
    """Is the port in use? ValueError for a host that is not this machine."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        raise ValueError(f"--host must be a name or an address of this machine; got {host!r:.80}") from None
    with socket.socket(family, kind, protocol) as probe:
        if os.name == "posix":  # a port that was in use a minute ago is free
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError:
            return True
    return False


def _open_to_others(host: str) -> None:
    """Print who can now reach the page, and make the server accept `host`."""
    if host not in EVERYWHERE:
        os.environ[HOSTS] = ",".join(filter(None, [os.environ.get(HOSTS), host]))
    lines = [f"Warning: everybody who reaches {host} can use this page, without a password."]
    if os.environ.get(PUBLIC, "").strip() != "1":
        lines.append(f"They can open folders of this machine and upload files; with {PUBLIC}=1 they cannot.")
    if host in EVERYWHERE and not os.environ.get(HOSTS):
        lines.append(f"The page answers for localhost alone; set {HOSTS} to the names or addresses that visitors type.")
    print(*lines, sep="\n", file=sys.stderr)


def _open(name: str, port: int) -> None:
    """Open the browser when the page answers."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            socket.create_connection((name, port), 2).close()
        except OSError:
            time.sleep(0.1)
        else:
            webbrowser.open(f"http://{f'[{name}]' if ':' in name else name}:{port}")
            return
