"""Servers for tests: starts one, waits for its address and ends it; and what a test asks of any of them."""

import json
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
DEMO = "smollm2-135m"  # `make test` pulls it


class Serving:
    """A server process that prints its address, as `ready` (a pattern with the address as its group) says. A context manager;
    `url` has no slash at its end, `lines` is what the server has printed, its log too."""

    def __init__(self, *command, ready=r"(http://[^\s/]+)"):
        self.lines = []
        self.news = threading.Condition()
        self.ended = False
        self.process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.url = self.wait_for(ready)[1]

    def read(self):
        for line in self.process.stdout:
            with self.news:
                self.lines.append(line)
                self.news.notify_all()
        with self.news:
            self.ended = True
            self.news.notify_all()

    def wait_for(self, pattern, seconds=120):
        """Waits for a line in which `pattern` is found; its match."""
        seen = 0
        end = time.monotonic() + seconds
        with self.news:
            while True:
                for line in self.lines[seen:]:
                    if found := re.search(pattern, line):
                        return found
                seen = len(self.lines)
                if self.ended or not self.news.wait(end - time.monotonic()):
                    said = "".join(self.lines[-20:])
                    raise AssertionError(f"no line with {pattern!r}; ended: {self.ended}; it said:\n{said}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self, how=signal.SIGTERM, seconds=30):
        """Its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.reader.join()
        self.process.stdout.close()
        return self.process.returncode


def mock_server(port=0, alias="canned"):
    return Serving(sys.executable, HERE / "mock_server.py", port, alias)


def tiny(root):
    """The small test checkpoint."""
    return pathlib.Path(root) / "tests/data/tiny/checkpoint"


def server(binary, root, *flags, model=None, port=0, alias=None, ready=r"ready at (http://[^\s/]+)"):
    """`orthrus serve` of the program `binary`, on the small test checkpoint unless told otherwise."""
    named = ["--alias", alias] if alias else []
    return Serving(binary, "serve", "-m", model or tiny(root), "--port", port, *named, *flags, ready=ready)


def fetch(url, body=None, headers=None, method=None, seconds=120):
    """Status, headers and body (of JSON its value, of other types text) of a request; a body that is no bytes is sent as JSON."""
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json", **(headers or {})}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=seconds) as answer:
            return answer.status, answer.headers, decoded(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, decoded(error)


def decoded(answer):
    text = answer.read().decode()
    return json.loads(text) if answer.headers.get_content_type() == "application/json" and text else text


def metrics(url, headers=None):
    """What /metrics says now: values by name with labels, as "orthrus_requests{state="waiting"}"."""
    status, _, text = fetch(f"{url}/metrics", headers=headers)
    assert status == 200, text
    samples = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in samples}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
