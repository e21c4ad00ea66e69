"""Measures the server: starts it as each part needs it and writes sweep.json, sweep.md and sweep.svg.

Parts:
  throughput  tokens a second over 1, 2, 4, ..., 64 clients, AR and dual view in turns
  pace        time between steps while a long prompt is read, for both prefill modes
  overhead    the server against the engine alone on the same requests
  idle        what 1,000 idle connections cost
  fairness    first-token time of a client while another one floods the server

Wants a machine with nothing else to do. Targets are printed beside the figures; a miss is said, and is no failure."""

import argparse
import asyncio
import json
import pathlib
import sys

import neighbours
import overhead
import pace
import throughput
from flags import add_server_flags, range_of, start_server
from server import allow_many_files

PARTS = ("throughput", "pace", "overhead", "idle", "fairness")


def parse_flags(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="which of them (all)")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/bench/load"))
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--concurrency", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2, 4, 8, 16, 32, 64])
    parser.add_argument("--requests-per-client", type=int, default=3)
    parser.add_argument("--least-requests", type=int, default=8, help="of a run, where the clients are few")
    parser.add_argument("--max-tokens", type=int, default=256)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pace-prompt", type=int, default=4096, help="tokens of the long prompt")
    parser.add_argument("--pace-running", type=int, default=4, help="answers that are being written meanwhile")
    parser.add_argument("--overhead-clients", type=lambda text: [int(n) for n in text.split(",")], default=[1, 8, 32])
    parser.add_argument("--engine-bench", default="build/bench/orthrus_engine_bench")
    parser.add_argument("--idle-connections", type=int, default=1000)
    parser.add_argument("--flood-requests", type=int, default=100)
    parser.add_argument("--flood-tokens", type=int, default=128)
    parser.add_argument("--polite-requests", type=int, default=7)
    add_server_flags(parser)
    flags = parser.parse_args(arguments)
    unknown = set(flags.parts) - set(PARTS)
    if unknown:
        parser.error(f"expected parts out of {', '.join(PARTS)}, found {', '.join(sorted(unknown))}")
    flags.parts = flags.parts or list(PARTS)
    return flags


def say(line):
    print(line, file=sys.stderr, flush=True)


def met(good):
    return "met" if good else "MISSED"


def run_throughput(flags):
    batch = {"decode_batch_size": max(flags.concurrency)}
    with start_server(flags, **batch) as one, start_server(flags, **batch) as other:
        points = asyncio.run(throughput.measure([one.address, other.address], flags, say))
    rate = {p["clients"]: p["ar"]["tokens_per_second"] for p in points}
    lines = [f"Dual at least 0.97 of AR everywhere: {met(all(p['dual_to_ar']['median'] >= 0.97 for p in points))}."]
    for clients, wanted in ((8, 3.5), (32, 5.0)):
        if 1 in rate and clients in rate:
            times = rate[clients] / rate[1]
            lines.append(f"AR with {clients} clients {times:.2f} times one client's, asked {wanted}: {met(times >= wanted)}.")
    (flags.out / "sweep.svg").write_text(throughput.plot(points))
    return points, throughput.table(points) + "\n" + "\n".join(lines) + "\n"


def run_pace(flags):
    results = {}
    for mode in ("mixed", "separate"):
        flags.prefill_mode, given = mode, flags.prefill_mode
        with start_server(flags) as server:
            for view in throughput.VIEWS:
                results[mode, view] = asyncio.run(pace.measure(server.address, flags, view))
                say(f"{mode}, {view}: steps take {results[mode, view]['growth_mean']:.2f} times as long")
        flags.prefill_mode = given
    good = all(r["growth_mean"] <= 2 for r in results.values())
    return ({" ".join(key): value for key, value in results.items()},
            pace.table(results) + f"\nThe mean time between steps grows at most 2x: {met(good)}.\n")


def run_overhead(flags):
    results = []
    for clients in flags.overhead_clients:
        flags.decode_batch_size, given = clients, flags.decode_batch_size
        with start_server(flags, prefill_batch_size=16) as server:
            results.append(asyncio.run(overhead.measure(server.address, flags, clients, say)))
        flags.decode_batch_size = given
    good = all(r["share"] <= 0.05 for r in results)
    return results, overhead.table(results) + f"\nAt most 5 %: {met(good)}.\n"


def run_idle(flags):
    with start_server(flags) as server:
        result = asyncio.run(neighbours.idle_cost(server.address, flags, say))
    return result, neighbours.idle_table(result) + f"\nAt most 2 %: {met(result['cost'] <= 0.02)}.\n"


def run_fairness(flags):
    with start_server(flags, "--api-key", "polite", "--api-key", "flood") as server:
        result = asyncio.run(neighbours.fairness(server.address, flags, say))
    over = result["growth_over"]
    verdict = (f"At most 2 times that of a client that is alone: {met(over['alone'] <= 2)}; of one beside a single answer: "
               f"{met(over['beside one'] <= 2)}.")
    return result, f"{neighbours.fairness_table(result)}\n{verdict}\n"


def main(arguments):
    flags = parse_flags(arguments)
    allow_many_files()
    flags.out.mkdir(parents=True, exist_ok=True)
    figures, text = {"model": flags.model, "weights": flags.weights}, ""
    for part in flags.parts:
        figures[part], table = globals()[f"run_{part}"](flags)
        text += f"## {part}\n\n{table}\n"
        (flags.out / "sweep.json").write_text(json.dumps(figures, indent=2) + "\n")
        (flags.out / "sweep.md").write_text(text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
