"""Named set-ups of server and load."""

import report
from svg import chart

# The article's: prefill and decode scheduled apart, a memory budget, a batch that begins with 4 and follows the memory
# (split above 85 % of the budget, merged below 60 %), looked at every 500 ms.
ARTICLE = {"prefill_batch_size": 16, "decode_batch_size": 8, "prefill_mode": "separate", "kv_cache_memory_budget_gb": 40,
           "memory_utilization_target": 0.75, "dynamic_adjust_interval_ms": 500}

SCENARIOS = {
    "article": {"server": ARTICLE, "load": {"clients": 24, "requests": 120}},
    # A budget that this load fills, so that the thresholds are met: room for about three long prompts.
    "article-tight": {"server": {**ARTICLE, "kv_cache_memory_budget_gb": 0.25},
                      "load": {"clients": 24, "requests": 120, "mix": {"gsm8k": 0.4, "code": 0.2, "chat": 0.2, "long": 0.2}}},
}


def course_table(samples, most=25):
    """At most so many rows, evenly chosen."""
    step = max(1, -(-len(samples) // most))
    return report.table(
        ("seconds", "waiting", "prefilling", "decoding", "batch", "KV in use", "preemptions"),
        [(f"{time:.1f}", s["waiting"], s["prefilling"], s["decoding"], s["batch"], f"{100 * s['kv_utilization']:.0f} %",
          s["preemptions"]) for time, s in samples[::step]])


def course_chart(name, samples):
    return chart(f"{name}: batch, answers and KV memory over time", "seconds", "answers; per cent of the KV budget", {
        "batch": [(time, s["batch"]) for time, s in samples],
        "decoding": [(time, s["decoding"]) for time, s in samples],
        "waiting": [(time, s["waiting"]) for time, s in samples],
        "KV in use, %": [(time, 100 * s["kv_utilization"]) for time, s in samples],
    })


def course_summary(samples):
    uses = [s["kv_utilization"] for _, s in samples]
    batches = [s["batch"] for _, s in samples]
    return {"batch": {"first": batches[0], "most": max(batches), "last": batches[-1]},
            "kv_utilization": {"median": report.percentile(uses, 0.5), "most": max(uses)},
            "preemptions": samples[-1][1]["preemptions"], "samples": len(samples)}
