"""A long run against a server that is best built with a sanitizer: random requests, some of which are cut off, beside clients
that misbehave. Then every finished answer is compared with the answer to the same request alone, on a fresh server.

  soak.py --program build-asan/orthrus --minutes 30
  setarch -R soak.py --program build-tsan/orthrus --minutes 5      (clang's thread sanitizer needs addresses as they are)

Exit status 0 where no answer differs, no request fails, nothing bad is logged, memory stays flat and the server ends well."""

import argparse
import asyncio
import json
import os
import pathlib
import random
import statistics
import sys

import metrics
from bad_clients import bad_client
from flags import add_server_flags, range_of, start_server
from http_client import now
from prompts import PromptSource
from server import allow_many_files, characters_a_token, context_of, fit
from workload import Tally, client, compare_alone, make_pool

# Freed memory that is kept from being used again would look like growth.
SANITIZERS = {"ASAN_OPTIONS": "quarantine_size_mb=16:malloc_context_size=8", "TSAN_OPTIONS": "history_size=2"}
JUDGED_FROM = 40  # samples of the memory
GROWTH_SHARE, GROWTH_BYTES = 0.03, 16 << 20  # over the second half; what is allowed is the larger of the two


def parse_flags(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--bad-clients", type=int, default=4)
    parser.add_argument("--distinct", type=int, default=300, help="different requests, of which each is asked for many times")
    parser.add_argument("--cancels", type=float, default=0.2, help="share of requests that are cut off")
    parser.add_argument("--max-tokens", type=range_of, default=(1, 96))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path, help="file of the figures")
    add_server_flags(parser)
    # The small model, and memory for one and a half of its longest sequences: it runs out all the time.
    parser.set_defaults(model="tests/data/tiny/checkpoint", context=1024, kv_cache_memory_budget_gb=0.003)
    return parser.parse_args(arguments)


async def make_requests(address, flags):
    room = await context_of(address) - 4 * flags.max_tokens[1]
    source = PromptSource(flags.seed, {"gsm8k": 0.4, "code": 0.2, "chat": 0.3, "long": 0.1}, await characters_a_token(address),
                          (200, 4000), room)
    growing = flags.distinct // 2  # take far more memory than they begin with
    pool = make_pool(source, flags.distinct - growing, flags.max_tokens)
    pool += [request.varied(ignore_eos=True) for request in make_pool(source, growing, tuple(4 * n for n in flags.max_tokens))]
    return [await fit(address, request, room) for request in pool]


async def soak(server, flags):
    """Runs all clients; gives (pool, tally, kinds of bad clients, complaints, resident bytes over time, /metrics at rest)."""
    pool = await make_requests(server.address, flags)
    end = now() + 60 * flags.minutes
    more = lambda: now() < end and server.process.poll() is None
    tally, counts, complaints = Tally(), {}, []

    async def resident():
        return server.resident_bytes()

    async with metrics.Course(min(5.0, 0.6 * flags.minutes), resident) as memory:
        good = [client(server.address.as_client(i + 1), pool, random.Random(f"{flags.seed} {i}"), tally, more, flags.cancels)
                for i in range(flags.clients)]
        bad = [bad_client(server.address, random.Random(f"{flags.seed} bad {i}"), more, counts, complaints)
               for i in range(flags.bad_clients)]
        await asyncio.gather(*good, *bad)
    alive = server.process.poll() is None
    return (pool, tally, counts, complaints, [size for _, size in memory.samples],
            await metrics.at_rest(server.address) if alive else {})


def growth(sizes):
    """Bytes from the beginning to the end of the second half of a run, medians of ten samples each."""
    half = sizes[len(sizes) // 2:]
    return statistics.median(half[-10:]) - statistics.median(half[:10])


def judge_memory(sizes, problems):
    if len(sizes) < JUDGED_FROM:
        return "not judged: the run was too short"
    grown = growth(sizes)
    allowed = max(GROWTH_BYTES, GROWTH_SHARE * sizes[len(sizes) // 2])
    if grown > allowed:
        problems.append(f"resident memory grew by {grown / 1e6:.1f} MB in the second half, allowed {allowed / 1e6:.1f}")
    return f"{grown / 1e6:+.1f} MB in the second half"


def main(arguments):
    flags = parse_flags(arguments)
    allow_many_files()
    environment = {name: os.environ.get(name, value) for name, value in SANITIZERS.items()}
    problems = []
    with start_server(flags, environment=environment) as server:
        pool, tally, counts, complaints, sizes, values = asyncio.run(soak(server, flags))
        status = server.stop()
        problems += [f"log: {line}" for line in server.faults()]
        if status != 0:
            problems.append(f"the server ended with {status}: {server.log_path}")
        server.keep_log = bool(problems)
    with start_server(flags, environment=environment) as server:
        compared, differences = asyncio.run(compare_alone(server.address, pool, tally))
    problems += tally.errors + complaints + differences
    problems += [f"left over: {what}" for what in metrics.held(values)] if values else ["the server ended in the middle"]
    memory = judge_memory(sizes, problems)
    if tally.finished == 0:
        problems.append("no answer finished")
    figures = {"minutes": flags.minutes, "sent": tally.sent, "finished": tally.finished, "cancelled": tally.cancelled,
               "tokens": tally.tokens, "compared_alone": compared, "different": len(differences), "bad_clients": counts,
               "preemptions": values.get("orthrus_preemptions_total"), "steps": values.get("orthrus_steps_total"),
               "resident_bytes": sizes, "memory": memory, "problems": problems}
    if flags.json:
        flags.json.write_text(json.dumps(figures, indent=2) + "\n")
    print(f"{tally.sent} requests, {tally.finished} finished with {tally.tokens} tokens, {tally.cancelled} cut off, "
          f"{sum(counts.values())} bad clients; {compared} answers compared with {len(tally.seen)} alone, "
          f"{len(differences)} different; memory {sizes[0] / 1e6:.0f} to {max(sizes) / 1e6:.0f} MB, {memory}; "
          f"{values.get('orthrus_preemptions_total', 0):.0f} preemptions")
    for problem in problems[:40]:
        print("  " + problem)
    print(f"{len(problems)} problems" if problems else "no problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
