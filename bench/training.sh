#!/usr/bin/env bash
# Speed of `orthrus-train fit` on the demo model, both precisions in turn: diffusion tokens a second and the share of
# the CPU's float32 multiply-add peak that the needed operations make (docs/training.md). With TRIAL=FOLDER the trial
# there (bench/training_trial.py) runs in turn with them, by $PYTHON (python3), which has PyTorch and gguf. Wants a quiet
# machine.
set -euo pipefail
cd "$(dirname "$0")/.."
work="build/bench/training"
rounds="${ROUNDS:-3}"
gguf="${XDG_CACHE_HOME:-$HOME/.cache}/orthrus/smollm2-135m/SmolLM2-135M-Instruct.Q4_1.gguf"
rm -rf "$work"
mkdir -p "$work"
build/orthrus-train data -m smollm2-135m --prompts tests/data/gsm8k/questions.jsonl -n 200 --batch 32 -o "$work/data" \
  2>"$work/data.txt"
for ((round = 0; round < rounds; ++round)); do
  for precision in f32 bf16; do
    build/orthrus-train fit -m smollm2-135m --adapter copy --data "$work/data" --steps 8 --precision "$precision" \
      -o "$work/$precision-$round" 2>"$work/$precision-$round.txt"
  done
  if [[ -n "${TRIAL:-}" ]]; then
    "${PYTHON:-python3}" bench/training_trial.py "$TRIAL" "$work/data/00000.shard" "$gguf" 1 >"$work/trial-$round.txt"
  fi
done
python3 - "$work" <<'PY'
import glob, json, re, statistics, sys

def fits(precision):
    rates, shares = [], []
    for path in sorted(glob.glob(f"{sys.argv[1]}/{precision}-*/log.jsonl")):
        lines = [json.loads(line) for line in open(path, encoding="utf-8")]
        peak = next(l["machine"]["fma_gflops"] for l in lines if l["event"] == "start")
        for step in (l for l in lines if l["event"] == "step" and l["step"] > 2):
            rates.append(step["tokens_per_second"])
            shares.append(step["flops_per_second"] / 1e9 / peak)
    return statistics.median(rates), statistics.median(shares)

for precision in ("f32", "bf16"):
    rate, share = fits(precision)
    print(f"{precision:5} {rate:6.0f} diffusion tokens/s, {share:.0%} of the float32 peak")
trial = [float(m) for path in glob.glob(f"{sys.argv[1]}/trial-*.txt")
         for m in re.findall(r"([\d.]+) tok/s", open(path, encoding="utf-8").read())[-1:]]  # of the whole run
if trial:
    print(f"trial {statistics.median(trial):6.0f} diffusion tokens/s")
PY
