"""Peak memory of the program: the diffusion view costs its weights and nothing that grows with the
context; the whole stays within weights + KV cache + 150 MB. `quantize` holds a tensor at a time.
`plan` says the peak of a full context within 3 %.

Usage: memory_test.py PROGRAM SOURCE_ROOT"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

MIB = 1 << 20
PLAN_SLACK = 0.03
CONTEXTS = (256, 2048, 8192)  # the last is the demo model's limit
TEXT = "The quick brown fox jumps over the lazy dog near the river bank at noon. "


def run(program, view, context, prompt, extra):
    """(peak resident bytes, the program's report) of a run that fills the context."""
    process = subprocess.Popen(
        [program, "run", "-m", "smollm2-135m", "--raw", "-f", str(prompt), "-c", str(context), "-n", "24",
         "--temp", "0", "--ignore-eos", "--view", view, "--json", *extra],
        stdout=subprocess.PIPE)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"memory_test: {view} at context {context} failed")
    return usage.ru_maxrss * 1024, json.loads(output)


def quantizes_within_bounds(program, folder):
    """The largest tensor takes 30 MB in the source; the file that is written has 324 MB."""
    output = os.path.join(folder, "out.gguf")
    process = subprocess.Popen([program, "quantize", "-m", "smollm2-135m", "--type", "bf16", "-o", output],
                               stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit("memory_test: quantize failed")
    peak, limit = usage.ru_maxrss * 1024, 128e6
    print(f"quantize: peak {peak / 1e6:.1f} MB, limit {limit / 1e6:.1f} MB, {os.path.getsize(output) / 1e6:.1f} MB written")
    return peak <= limit


def plan_is_what_it_takes(program, root, folder):
    """Random weights, large enough that weights, KV cache and passes weigh more than the program: 375 + 201 + 87 MB."""
    sys.path.insert(0, str(root / "bench"))
    import sizes
    case = sizes.Case(program, pathlib.Path(folder), "small:bf16:4096")
    prompt, failures = case.long_prompt(), 0
    drafts = ("--draft-max", "31", "--temp", "0.8", "--top-p", "0.9", "--seed", "1")
    for name, of_both, of_run in (("dual", (), drafts), ("dual, rejection", ("--consensus", "rejection"), drafts),
                                  ("ar", ("--view", "ar"), ("--temp", "0"))):
        planned = case.plan(*of_both)["total_bytes"]
        peak = case.answer(prompt, *of_both, *of_run)["peak"]
        print(f"plan, {name}: {planned / 1e6:.1f} MB, peak {peak / 1e6:.1f} MB, {peak / planned - 1:+.2%}")
        failures += abs(peak / planned - 1) > PLAN_SLACK
    return failures


def main(program, root):
    os.environ.setdefault("ORTHRUS_MODELS_DIR", str(root / "models"))
    size = json.loads(subprocess.run([program, "inspect", "-m", "smollm2-135m", "--json"], check=True,
                                     stdout=subprocess.PIPE).stdout)
    weights, diffusion = size["weight_bytes"], size["diffusion_weight_bytes"]
    differences, failures = [], 0
    with tempfile.TemporaryDirectory() as folder:
        failures += not quantizes_within_bounds(program, folder)
        failures += plan_is_what_it_takes(program, root, folder)
        for context in CONTEXTS:
            prompt = pathlib.Path(folder) / "prompt.txt"
            prompt.write_text(TEXT * ((context - 40) // 17))  # 17 tokens a sentence at most
            peak, kv = {}, {}
            for view, extra in (("dual", ["--draft-max", "7"]), ("ar", [])):
                peak[view], report = run(program, view, context, prompt, extra)
                kv[view] = report["kv_bytes"]
                limit = weights + kv[view] + 150e6
                print(f"context {context} {view}: {report['prompt_tokens']} + {report['completion_tokens']} "
                      f"tokens, peak {peak[view] / 1e6:.1f} MB, KV {kv[view] / 1e6:.1f} MB, limit {limit / 1e6:.1f} MB")
                failures += peak[view] > limit
            failures += kv["dual"] != kv["ar"]
            differences.append(peak["dual"] - peak["ar"] - diffusion)
    spread = max(differences) - min(differences)
    print("dual - ar - diffusion weights:", ", ".join(f"{d / MIB:.1f}" for d in differences),
          f"MiB; spread {spread / MIB:.1f} MiB, at most 8")
    failures += spread > 8 * MIB
    print(f"{2 * len(CONTEXTS) + 4} passed, 0 failed" if not failures else f"{failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()))
