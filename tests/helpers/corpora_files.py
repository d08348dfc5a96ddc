"""Files for runs over a corpus, and what such runs wrote."""


def write_lines(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def files(folder):
    """Relative name -> content of every file below a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def same_files(made, wanted):
    made, wanted = files(made), files(wanted)
    assert made.keys() == wanted.keys()
    assert [name for name in made if made[name] != wanted[name]] == []
