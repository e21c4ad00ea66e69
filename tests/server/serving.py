"""Servers for tests: starts one, waits for its address and ends it."""

import pathlib
import signal
import socket
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent


class Serving:
    """A server process that prints its address as a word of a line. A context manager; `url` has no slash at its end."""

    def __init__(self, *command):
        self.process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True)
        said = []
        for line in self.process.stdout:
            said.append(line)
            addresses = [word.strip(".,").rstrip("/") for word in line.split() if word.startswith("http://")]
            if addresses:
                self.url = addresses[0]
                break
        else:
            raise AssertionError(f"{command[0]} ended with {self.process.wait()} before it served:\n{''.join(said)}")
        # Nobody waits for what else it prints, and a full pipe would halt it.
        self.reader = threading.Thread(target=lambda: [None for _ in self.process.stdout], daemon=True)
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self, how=signal.SIGTERM, seconds=30):
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.reader.join()
        self.process.stdout.close()


def mock_server(port=0, alias="canned"):
    return Serving(sys.executable, HERE / "mock_server.py", port, alias)


def server(binary, root, port=0, alias=None):
    """`orthrus serve` of the program `binary` on the small test checkpoint; the canned server where `binary` is "mock"."""
    if binary == "mock":
        return mock_server(port, alias or "canned")
    named = ["--alias", alias] if alias else []
    return Serving(binary, "serve", "-m", pathlib.Path(root) / "tests/data/tiny/checkpoint", "--port", port, *named)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
