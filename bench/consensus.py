"""How the rules of --consensus do on real questions: tokens per cycle, KL and conflict rate.

    bench/consensus.py PROGRAM MODEL QUESTIONS.jsonl [LIMIT]

Drafts full blocks of the model's adapter. KL(p_AR || p_diffusion) of the raw softmaxes, in nats, and
the share of judged drafts at or above the threshold of 0.01 are means over requests, weighted by
cycles. Prints a JSON list.
"""

import json
import subprocess
import sys

SETTINGS = [("exact", 0.0), ("exact", 1.0), ("rejection", 1.0), ("kl", 0.0)]


def main():
    program, model, questions = sys.argv[1:4]
    limit = int(sys.argv[4]) if len(sys.argv) > 4 else 16
    with open(questions, encoding="utf-8") as file:
        asked = [json.loads(line)["question"] for line in file][:limit]
    prompts = "".join(
        json.dumps({"messages": [{"role": "user", "content": text}], "seed": i}) + "\n"
        for i, text in enumerate(asked))
    table = []
    for consensus, temperature in SETTINGS:
        command = [program, "generate", "-m", model, "-n", "160", "--draft-max", "1024", "--consensus",
                   consensus, "--temp", str(temperature), "--top-k", "0", "--top-p", "1",
                   "--consensus-stats"]
        output = subprocess.run(command, input=prompts, stdout=subprocess.PIPE, check=True, text=True,
                                stderr=subprocess.DEVNULL).stdout
        results = [json.loads(line) for line in output.splitlines()]
        cycles = sum(r["cycles"] for r in results)

        def mean(key):
            return sum(r[key] * r["cycles"] for r in results) / cycles

        table.append({
            "consensus": consensus,
            "temperature": temperature,
            "requests": len(results),
            "cycles": cycles,
            "tokens_per_cycle": sum(r["accepted"] + r["cycles"] for r in results) / cycles,
            "kl_mean": mean("kl_mean"),
            "conflict_rate": mean("conflict_rate"),
        })
    print(json.dumps(table, indent=2))


main()
