"""Tokens a second of both views over the number of clients."""

import statistics

import drive
import report
from prompts import PromptSource
from svg import chart

VIEWS = ("ar", "dual")


async def measure(addresses, flags, say):
    """Two servers take turns at the views. So both get every text once, find nothing of it in their caches, and are compared on
    the same texts; what is peculiar to one of them meets both views."""
    source = PromptSource(flags.seed, {"gsm8k": 0.4, "code": 0.3, "chat": 0.3})
    numbers = iter(range(10**9))
    points = []
    for address in addresses:  # the batch grows to its size, and the cost model meets both views
        for view in VIEWS:
            await drive.closed_loop(address, make(source, flags, numbers, 2 * max(flags.concurrency), view),
                                    max(flags.concurrency))
    for clients in flags.concurrency:
        rates = {view: [] for view in VIEWS}
        for repetition in range(flags.repetitions):
            requests = make(source, flags, numbers, max(flags.least_requests, flags.requests_per_client * clients))
            order = VIEWS if repetition % 2 == 0 else VIEWS[::-1]
            texts = {}
            for view, address in zip(order, addresses):
                run = await drive.closed_loop(address, of_view(requests, view), clients)
                check(run)
                texts[view] = [answer.text for answer in run.answers]
                rates[view].append(report.summary(run, (1e9, 1e9)))
            if texts["ar"] != texts["dual"]:
                raise RuntimeError(f"{clients} clients: the views wrote different texts")
        points.append(point(clients, rates))
        say(f"{clients} clients: " + ", ".join(f"{view} {points[-1][view]['tokens_per_second']:.1f} tokens/s" for view in VIEWS))
    return points


def of_view(requests, view):
    return [request.varied(use_diffusion_mode=view == "dual") for request in requests]


def make(source, flags, numbers, count, view="ar"):
    return of_view([source.numbered(flags.max_tokens, next(numbers)) for _ in range(count)], view)


def check(run):
    errors = [answer.error for answer in run.answers if not answer.finished()]
    if errors:
        raise RuntimeError(f"{len(errors)} requests failed, the first one: {errors[0]}")


def median_of(figures, *path):
    values = []
    for figure in figures:
        for key in path:
            figure = figure[key]
        values.append(figure)
    return statistics.median(values)


def point(clients, rates):
    result = {"clients": clients}
    for view, figures in rates.items():
        result[view] = {"tokens_per_second": median_of(figures, "busy_tokens_per_second"),
                        "all": [figure["busy_tokens_per_second"] for figure in figures],
                        "first_token_p50": median_of(figures, "first_token_seconds", "p50"),
                        "first_token_p95": median_of(figures, "first_token_seconds", "p95"),
                        "token_p50": median_of(figures, "token_seconds", "p50"),
                        "token_p95": median_of(figures, "token_seconds", "p95"),
                        "tokens_per_cycle": median_of(figures, "tokens_per_cycle")}
    ratios = [dual / ar for ar, dual in zip(result["ar"]["all"], result["dual"]["all"])]
    result["dual_to_ar"] = {"median": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}
    return result


def table(points):
    one = points[0]["ar"]["tokens_per_second"]
    rows = []
    for p in points:
        ratio = p["dual_to_ar"]
        rows.append((p["clients"], f"{p['ar']['tokens_per_second']:.1f}", f"{p['dual']['tokens_per_second']:.1f}",
                     f"{ratio['median']:.3f} ({ratio['least']:.2f} to {ratio['most']:.2f})",
                     f"{p['ar']['tokens_per_second'] / one:.2f}", f"{p['dual']['tokens_per_cycle']:.2f}",
                     *(f"{1e3 * p[view]['first_token_p50']:.0f} / {1e3 * p[view]['first_token_p95']:.0f}" for view in VIEWS),
                     *(f"{1e3 * p[view]['token_p50']:.0f} / {1e3 * p[view]['token_p95']:.0f}" for view in VIEWS)))
    return report.table(("clients", "AR, tokens/s", "dual, tokens/s", "dual : AR", "AR : AR of the first row",
                         "tokens per cycle, dual", "first token AR, p50 / p95 ms", "dual", "between tokens AR, p50 / p95 ms",
                         "dual"), rows)


def plot(points):
    return chart("Throughput over concurrent requests", "concurrent requests", "tokens a second",
                 {view: [(p["clients"], p[view]["tokens_per_second"]) for p in points] for view in VIEWS}, log_x=True)
