"""A small HTTP client on asyncio. It only notes what came when: a load generator that shares its cores with the server must
cost little, so replies are taken apart after the run (answers.py)."""

import asyncio
import dataclasses
import json
import time
import urllib.parse

from answers import payload

now = time.perf_counter


@dataclasses.dataclass
class Exchange:
    """One request and what came back; times in seconds of `now()`."""

    began: float
    ended: float = 0.0
    reads: list = dataclasses.field(default_factory=list)  # (time, bytes)
    failure: str = ""  # why the connection ended early, "" where it did not
    cancelled: bool = False  # by us

    def raw(self):
        return b"".join(data for _, data in self.reads)

    def status(self):
        """0 where no reply came."""
        line = self.raw().split(b"\r\n", 1)[0].split()
        return int(line[1]) if len(line) > 1 and line[1].isdigit() else 0


class _Connection(asyncio.Protocol):
    """Sends one request and takes what comes until the server closes."""

    def __init__(self, request, exchange, cancel_after):
        self.request, self.exchange, self.cancel_after = request, exchange, cancel_after
        self.closed = asyncio.get_running_loop().create_future()

    def connection_made(self, transport):
        self.transport = transport
        transport.write(self.request)

    def data_received(self, data):
        self.exchange.reads.append((now(), data))
        if self.cancel_after is not None and len(self.exchange.reads) >= self.cancel_after:
            self.cancel()

    def cancel(self):
        self.exchange.cancelled = True
        self.transport.abort()

    def connection_lost(self, error):
        if error is not None and not self.exchange.cancelled:
            self.exchange.failure = str(error) or type(error).__name__
        if not self.closed.done():
            self.closed.set_result(None)


@dataclasses.dataclass(frozen=True)
class Address:
    host: str
    port: int
    key: str = ""  # API key
    source: str = ""  # our own address, by which the server tells clients apart that bring no key

    @staticmethod
    def of(url, key=""):
        parts = urllib.parse.urlsplit(url)
        return Address(parts.hostname, parts.port or 80, key)

    def with_key(self, key):
        return dataclasses.replace(self, key=key)

    def as_client(self, number):
        """As from a machine of its own, where the server listens on 127.0.0.1."""
        return dataclasses.replace(self, source=f"127.0.1.{number}")


def request_bytes(address, method, path, body=None):
    """A whole request, after which the server is to close the connection."""
    payload = b"" if body is None else json.dumps(body).encode()
    head = [f"{method} {path} HTTP/1.1", f"Host: {address.host}:{address.port}", "Connection: close"]
    if address.key:
        head.append(f"Authorization: Bearer {address.key}")
    if body is not None:
        head += ["Content-Type: application/json", f"Content-Length: {len(payload)}"]
    return ("\r\n".join(head) + "\r\n\r\n").encode() + payload


async def ask(address, method, path, body=None, *, cancel_after=None, cancel_seconds=None, timeout=600,
              exchange=None):
    """The exchange, also where it fails. `cancel_after`: the connection is cut after so many reads; `cancel_seconds`: after
    this time. `exchange`: is filled, for who cancels the task and wants what came until then."""
    exchange = exchange or Exchange(0.0)
    exchange.began = now()
    loop = asyncio.get_running_loop()
    make = lambda: _Connection(request_bytes(address, method, path, body), exchange, cancel_after)
    try:
        transport, connection = await loop.create_connection(make, address.host, address.port,
                                                             local_addr=(address.source, 0) if address.source else None)
        try:
            await asyncio.wait_for(asyncio.shield(connection.closed), cancel_seconds or timeout)
        except asyncio.TimeoutError:
            if not cancel_seconds:
                exchange.failure = f"no end of the answer within {timeout} s"
            connection.cancel()
            await connection.closed
        except asyncio.CancelledError:
            connection.cancel()
            raise
        finally:
            transport.abort()
    except OSError as error:
        exchange.failure = str(error) or type(error).__name__
    exchange.ended = now()
    return exchange


async def fetch(address, path, body=None):
    """The text of a GET, or of a POST where there is a body. RuntimeError where it is not answered with 200."""
    exchange = await ask(address, "POST" if body is not None else "GET", path, body, timeout=60)
    text = "".join(part.decode("utf-8", "replace") for _, part in payload(exchange))
    if exchange.status() != 200:
        raise RuntimeError(f"{path}: status {exchange.status()} {exchange.failure} {text[:300]}")
    return text
