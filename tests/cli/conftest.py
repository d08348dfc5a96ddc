"""Commands in this process, and files to give them."""

import gzip

import pytest
import tiny

from attnviz.__main__ import main


@pytest.fixture
def cli(root, capsys):
    """Run a command in this process on the tiny checkpoints -> status, output, errors."""

    def run(command, *arguments):
        try:
            status = main([command, *map(str, arguments), "--root", str(root)])
        except SystemExit as stop:  # argparse leaves this way
            status = stop.code
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def files(tmp_path):
    """Aligned files, the reference gzipped, one line empty on both sides."""
    pairs = [*tiny.sentences(3, 5), ("", ""), *tiny.sentences(2, 6)]
    source, reference = tmp_path / "source.txt", tmp_path / "reference.gz"
    source.write_text("".join(f"{a}\n" for a, _ in pairs), encoding="utf-8")
    reference.write_bytes(gzip.compress("".join(f"{b}\n" for _, b in pairs).encode()))
    return source, reference
