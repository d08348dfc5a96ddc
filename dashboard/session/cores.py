"""How many processors this server may use. In a container that is less than the machine has. No Streamlit here."""

import os
from pathlib import Path

QUOTA = Path("/sys/fs/cgroup/cpu.max")  # of a container: microseconds of processor time in each period, and the period


def cores(quota: Path = QUOTA) -> int:
    """At least 1. By what the process may run on (Linux), and by the quota of its control group (cgroup v2)."""
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity else os.cpu_count() or 1
    try:
        given, period = quota.read_text(encoding="ascii").split()
        return max(1, min(count, int(given) // int(period)))
    except (OSError, ValueError):  # no control group, or "max": no quota
        return count
