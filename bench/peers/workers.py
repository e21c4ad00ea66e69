"""Worker processes of the race. Only the one that is asked runs: the others are stopped, so that no thread of theirs
spins meanwhile."""

import ctypes
import json
import os
import select
import signal
import subprocess
import tempfile

from cases import OURS, OURS_NATIVE
from models import SOURCE

PROGRAMS = {"llama.cpp": "llama_cpp_worker.py", "openvino": "openvino_worker.py", "ctranslate2": "ctranslate2_worker.py"}
PYTHON = SOURCE / "build/peers/venv/bin/python"
# What keeps an engine from AVX-512 and AVX-VNNI; llama.cpp is another build (setup.sh).
AVX2_ENVIRONMENT = {OURS: {"ORTHRUS_ISA": "avx2"}, "llama.cpp": {"PYTHONPATH": str(SOURCE / "build/peers/llama-avx2")},
                    "ctranslate2": {"CT2_FORCE_CPU_ISA": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"}}
MOST_SECONDS = 900
LIBC = ctypes.CDLL(None)


class WorkerDied(Exception):
    pass


PR_SET_PDEATHSIG = 1


def _begin(cores):
    """In the new process: a stopped worker must not outlive a race that was killed."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.sched_setaffinity(0, cores)


def environment(peer, isa):
    if isa == "native" or peer == OURS_NATIVE:
        return dict(os.environ)
    return os.environ | AVX2_ENVIRONMENT[peer]


class WorkerProcess:
    def __init__(self, peer, path, cores, isa="native"):
        program = ([SOURCE / "build/bench/orthrus_race_worker"] if peer in (OURS, OURS_NATIVE) else
                   [PYTHON, SOURCE / "bench/peers" / PROGRAMS[peer]])
        self.peer = peer
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [*program, path, str(len(cores))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
            env=environment(peer, isa) | {"OMP_NUM_THREADS": str(len(cores))}, preexec_fn=lambda: _begin(cores))

    def expect_alive(self):
        if self.process.returncode is not None:
            raise WorkerDied(f"{self.peer}: ended in a case before")

    def ask(self, *command):
        """The answer to a command; the process is stopped again afterwards."""
        self.process.send_signal(signal.SIGCONT)
        try:
            self.process.stdin.write(" ".join(str(word) for word in command) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        ready, _, _ = select.select([self.process.stdout], [], [], MOST_SECONDS)
        if not ready:
            self.end()
            raise WorkerDied(f"{self.peer}: no answer to {command[0]} within {MOST_SECONDS} s")
        line = self.process.stdout.readline()
        if not line:
            self.log.seek(0)
            said = self.log.read().strip().splitlines() or ["no message"]
            self.end()
            raise WorkerDied(f"{self.peer}: ended at {command[0]}: {said[-1]}")
        self.process.send_signal(signal.SIGSTOP)
        return json.loads(line)

    def end(self):
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.log):
            try:
                stream.close()
            except BrokenPipeError:
                pass
