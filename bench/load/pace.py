"""How running answers keep their pace while a long prompt is read."""

import asyncio
import statistics

import drive
import report
from answers import read_answer
from http_client import Exchange, ask, now
from prompts import PromptSource
from server import characters_a_token, context_of, fit

SETTLE_STEPS, STEPS_BEFORE = 20, 80


async def measure(address, flags, view):
    """Seconds between the steps of running answers, before and while the prompt is read: medians over the repetitions."""
    context = await context_of(address)
    tokens = min(flags.pace_prompt, context - 64)
    source = PromptSource(f"{flags.seed} {view}", {"chat": 1.0}, await characters_a_token(address), most_tokens=context)
    results = [await once(address, flags, source, tokens, context, view) for _ in range(flags.repetitions)]
    result = {key: statistics.median(r[key] for r in results) for key in results[0]}
    for figure in ("mean", "p50", "p95"):
        result[f"growth_{figure}"] = result[f"during_{figure}"] / result[f"before_{figure}"]
    return result


async def steps(exchanges, tasks, count):
    """Waits until each answer has brought so many events, or one has ended."""
    while min(sum(data.count(b"data: ") for _, data in exchange.reads) for exchange in exchanges) < count:
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
    await steps(exchanges, tasks, SETTLE_STEPS)
    begin = now()
    await steps(exchanges, tasks, SETTLE_STEPS + STEPS_BEFORE)
    asked = now()
    read = read_answer(await ask(address, "POST", drive.CHAT, long.body))
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
    if len(before) < 10 or len(during) < 3:
        raise RuntimeError(f"pace: only {len(before)} steps before and {len(during)} while the prompt was read")
    result = {"prompt_tokens": read.prompt_tokens - read.cached_tokens, "prompt_seconds": read.ended - asked,
              "steps_before": len(before), "steps_during": len(during)}
    for name, values in (("before", before), ("during", during)):
        result |= {f"{name}_mean": statistics.mean(values), f"{name}_p50": report.percentile(values, 0.5),
                   f"{name}_p95": report.percentile(values, 0.95), f"{name}_most": max(values)}
    return result


def table(results):
    """`results`: {(prefill mode, view): figures}"""
    return report.table(
        ("prefill mode", "view", "prompt tokens", "read in s", "step before, mean / p50 / p95 / most ms",
         "step meanwhile", "growth of mean / p50 / p95"),
        [(mode, view, int(r["prompt_tokens"]), f"{r['prompt_seconds']:.2f}",
          *(" / ".join(f"{1e3 * r[f'{when}_{p}']:.1f}" for p in ("mean", "p50", "p95", "most"))
            for when in ("before", "during")),
          " / ".join(f"{r[f'growth_{p}']:.2f}" for p in ("mean", "p50", "p95"))) for (mode, view), r in results.items()])
