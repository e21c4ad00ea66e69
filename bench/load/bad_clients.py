"""Clients that no server would wish for. Each gives "" where the server did what it should, else what it did."""

import asyncio
import json

import drive
from http_client import ask, request_bytes

PATIENCE = 120  # seconds until the server must have ended a connection
CHAT_BODY = {"messages": [{"role": "user", "content": "Tell me about the sea."}], "max_tokens": 24, "stream": True}

BAD_BODIES = (
    b"", b"{", b'{"messages": [}', b"null", b"[]", b'"text"', b"{}", b'{"messages": 5}', b'{"messages": []}', b"\xff\xfe\x00",
    b'{"messages": [{"role": "user", "content": "\xc3\x28"}]}', b"[" * 100000, b'{"a":' * 50000,
    b'{"messages": [{"role": "user", "content": "a"}], "max_tokens": -5}',
    b'{"messages": [{"role": "user", "content": "a"}], "temperature": "hot"}',
    b'{"messages": [{"role": "user", "content": "a"}], "temperature": 1e999}',
    b'{"messages": [{"role": "user", "content": "a"}], "no_such_parameter": 1}',
    b'{"messages": [{"role": "user", "content": "a"}], "model": "no-such-model"}',
    b'{"messages": [{"role": "user", "content": "a"}], "logit_bias": {"99999999": 1}}',
    b'{"messages": [{"role": "user", "content": "a"}], "grammar": "root ::= ("}',
    b'{"messages": [{"role": "user", "content": "a"}], "response_format": {"type": "json_schema"}}',
)


def _head(address, length, *more):
    lines = [f"POST {drive.CHAT} HTTP/1.1", f"Host: {address.host}", "Content-Type: application/json",
             f"Content-Length: {length}", "Connection: close", *more]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def _talk(address, *parts, half_close=False, pause=0.0):
    """Sends the parts; all that comes back until the server closes. None where it does not."""
    reader, writer = await asyncio.open_connection(address.host, address.port)
    try:
        try:
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(pause)
            if half_close:
                writer.write_eof()
        except ConnectionError:
            pass  # refused in the middle: what it said counts
        received = b""
        try:
            while data := await asyncio.wait_for(reader.read(65536), PATIENCE):
                received += data
        except ConnectionError:
            pass
        return received
    except asyncio.TimeoutError:
        return None
    finally:
        writer.transport.abort()


def _refused(received, what, statuses, may_close=False):
    """Empty where it is an error of OpenAI's form with one of the statuses."""
    if received is None:
        return f"{what}: the connection was kept open for {PATIENCE} s"
    if not received:
        return "" if may_close else f"{what}: closed without a word"
    head, _, body = received.partition(b"\r\n\r\n")
    words = head.split()
    status = int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
    try:
        told = bool(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        told = False
    return "" if status in statuses and told else f"{what}: {received[:300]!r}"


async def bad_body(address, random):
    body = random.choice(BAD_BODIES)
    return _refused(await _talk(address, _head(address, len(body)), body), f"body {body[:60]!r}", (400, 404, 422))


async def half_closed(address, random):
    """Says that it will send nothing more, and so counts as gone; all that matters is that it ends."""
    received = await _talk(address, request_bytes(address, "POST", drive.CHAT, CHAT_BODY), half_close=True)
    return "" if received is not None else "half-closed: the connection was kept open"


async def half_a_request(address, random):
    whole = request_bytes(address, "POST", drive.CHAT, CHAT_BODY)
    part = whole[:random.randrange(1, len(whole) - 1)]
    received = await _talk(address, part, half_close=True)
    return _refused(received, f"half a request of {len(part)} bytes", (400,), may_close=True)


async def slow_sender(address, random):
    """Byte by byte, but in time: it is served."""
    whole = request_bytes(address, "POST", drive.CHAT, CHAT_BODY)
    size = max(1, len(whole) // random.randint(20, 60))
    parts = [whole[i:i + size] for i in range(0, len(whole), size)]
    received = await _talk(address, *parts, pause=random.uniform(0.01, 0.1))
    good = received is not None and received.startswith(b"HTTP/1.1 200") and b"[DONE]" in received
    return "" if good else f"slow sender: {received and received[:300]!r}"


async def gives_up_sending(address, random):
    _, writer = await asyncio.open_connection(address.host, address.port)
    for byte in _head(address, 1000)[:random.randrange(1, 60)]:
        writer.write(bytes([byte]))
        await asyncio.sleep(0.03)
    writer.transport.abort()
    return ""


async def oversize(address, random):
    """A body of which the header says that it has 100 MB."""
    received = await _talk(address, _head(address, 100 << 20), *[b"[" * 65536] * 20)
    return _refused(received, "100 MB", (413,), may_close=True)


async def oversize_chunked(address, random):
    """The same without saying so."""
    head = _head(address, 0, "Transfer-Encoding: chunked").replace(b"Content-Length: 0\r\n", b"")
    received = await _talk(address, head, *[b"10000\r\n" + b" " * 65536 + b"\r\n"] * 400)
    return _refused(received, "25 MB in chunks", (413,), may_close=True)


async def long_header(address, random):
    received = await _talk(address, _head(address, 0, "X-Long: " + "x" * 100000))
    return _refused(received, "a header of 100 kB", (431,), may_close=True)


async def garbage(address, random):
    """TLS where none is spoken, or noise."""
    noise = b"\x16\x03\x01\x02\x00\x01\x00" if random.random() < 0.5 else random.randbytes(200)
    return _refused(await _talk(address, noise + b"\r\n\r\n", half_close=True), "garbage", (400, 501, 505), may_close=True)


async def slow_reader(address, random):
    """Asks for a stream and reads nothing of it for a while."""
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(request_bytes(address, "POST", drive.CHAT, CHAT_BODY))
    await asyncio.sleep(random.uniform(0.5, 3.0))
    await asyncio.wait_for(reader.read(100), PATIENCE)
    writer.transport.abort()
    return ""


async def vanishes(address, random):
    await ask(address, "POST", drive.CHAT, CHAT_BODY, cancel_seconds=random.uniform(0.0005, 0.02))
    return ""


async def pipelines(address, random):
    """Sends requests ahead: all are answered, in their order."""
    ahead = f"GET /health HTTP/1.1\r\nHost: {address.host}\r\n\r\n".encode() * 3
    received = await _talk(address, ahead + request_bytes(address, "GET", "/v1/models"))
    count = (received or b"").count(b"HTTP/1.1 200")
    return "" if count == 4 and b'"object":"list"' in received.replace(b" ", b"") else f"pipelined: {received!r}"


async def wrong_address(address, random):
    method, path = random.choice((("GET", drive.CHAT), ("POST", "/nowhere"), ("DELETE", "/v1/models"),
                                  ("POST", "/v1/embeddings"), ("GET", "/../../etc/passwd"), ("GET", "/%00")))
    exchange = await ask(address, method, path, {} if method == "POST" else None)
    return _refused(exchange.raw(), f"{method} {path}", (400, 404, 405, 501))


KINDS = (bad_body, half_closed, half_a_request, slow_sender, gives_up_sending, oversize, oversize_chunked, long_header, garbage,
         slow_reader, vanishes, pipelines, wrong_address)


async def bad_client(address, random, more, counts, complaints):
    """One after the other as long as more() says so. `counts`: how many of each kind."""
    while more():
        kind = random.choice(KINDS)
        try:
            complaint = await kind(address, random)
        except (OSError, asyncio.TimeoutError) as error:
            complaint = f"{kind.__name__}: {type(error).__name__} {error}"
        counts[kind.__name__] = counts.get(kind.__name__, 0) + 1
        if complaint:
            complaints.append(complaint)
        await asyncio.sleep(random.uniform(0, 0.3))
