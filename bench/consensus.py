"""How the rules of --consensus do on real questions: tokens per cycle, KL and conflict rate.

    bench/consensus.py PROGRAM MODEL QUESTIONS.jsonl [LIMIT]

Drafts full blocks of the model's adapter. KL(p_AR || p_diffusion) of the raw softmaxes, in nats, and
the share of judged drafts at or above the threshold of 0.01 are means over requests, weighted by
cycles. Prints the table of docs/benchmarks.md in markdown; the line above it says of what.
"""

import json
import subprocess
import sys

TOKENS = 160  # most of an answer
SETTINGS = [("exact", 0.0), ("exact", 1.0), ("rejection", 1.0), ("kl", 0.0)]


def answers(program, model, prompts, consensus, temperature):
    """The engine's JSON objects, one a prompt. Its messages go to our stderr; an error ends us."""
    command = [program, "generate", "-m", model, "-n", str(TOKENS), "--draft-max", "1024",
               "--consensus", consensus, "--temp", str(temperature), "--top-k", "0", "--top-p", "1",
               "--consensus-stats"]
    done = subprocess.run(command, input=prompts, stdout=subprocess.PIPE, check=True, text=True)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    if not sum(r["cycles"] for r in results):
        sys.exit(f"{model}: no cycle of the dual view: has it an adapter?")
    return results


def row(consensus, temperature, results):
    """A line of the table; means over requests weigh their cycles."""
    cycles = sum(r["cycles"] for r in results)
    tokens = sum(r["accepted"] + r["cycles"] for r in results)

    def mean(key):
        return sum(r[key] * r["cycles"] for r in results) / cycles

    rule = "kl, threshold 0.01" if consensus == "kl" else consensus
    return (f"| {rule} | {temperature:g} | {tokens / cycles:.2f} | {mean('kl_mean'):.2f} | "
            f"{100 * mean('conflict_rate'):.0f} % |")


def main():
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__.strip())
    program, model, questions = sys.argv[1:4]
    limit = int(sys.argv[4]) if len(sys.argv) > 4 else 16
    with open(questions, encoding="utf-8") as file:
        asked = [json.loads(line)["question"] for line in file][:limit]
    prompts = "".join(
        json.dumps({"messages": [{"role": "user", "content": text}], "seed": i}) + "\n"
        for i, text in enumerate(asked))
    print(f"{model}, {len(asked)} questions, at most {TOKENS} tokens each:\n")
    print("| rule | temperature | tokens per cycle | mean KL | conflicts |\n|---|---|---|---|---|")
    for consensus, temperature in SETTINGS:
        results = answers(program, model, prompts, consensus, temperature)
        print(row(consensus, temperature, results), flush=True)


main()
