"""Flags that the programs here share."""

import argparse

from server import Server


def add_server_flags(parser):
    group = parser.add_argument_group("server", "what is started; it ends with the run")
    group.add_argument("--program", default="build/orthrus")
    group.add_argument("-m", "--model", default="smollm2-135m")
    group.add_argument("--weights", default="auto")
    group.add_argument("--threads", type=int, default=0)
    group.add_argument("-c", "--context", type=int, default=8192)
    group.add_argument("--decode-batch-size", type=int)
    group.add_argument("--prefill-batch-size", type=int)
    group.add_argument("--prefill-mode", choices=("mixed", "separate"))
    group.add_argument("--kv-cache-memory-budget-gb", type=float)
    group.add_argument("--memory-utilization-target", type=float)
    group.add_argument("--dynamic-adjust-interval-ms", type=int)
    group.add_argument("--max-queue", type=int, default=100000)


SCHEDULER = ("decode_batch_size", "prefill_batch_size", "prefill_mode", "kv_cache_memory_budget_gb", "memory_utilization_target",
             "dynamic_adjust_interval_ms")


def server_options(flags, **over):
    """The command line of `orthrus serve`; `over`: values that count where the user has set none."""
    options = ["--weights", flags.weights, "--threads", flags.threads, "-c", flags.context, "--max-queue", flags.max_queue]
    for name in SCHEDULER:
        value = getattr(flags, name)
        value = over.get(name) if value is None else value
        if value is not None:
            options += ["--" + name.replace("_", "-"), value]
    return options


def start_server(flags, *more, environment=None, **over):
    return Server(flags.program, flags.model, *server_options(flags, **over), *more, environment=environment)


def positive(text):
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"expected a number above 0, found {text}")
    return value


def range_of(text):
    """`N` or `LEAST-MOST`: a pair of whole numbers."""
    least, _, most = text.partition("-")
    pair = int(least), int(most or least)
    if not 1 <= pair[0] <= pair[1]:
        raise argparse.ArgumentTypeError(f"expected LEAST-MOST, found {text}")
    return pair
