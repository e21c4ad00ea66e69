"""What HTTP, JSON, tokenising and the hand-over between threads cost: the same requests through the server and through the
engine alone (bench/engine_bench.cc)."""

import json
import statistics
import subprocess
import tempfile

import drive
import report
from prompts import PromptSource
from server import chat_token_ids
from throughput import check


async def measure(address, flags, clients, say):
    """`address`: of a server with decode_batch_size `clients`. Both get all requests at once."""
    source = PromptSource(flags.seed + clients, {"gsm8k": 0.4, "code": 0.3, "chat": 0.3})
    numbers = iter(range(10**9))

    def make(count):
        return [source.numbered(flags.max_tokens, next(numbers), use_diffusion_mode=False) for _ in range(count)]

    warm_up = make(2 * clients)
    await drive.all_at_once(address, warm_up)
    pairs = []
    for repetition in range(flags.repetitions):
        requests = make(max(flags.least_requests, flags.requests_per_client * clients))
        sides = [lambda: through_server(address, requests), lambda: engine_alone(address, flags, clients, warm_up, requests)]
        seconds = [0.0, 0.0]
        for side in (0, 1) if repetition % 2 == 0 else (1, 0):
            seconds[side], tokens = await sides[side]()
        pairs.append({"server_seconds": seconds[0], "engine_seconds": seconds[1], "tokens": tokens})
    result = {"clients": clients, "pairs": pairs,
              "server_tokens_per_second": statistics.median(p["tokens"] / p["server_seconds"] for p in pairs),
              "engine_tokens_per_second": statistics.median(p["tokens"] / p["engine_seconds"] for p in pairs),
              "share": statistics.median(1 - p["engine_seconds"] / p["server_seconds"] for p in pairs)}
    say(f"{clients} at once: the server adds {100 * result['share']:.1f} % of the time")
    return result


async def through_server(address, requests):
    run = await drive.all_at_once(address, requests)
    check(run)
    return run.seconds(), sum(answer.tokens for answer in run.answers)


async def engine_alone(address, flags, clients, warm_up, requests):
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, part in (("warm-up", warm_up), ("requests", requests)):
            paths.append(f"{folder}/{name}.jsonl")
            with open(paths[-1], "w") as file:
                for request in part:
                    ids = await chat_token_ids(address, request.body["messages"])
                    file.write(json.dumps({"token_ids": ids, "max_tokens": request.body["max_tokens"]}) + "\n")
        said = subprocess.run([flags.engine_bench, flags.model, flags.weights, str(flags.context), str(clients), *paths],
                              check=True, stdout=subprocess.PIPE, text=True).stdout
    figures = json.loads(said)
    return figures["seconds"], figures["tokens"]


def table(results):
    return report.table(("requests at once", "engine alone, tokens/s", "through the server", "share of the time that HTTP adds"),
                        [(r["clients"], f"{r['engine_tokens_per_second']:.1f}", f"{r['server_tokens_per_second']:.1f}",
                          f"{100 * r['share']:.1f} % ({100 * least(r):.1f} to {100 * most(r):.1f})") for r in results])


def shares(result):
    return [1 - p["engine_seconds"] / p["server_seconds"] for p in result["pairs"]]


def least(result):
    return min(shares(result))


def most(result):
    return max(shares(result))
