#!/usr/bin/env bash
# Makes the figures of docs/benchmarks.md: a file each in build/bench/, tables on stdout.
# BENCH_SHAPE names the shape of the random weights (qwen3-0.6b), BENCH_REPS the repetitions (7).
# Wants a machine with nothing else to do.
set -euo pipefail
cd "$(dirname "$0")/.."

program=build/orthrus
out=build/bench
model=smollm2-135m
questions=tests/data/gsm8k/questions.jsonl
shape="${BENCH_SHAPE:-qwen3-0.6b}"
reps="${BENCH_REPS:-7}"
mkdir -p "$out"

# save FILE COMMAND...: the command's output, whole or not at all.
save() {
  local file="$out/$1"
  shift
  "$@" >"$file.part"
  mv "$file.part" "$file"
}

for weights in bf16 q8 q4; do
  save "$shape-$weights.json" "$program" bench --shape "$shape" --weights "$weights" \
    --reps "$reps" --json
  python3 scripts/bench_table.py "$out/$shape-$weights.json"
done

echo "$model, 16 GSM8K questions, 160 tokens, block 8"
for weights in f32 auto; do
  save "eval-$model-$weights.json" "$program" eval -m "$model" --prompts "$questions" --limit 16 \
    -n 160 --block 8 --weights "$weights" --json
  python3 - "$weights" "$out/eval-$model-$weights.json" <<'PY'
import json, sys
report = json.load(open(sys.argv[2], encoding="utf-8"))
for name in ("token_weighted", "per_prompt_mean"):
    m = report[name]
    print(f"  {sys.argv[1]:5} {name:16} n={m['n']:<5} acceptance length {m['acceptance_length']:.3f}, "
          f"tokens per cycle {m['tokens_per_cycle']:.3f}, TPF {m['tpf']:.3f}")
PY
done

echo "$model, rules of consensus"
save "consensus-$model.md" python3 bench/consensus.py "$program" "$model" "$questions"
cat "$out/consensus-$model.md"

for weights in auto bf16; do
  echo "$model, $weights weights, dual view against plain AR"
  save "compare-$model-$weights.txt" "$program" bench -m "$model" --weights "$weights" \
    --compare ar,dual --reps "$reps" --prompts models/$model/recipe/held-out/{gsm8k,code,chat}.jsonl --limit 8
  cat "$out/compare-$model-$weights.txt"
done

echo "$model, perplexity"
python3 -c 'import json, sys
for line in sys.stdin: print(json.loads(line)["question"])' <"$questions" >"$out/questions.txt"
save "perplexity-$model.txt" "$program" perplexity -m "$model" -f "$out/questions.txt" -c 256 --kl
cat "$out/perplexity-$model.txt"

echo "$model, start to first token"
save "startup-$model.json" python3 bench/startup.py "$program" "$model"
python3 - "$out/startup-$model.json" <<'PY'
import json, sys
report = json.load(open(sys.argv[1], encoding="utf-8"))
print(f"  {report['seconds_to_first_token']:.2f} s, peak {report['peak_resident_bytes'] / 1e6:.0f} MB "
      f"(KV {report['kv_bytes'] / 1e6:.1f} MB)")
PY
