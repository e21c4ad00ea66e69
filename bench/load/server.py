"""Starts `orthrus serve` for a measurement and ends it."""

import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import tempfile
import time

from http_client import Address, fetch
from prompts import library

# What a sanitizer or the server itself says of a fault.
FAULT = re.compile(r"orthrus: (error|critical):|ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:|terminate called")


def allow_many_files():
    """As many open sockets as the system lets this process and those it starts have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Server:
    """A server process on a free port. A context manager; `address` is where it listens, `log` what it has printed."""

    keep_log = False  # it is removed otherwise, but for where the block ends with an exception

    def __init__(self, program, model, *options, environment=None, patience=300):
        self.log_path = pathlib.Path(tempfile.mkstemp(prefix="orthrus-load-", suffix=".log")[1])
        command = [str(program), "serve", "-m", str(model), "--port", "0", *(str(option) for option in options)]
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                            env={**os.environ, **(environment or {})})
        end = time.monotonic() + patience
        while not (ready := re.search(r"ready at (http://\S+)", self.log)):
            if self.process.poll() is not None or time.monotonic() > end:
                self.stop()
                raise RuntimeError(f"{' '.join(command)} did not serve:\n{self.log}")
            time.sleep(0.05)
        self.address = Address.of(ready[1])

    @property
    def log(self):
        return self.log_path.read_text(errors="replace")

    def faults(self):
        return [line for line in self.log.splitlines() if FAULT.search(line)]

    def resident_bytes(self):
        """None where the process has ended."""
        if self.process.poll() is not None:
            return None
        found = re.search(r"VmRSS:\s+(\d+) kB", pathlib.Path(f"/proc/{self.process.pid}/status").read_text())
        return int(found[1]) * 1024 if found else None

    def stop(self, seconds=60):
        """Its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return -signal.SIGKILL

    def __enter__(self):
        return self

    def __exit__(self, failed, *_):
        self.stop()
        if not failed and not self.keep_log:
            self.log_path.unlink()


async def context_of(address):
    """The model's limit of tokens."""
    return json.loads(await fetch(address, "/v1/models"))["data"][0]["max_model_len"]


async def chat_token_ids(address, messages):
    """The prompt as the model gets it."""
    return json.loads(await fetch(address, "/tokenize", {"messages": messages}))["tokens"]


async def fit(address, request, most_tokens):
    """The request, its text cut so that the prompt has at most so many tokens."""
    message = request.body["messages"][-1]
    while len(message["content"]) > most_tokens:
        tokens = len(await chat_token_ids(address, [message]))
        if tokens <= most_tokens:
            break
        message = {**message, "content": message["content"][:int(len(message["content"]) * 0.98 * most_tokens / tokens)]}
    return request.varied(messages=[message])


async def characters_a_token(address):
    text = library()[:20000]
    return len(text) / json.loads(await fetch(address, "/tokenize", {"content": text}))["count"]
