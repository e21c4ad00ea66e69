"""Whether other programs took the cores during a measurement: an engine whose threads wait for each other at every
step loses far more by that than the share that was taken, and some engines far more than others."""

import os
import time
from pathlib import Path

MOST_SHARE = 0.04  # of the cores, that others may take
MOST_TICKS = 2  # below this the system's clock says nothing
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def _busy_ticks(cores):
    ticks = 0
    for line in Path("/proc/stat").read_text(encoding="ascii").splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) in cores:
            user, nice, system, _, _, irq, softirq, steal = (int(field) for field in fields[:8])
            ticks += user + nice + system + irq + softirq + steal
    return ticks


def _own_ticks(pid):
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


class Neighbours:
    """What others than process `pid` do on the cores, from now on."""

    def __init__(self, cores, pid):
        self.cores, self.pid = cores, pid
        self.begin = time.monotonic()
        self.before = _busy_ticks(cores) - _own_ticks(pid)

    def disturbed(self):
        ticks = _busy_ticks(self.cores) - _own_ticks(self.pid) - self.before
        available = (time.monotonic() - self.begin) * len(self.cores) * TICKS_PER_SECOND
        return disturbs(ticks, available)


def disturbs(ticks, available):
    return ticks > max(MOST_TICKS, MOST_SHARE * available)
