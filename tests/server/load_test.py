"""Many clients at once on the small test checkpoint, with so little memory that answers are preempted: every answer is the one
that its request has alone, on a server that has done nothing else; the metrics add up; clients that misbehave disturb nobody.

Usage: load_test.py PROGRAM SOURCE_ROOT"""

import asyncio
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/load"))

import bad_clients
import metrics
import workload
from prompts import PromptSource
from server import Server, characters_a_token, fit

CLIENTS, REQUESTS = 16, 200
MIXED, GROWING = range(60), range(60, 90)  # of the pool; the latter take far more memory than they begin with
OPTIONS = ("-c", 1024, "--kv-cache-memory-budget-gb", 0.003)  # memory of one sequence and a half
problems = []


def expect(good, what):
    if not good:
        problems.append(what)


async def make_pool(address):
    mix = {"gsm8k": 0.4, "code": 0.2, "chat": 0.3, "long": 0.1}
    source = PromptSource(7, mix, await characters_a_token(address), (200, 900))
    pool = workload.make_pool(source, len(MIXED), (1, 64))
    pool += [source.request((200, 400), sampled=0.5, kind="chat", ignore_eos=True) for _ in GROWING]
    return [await fit(address, request, 1024 - request.body["max_tokens"]) for request in pool]


async def crowd(address, pool, tally, requests, cancels, among):
    """So many requests of all clients together, each of which has an address of its own."""
    numbers = iter(range(requests))
    more = lambda: next(numbers, None) is not None

    def client(i):
        return workload.client(address.as_client(i + 1), pool, random.Random(f"{i} {among}"), tally, more, cancels, among)

    await asyncio.gather(*(client(i) for i in range(CLIENTS)))


def check_metrics(before, after, tally):
    """Cut-off requests may have ended before or after the server heard of that, so they leave room."""
    outcomes = {outcome: metrics.total(after, "orthrus_requests_total", outcome=outcome)
                for outcome in ("stop", "length", "cancelled", "error", "rejected")}
    ended = outcomes["stop"] + outcomes["length"] + outcomes["cancelled"]
    print({name: int(n) for name, n in outcomes.items()}, f"preemptions {after['orthrus_preemptions_total']:.0f},",
          f"steps {after['orthrus_steps_total']:.0f}, prefix hits {after['orthrus_prefix_hits_total']:.0f}")

    def between(name, least, most):
        value = metrics.total(after, name)
        expect(least <= value <= most, f"{name}: {value:.0f}, expected {least} to {most}")

    def same(one, other):
        values = [metrics.total(after, name) for name in (one, other)]
        expect(values[0] == values[1], f"{one}: {values[0]:.0f}, but {other}: {values[1]:.0f}")

    expect(outcomes["error"] == outcomes["rejected"] == 0, f"outcomes {outcomes}")
    expect(tally.finished <= ended <= tally.sent, f"{ended:.0f} answers of {tally.finished} finished and {tally.sent} sent")
    expect(outcomes["cancelled"] <= tally.cancelled, f"{outcomes['cancelled']:.0f} cancelled, we cut off {tally.cancelled}")
    between("orthrus_generated_tokens_total", tally.tokens + tally.cancelled_tokens, tally.tokens + tally.cancelled_most)
    between("orthrus_prompt_tokens_total", tally.prompt_tokens, float("inf"))
    between("orthrus_draft_tokens_total", max(1, tally.drafted), float("inf"))
    between("orthrus_accepted_tokens_total", max(1, tally.accepted), metrics.total(after, "orthrus_draft_tokens_total"))
    between("orthrus_request_seconds_count", ended, ended)
    between("orthrus_time_to_first_token_seconds_count", tally.finished, ended)
    between("orthrus_steps_total", 1, metrics.total(after, "orthrus_forward_passes_total") * 8)
    between("orthrus_preemptions_total", 1, float("inf"))  # else this test had too much memory to be one
    between("orthrus_prefix_hits_total", 1, float("inf"))
    same("orthrus_drafted_at_position_total", "orthrus_draft_tokens_total")
    same("orthrus_accepted_at_position_total", "orthrus_accepted_tokens_total")
    expect(metrics.total(before, "orthrus_kv_blocks") in (0, metrics.total(after, "orthrus_kv_blocks")), "blocks were lost")


async def run(address):
    """(pool, tallies)"""
    pool = await make_pool(address)
    before = await metrics.read(address)
    tally = workload.Tally()
    await crowd(address, pool, tally, REQUESTS, 0.2, MIXED)
    await crowd(address, pool, tally, 3 * CLIENTS, 0.0, GROWING)
    after = await metrics.at_rest(address)
    expect(not metrics.held(after), f"left over: {metrics.held(after)}")
    check_metrics(before, after, tally)
    beside = workload.Tally()
    rude = (kind(address, random.Random(kind.__name__)) for kind in bad_clients.KINDS)
    _, *complaints = await asyncio.gather(crowd(address, pool, beside, REQUESTS // 4, 0.0, MIXED), *rude)
    problems.extend(complaint for complaint in complaints if complaint)
    held = metrics.held(await metrics.at_rest(address))
    expect(not held, f"left over after the bad clients: {held}")
    return pool, (tally, beside)


async def compare(address, pool, tallies):
    for tally in tallies:
        compared, differences = await workload.compare_alone(address, pool, tally)
        print(f"{tally.sent} requests, {tally.finished} finished, {tally.cancelled} cut off; {compared} compared")
        problems.extend(tally.errors + differences)
        expect(compared == tally.finished > 0, "not every answer was compared")
    expect(tallies[0].cancelled > 0, "nothing was cut off")


def main(program, root):
    checkpoint = pathlib.Path(root) / "tests/data/tiny/checkpoint"
    with Server(program, checkpoint, *OPTIONS) as server:
        pool, tallies = asyncio.run(run(server.address))
        status = server.stop()
        problems.extend(f"log: {line}" for line in server.faults())
        expect(status == 0, f"the server ended with {status}")
    with Server(program, checkpoint, *OPTIONS) as server:
        asyncio.run(compare(server.address, pool, tallies))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
