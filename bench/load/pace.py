"""How running answers keep their pace while a long prompt is read."""

import asyncio
import statistics

import drive
import report
from answers import read_answer
from http_client import Exchange, ask, now
from prompts import PromptSource
from server import characters_a_token, context_of, fit

SETTLE_STEPS, STEPS_AROUND = 20, 80


async def measure(address, flags, view):
    """Seconds between the steps of running answers while the prompt is read, and around it: medians over the repetitions.

    Answers that have become longer take longer steps by themselves, so what the prompt costs shows against the mean of the
    steps before it and after it.
    """
    context = await context_of(address)
    tokens = min(flags.pace_prompt, context - 64)
    source = PromptSource(f"{flags.seed} {view}", {"chat": 1.0}, await characters_a_token(address), most_tokens=context)
    results = [await once(address, flags, source, tokens, context, view) for _ in range(flags.repetitions)]
    result = {key: statistics.median(r[key] for r in results) for key in results[0]}
    for figure in ("mean", "p50", "p95"):
        around = (result[f"before_{figure}"] + result[f"after_{figure}"]) / 2
        result[f"growth_{figure}"] = result[f"during_{figure}"] / around
    return result


def least_events(exchanges):
    return min(sum(data.count(b"data: ") for _, data in exchange.reads) for exchange in exchanges)


async def more_steps(exchanges, tasks, count):
    """Waits until each answer has brought so many more events, or one has ended."""
    count += least_events(exchanges)
    while least_events(exchanges) < count:
        if any(task.done() for task in tasks):
            return
        await asyncio.sleep(0.02)


async def once(address, flags, source, prompt_tokens, context, view):
    text = source.long_prompt(int(1.6 * prompt_tokens))
    long = source.request(1, kind="long", ignore_eos=True).varied(messages=[{"role": "user", "content": text}])
    long = await fit(address, long, prompt_tokens)
    exchanges, tasks = [], []
    for _ in range(flags.pace_running):
        request = source.request(context // 2, ignore_eos=True, use_diffusion_mode=view == "dual")
        exchanges.append(Exchange(0.0))
        tasks.append(asyncio.ensure_future(ask(address, "POST", drive.CHAT, request.body, exchange=exchanges[-1])))
    await more_steps(exchanges, tasks, SETTLE_STEPS)
    begin = now()
    await more_steps(exchanges, tasks, STEPS_AROUND)
    asked = now()
    # Another client: it may borrow from the others' share, the worst case for the answers.
    read = read_answer(await ask(address.as_client(1), "POST", drive.CHAT, long.body))
    await more_steps(exchanges, tasks, STEPS_AROUND)
    end = now()
    running = sum(not task.done() for task in tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    if read.cached_tokens > prompt_tokens // 4:
        raise RuntimeError(f"pace: {read.cached_tokens} tokens of the prompt were known already")
    if not read.finished() or running < len(tasks):
        raise RuntimeError(f"pace: {read.error or 'the answers ended too early'}")
    answers = [read_answer(exchange) for exchange in exchanges]
    gaps = [gap for answer in answers for gap in answer.step_gaps()]
    before = [seconds for time, seconds in gaps if begin <= time <= asked]
    during = [seconds for time, seconds in gaps if asked < time <= read.ended]
    after = [seconds for time, seconds in gaps if read.ended < time <= end]
    if min(len(before), len(after)) < 10 or len(during) < 3:
        raise RuntimeError(f"pace: only {len(before)} steps before, {len(during)} while the prompt was read, {len(after)} after")
    result = {"prompt_tokens": read.prompt_tokens - read.cached_tokens, "prompt_seconds": read.ended - asked,
              "steps_before": len(before), "steps_during": len(during),
              "steps_after": len(after)}
    for name, values in (("before", before), ("during", during), ("after", after)):
        result |= {f"{name}_mean": statistics.mean(values), f"{name}_p50": report.percentile(values, 0.5),
                   f"{name}_p95": report.percentile(values, 0.95), f"{name}_most": max(values)}
    return result


def table(results):
    """`results`: {(prefill mode, view): figures}"""
    return report.table(
        ("prefill mode", "view", "prompt tokens", "read in s", "step before, mean / p50 / p95 / most ms",
         "step meanwhile", "step after", "growth of mean / p50 / p95"),
        [(mode, view, int(r["prompt_tokens"]), f"{r['prompt_seconds']:.2f}",
          *(" / ".join(f"{1e3 * r[f'{when}_{p}']:.1f}" for p in ("mean", "p50", "p95", "most"))
            for when in ("before", "during", "after")),
          " / ".join(f"{r[f'growth_{p}']:.2f}" for p in ("mean", "p50", "p95"))) for (mode, view), r in results.items()])
