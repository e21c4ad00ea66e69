"""Load generator: a mix of real prompts against a running server, or against one that it starts.

  load.py --url http://127.0.0.1:8080 --rate 2 --requests 100      Poisson arrivals, 2 a second
  load.py --concurrency 8 --requests 64 --json load.json           8 clients, on a server of its own
  load.py --scenario article --out build/bench/load                the article's set-up, with its course over time

Prints a table; exit status 1 where a request failed."""

import argparse
import asyncio
import json
import pathlib
import random
import resource
import sys

import drive
import report
import scenarios
from flags import add_server_flags, positive, range_of, start_server
from http_client import Address
from metrics import scheduler_course
from prompts import PromptSource, parse_mix
from server import allow_many_files, characters_a_token, context_of, fit


def parse_flags(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="a server that runs already; else one is started")
    parser.add_argument("--api-key", default="")
    parser.add_argument("--scenario", choices=sorted(scenarios.SCENARIOS))
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--rate", type=positive, help="requests a second, Poisson")
    how.add_argument("--concurrency", type=int, help="clients that ask one after the other (8)")
    parser.add_argument("--requests", type=int, help="in all (64)")
    parser.add_argument("--mix", type=parse_mix, help="shares: gsm8k=0.4,code=0.25,chat=0.3,long=0.05")
    parser.add_argument("--max-tokens", type=range_of, default=(32, 160), help="tokens of an answer, a range (32-160)")
    parser.add_argument("--long-tokens", type=range_of, default=(2000, 8000), help="tokens of long prompts (2000-8000)")
    parser.add_argument("--sampled", type=float, default=0.3, help="share with a temperature and a seed (0.3)")
    parser.add_argument("--ar", action="store_true", help="without the diffusion view")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--slo-first-token", type=positive, default=2.0, help="seconds (2)")
    parser.add_argument("--slo-token", type=positive, default=0.1, help="mean seconds a token (0.1)")
    parser.add_argument("--sample-interval", type=positive, default=0.5, help="seconds between looks at /metrics (0.5)")
    parser.add_argument("--json", type=pathlib.Path, help="file of the figures")
    parser.add_argument("--out", type=pathlib.Path, help="folder for the figures, the table and the chart")
    add_server_flags(parser)
    flags = parser.parse_args(arguments)
    if flags.scenario:
        if flags.url:
            parser.error("--scenario starts a server of its own, so it does not go with --url")
        load = scenarios.SCENARIOS[flags.scenario]["load"]
        flags.concurrency = flags.concurrency or (None if flags.rate else load["clients"])
        flags.requests = flags.requests or load["requests"]
        flags.mix = flags.mix or load.get("mix")
    flags.requests = flags.requests or 64
    if not flags.rate:
        flags.concurrency = flags.concurrency or 8
    return flags


async def make_requests(address, flags):
    room = await context_of(address) - flags.max_tokens[1]
    source = PromptSource(flags.seed, flags.mix, await characters_a_token(address), flags.long_tokens, room)
    members = {"use_diffusion_mode": False} if flags.ar else {}
    requests = [source.request(flags.max_tokens, flags.sampled, **members) for _ in range(flags.requests)]
    return [await fit(address, request, room) for request in requests]


async def run_load(address, flags):
    """The figures; `course` has the samples of /metrics."""
    requests = await make_requests(address, flags)
    before = resource.getrusage(resource.RUSAGE_SELF)
    async with scheduler_course(address, flags.sample_interval) as course:
        if flags.rate:
            run = await drive.open_loop(address, requests, flags.rate, random.Random(flags.seed))
        else:
            run = await drive.closed_loop(address, requests, flags.concurrency)
    after = resource.getrusage(resource.RUSAGE_SELF)
    figures = report.summary(run, (flags.slo_first_token, flags.slo_token))
    figures["load"] = {"rate": flags.rate, "concurrency": flags.concurrency, "seed": flags.seed,
                       "kinds": {kind: sum(r.kind == kind for r in requests) for kind in sorted({r.kind for r in requests})}}
    figures["client_cpu_seconds"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    figures["scheduler"] = scenarios.course_summary(course.samples)
    figures["course"] = [{"seconds": time, **sample} for time, sample in course.samples]
    return figures, course.samples


def write(flags, name, figures, samples, text):
    if flags.json:
        flags.json.write_text(json.dumps(figures, indent=2) + "\n")
    if flags.out:
        flags.out.mkdir(parents=True, exist_ok=True)
        (flags.out / f"{name}.json").write_text(json.dumps(figures, indent=2) + "\n")
        (flags.out / f"{name}.md").write_text(text)
        (flags.out / f"{name}.svg").write_text(scenarios.course_chart(name, samples))


def main(arguments):
    flags = parse_flags(arguments)
    allow_many_files()
    if flags.url:
        figures, samples = asyncio.run(run_load(Address.of(flags.url, flags.api_key), flags))
    else:
        over = scenarios.SCENARIOS[flags.scenario]["server"] if flags.scenario else {}
        with start_server(flags, **over) as server:
            figures, samples = asyncio.run(run_load(server.address, flags))
    name = flags.scenario or (f"rate {flags.rate:g}" if flags.rate else f"{flags.concurrency} clients")
    text = report.table(report.HEAD, [report.row(name, figures)])
    if flags.scenario:
        text += "\n" + scenarios.course_table(samples)
    print(text, end="")
    for error, count in figures["errors"].items():
        print(f"{count} x {error}")
    write(flags, (flags.scenario or "load"), figures, samples, text)
    return 1 if figures["errors"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
