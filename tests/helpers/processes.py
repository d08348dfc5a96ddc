"""Memory of a process and of those it has started, from /proc."""

import os
from pathlib import Path


def family(pid: int) -> list[int]:
    """The process and all its descendants."""
    members, todo = [], [pid]
    while todo:
        process = todo.pop()
        members.append(process)
        for file in Path(f"/proc/{process}/task").glob("*/children"):
            todo += map(int, file.read_text().split())
    return members


def command(pid: int) -> str:
    """The words it was started with."""
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()


def memory(pid: int) -> int:
    """MB that they take, pages they share counted once each among them (PSS)."""
    return sum(map(_kilobytes, family(pid))) // 1024


def memories(pid: int) -> list[int]:
    """`memory` of each of them, the process itself first."""
    return [_kilobytes(process) // 1024 for process in family(pid)]


def own_megabytes(pid: int) -> int:
    """MB that they have made themselves: without the files of libraries, whose share falls to them when others end."""
    return sum(_kilobytes(process, "Pss_Anon:") for process in family(pid)) // 1024


def _kilobytes(pid: int, kind: str = "Pss:") -> int:
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(next(line for line in rollup.splitlines() if line.startswith(kind)).split()[1])


def seconds(pid: int) -> float:
    """Processor time of the process alone so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def models(pid: int) -> int:
    """The model process of a server of the dashboard."""
    (process,) = [child for child in family(pid) if "attnviz.service.process" in command(child)]
    return process
