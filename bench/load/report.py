"""Figures of a run, and tables of them."""

import math


def percentile(values, share):
    """The least value that `share` of all reach or stay below; None of none."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def spread(values):
    return {"p50": percentile(values, 0.5), "p95": percentile(values, 0.95), "p99": percentile(values, 0.99)}


def within(answer, slo):
    """Whether an answer kept the limits (seconds to the first token, mean seconds a token)."""
    first, mean = answer.first_token_seconds(), answer.mean_token_seconds()
    return answer.finished() and first is not None and first <= slo[0] and (mean is None or mean <= slo[1])


def summary(run, slo):
    """The figures of a Run; seconds, tokens."""
    done = [answer for answer in run.answers if answer.finished()]
    errors = {}
    for answer in run.answers:
        if answer.error:
            errors[answer.error] = errors.get(answer.error, 0) + 1
    cycles = sum(answer.cycles for answer in done)
    tokens = sum(answer.tokens for answer in done)
    drafted = sum(answer.drafted for answer in done)
    accepted = sum(answer.accepted for answer in done)
    kept = sum(within(answer, slo) for answer in done)
    seconds = run.seconds()
    return {
        "requests": len(run.answers),
        "finished": len(done),
        "errors": errors,
        "seconds": seconds,
        "tokens": tokens,
        "tokens_per_second": tokens / seconds,
        "busy_tokens_per_second": run.busy_tokens_per_second(),
        "requests_per_second": len(done) / seconds,
        "slo": {"first_token_seconds": slo[0], "token_seconds": slo[1]},
        "within_slo": kept,
        "requests_per_second_within_slo": kept / seconds,
        "first_token_seconds": spread([a.first_token_seconds() for a in done if a.steps]),
        "token_seconds": spread([gap for a in done for gap in a.token_gaps()]),
        "prompt_tokens": sum(answer.prompt_tokens for answer in done),
        "cached_prompt_tokens": sum(answer.cached_tokens for answer in done),
        "tokens_per_cycle": (cycles + accepted) / cycles if cycles else None,
        "acceptance": accepted / drafted if drafted else None,
    }


def cell(value, pattern="{:.1f}"):
    if value is None:
        return "-"
    return pattern.format(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)


def table(head, rows):
    """Markdown."""
    lines = [head, ["---"] * len(head)] + [list(row) for row in rows]
    return "\n".join("| " + " | ".join(str(value) for value in line) + " |" for line in lines) + "\n"


def milliseconds(figures):
    """`p50 / p95 / p99` in ms."""
    return " / ".join(cell(None if figures[p] is None else 1e3 * figures[p], "{:.0f}") for p in ("p50", "p95", "p99"))


HEAD = ("run", "requests", "errors", "tokens/s", "requests/s", "within SLO, requests/s", "first token, p50 / p95 / p99 ms",
        "between tokens, p50 / p95 / p99 ms", "tokens per cycle")


def row(name, figures):
    return (name, figures["requests"], sum(figures["errors"].values()), cell(figures["tokens_per_second"]),
            cell(figures["requests_per_second"], "{:.2f}"), cell(figures["requests_per_second_within_slo"], "{:.2f}"),
            milliseconds(figures["first_token_seconds"]), milliseconds(figures["token_seconds"]),
            cell(figures["tokens_per_cycle"], "{:.2f}"))
