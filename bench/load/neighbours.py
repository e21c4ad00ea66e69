"""What other clients cost: a thousand that are idle, and one that floods the server."""

import asyncio
import statistics

import drive
import report
from http_client import request_bytes
from prompts import PromptSource
from throughput import check


class IdleConnections:
    """Connections that have asked for something once and stay open."""

    def __init__(self, address, count):
        self.address, self.count, self.streams = address, count, []

    async def __aenter__(self):
        request = request_bytes(self.address, "GET", "/health").replace(b"Connection: close\r\n", b"")
        for _ in range(self.count):
            reader, writer = await asyncio.open_connection(self.address.host, self.address.port)
            writer.write(request)
            self.streams.append((reader, writer))
        for reader, _ in self.streams:
            await reader.readuntil(b"\r\n\r\n")
        return self

    def still_open(self):
        return sum(not reader.at_eof() for reader, _ in self.streams)

    async def __aexit__(self, *_):
        for _, writer in self.streams:
            writer.transport.abort()
        await asyncio.sleep(0.1)


async def idle_cost(address, flags, say):
    """Throughput of 8 clients with and without idle connections, in turns. Answers have a fixed length, so that all runs do
    the same work."""
    source = PromptSource(flags.seed, {"gsm8k": 1.0})
    numbers = iter(range(10**9))

    async def rate():
        count = max(flags.least_requests, 8 * flags.requests_per_client)
        requests = [source.numbered(flags.max_tokens, next(numbers), ignore_eos=True, use_diffusion_mode=False)
                    for _ in range(count)]
        run = await drive.closed_loop(address, requests, 8)
        check(run)
        return run.busy_tokens_per_second()

    await rate()
    pairs, open_at_end = [], []
    for repetition in range(flags.repetitions):
        alone = await rate() if repetition % 2 == 0 else None
        async with IdleConnections(address, flags.idle_connections) as idle:
            beside = await rate()
            open_at_end.append(idle.still_open())
        pairs.append((alone if alone is not None else await rate(), beside))
    result = {"connections": flags.idle_connections, "open_at_end": min(open_at_end), "pairs": pairs,
              "cost": statistics.median(1 - beside / alone for alone, beside in pairs)}
    say(f"{result['open_at_end']} idle connections cost {100 * result['cost']:.1f} %")
    return result


def idle_table(result):
    return report.table(("idle connections", "open at the end", "tokens/s without", "with", "cost"),
                        [(result["connections"], result["open_at_end"],
                          f"{statistics.median(a for a, _ in result['pairs']):.1f}",
                          f"{statistics.median(b for _, b in result['pairs']):.1f}", f"{100 * result['cost']:.1f} %")])


async def fairness(address, flags, say):
    """Seconds to the first token of one client: alone, beside one running answer of another, and in that one's flood. The
    server knows both by their keys, "polite" and "flood"."""
    source = PromptSource(flags.seed, {"gsm8k": 1.0})
    numbers = iter(range(10**9))
    polite, flood = address.with_key("polite"), address.with_key("flood")

    async def first_tokens():
        requests = [source.numbered(4, next(numbers)) for _ in range(flags.polite_requests)]
        run = await drive.closed_loop(polite, requests, 1)
        check(run)
        return [answer.first_token_seconds() for answer in run.answers if answer.steps]

    async def beside(count, tokens):
        requests = [source.numbered(tokens, next(numbers), ignore_eos=True) for _ in range(count)]
        running = asyncio.ensure_future(drive.all_at_once(flood, requests))
        await asyncio.sleep(0.5)
        seconds = await first_tokens()
        over = running.done()
        check(await running)
        if over:
            raise RuntimeError("fairness: the other client's requests ended too early; raise --flood-tokens")
        return seconds

    await first_tokens()
    found = {"alone": await first_tokens(), "beside one": await beside(1, flags.context // 2),
             "in the flood": await beside(flags.flood_requests, flags.flood_tokens)}
    result = {name: report.spread(seconds) for name, seconds in found.items()}
    flooded = result["in the flood"]["p50"]
    growth = {name: flooded / result[name]["p50"] for name in ("alone", "beside one")}
    say(f"a flood of {flags.flood_requests}: first token x {growth['alone']:.2f}")
    return {"first_token_seconds": result, "growth_over": growth}


def fairness_table(result):
    rows = [(name, report.milliseconds(figures), "-" if name == "in the flood" else f"{result['growth_over'][name]:.2f}")
            for name, figures in result["first_token_seconds"].items()]
    return report.table(("another client", "first token, p50 / p95 / p99 ms", "in the flood, times this"), rows)
