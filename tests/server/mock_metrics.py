"""What /metrics of the canned server says: every metric of `orthrus serve`, with values that move."""

import time

BEGUN = time.time()
COUNTERS = {"prompt_tokens": 900, "cached_prompt_tokens": 400, "generated_tokens": 400, "cycles": 160, "forward_passes": 300,
            "steps": 120, "draft_tokens": 600, "accepted_tokens": 240, "preemptions": 0.2, "prefix_hits": 3, "queue_rejected": 0.5}
GAUGES = {"batch_size": 6, "kv_utilization": 0.6, "kl_mean": 0.4, "conflict_rate": 0.3, "http_connections": 12}
HISTOGRAMS = {"time_to_first_token_seconds": 0.2, "inter_token_latency_seconds": 0.02, "request_seconds": 2.0}


def metrics():
    age = time.time() - BEGUN + 1
    lines = []

    def family(name, kind, *samples):
        lines.append(f"# TYPE orthrus_{name} {kind}")
        lines.extend(f"orthrus_{sample} {value}" for sample, value in samples)

    family("requests", "gauge", *((f'requests{{state="{state}"}}', n)
                                  for state, n in (("waiting", 2), ("prefilling", 1), ("decoding", 6))))
    family("kv_blocks", "gauge", *((f'kv_blocks{{state="{state}"}}', n)
                                   for state, n in (("in_use", 60), ("idle", 30), ("free", 10))))
    family("requests_total", "counter", *((f'requests_total{{endpoint="{endpoint}",outcome="{outcome}"}}', age * 0.3)
                                          for endpoint in ("/v1/chat/completions", "/v1/completions")
                                          for outcome in ("stop", "length", "cancelled", "error", "rejected")))
    for name, per_second in COUNTERS.items():
        family(f"{name}_total", "counter", (f"{name}_total", age * per_second))
    for name, value in GAUGES.items():
        family(name, "gauge", (name, value))
    for kind, share in (("drafted", 1.0), ("accepted", 0.7)):
        family(f"{kind}_at_position_total", "counter", *((f'{kind}_at_position_total{{position="{i}"}}', age * 100 * share ** i)
                                                         for i in range(1, 8)))
    for name, middle in HISTOGRAMS.items():
        count = age * 5
        family(name, "histogram", *((f'{name}_bucket{{le="{edge}"}}', count * share) for edge, share in
                                    ((middle / 2, 0.2), (middle, 0.5), (middle * 4, 0.97), ("+Inf", 1))),
               (f"{name}_sum", count * middle), (f"{name}_count", count))
    family("build_info", "gauge", ('build_info{version="0.1.0"}', 1))
    family("model_info", "gauge", ('model_info{model="canned"}', 1))
    return "\n".join(lines) + "\n"
