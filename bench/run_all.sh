#!/usr/bin/env bash
# Makes the figures of docs/benchmarks.md, "Figures": a file each in build/bench/, tables on stdout. Takes less than five
# minutes where the machine has nothing else to do, which the figures want too.
# BENCH_SHAPE names the shape of the random weights (qwen3-0.6b), BENCH_REPS the repetitions of its cases (3), BENCH_PAIRS those
# of the pairs of both views (2), BENCH_PROMPTS how many prompts of a kind these answer (4).
set -euo pipefail
cd "$(dirname "$0")/.."

program=build/orthrus
out=build/bench
model=smollm2-135m
questions=tests/data/gsm8k/questions.jsonl
shape="${BENCH_SHAPE:-qwen3-0.6b}"
reps="${BENCH_REPS:-3}"
pairs="${BENCH_PAIRS:-2}"
prompts="${BENCH_PROMPTS:-4}"
mkdir -p "$out"

# part TITLE: begins a part, and says how long the one before took.
title= began=0
part() {
  [ -z "$title" ] || printf '(%d s)\n\n' $((SECONDS - began))
  title="$1" began=$SECONDS
  echo "$title"
}

# save FILE COMMAND...: the command's output, whole or not at all.
save() {
  local file="$out/$1"
  shift
  "$@" >"$file.part"
  mv "$file.part" "$file"
}

for weights in bf16 q8 q4; do
  part "random weights, $weights: matrix products, decode, prefill, attention, cycles"
  save "$shape-$weights.json" "$program" bench --shape "$shape" --weights "$weights" \
    --reps "$reps" --json
  python3 scripts/bench_table.py "$out/$shape-$weights.json"
done

part "random weights, q4: dual view against plain AR behind a deep context"
save "compare-$shape-q4.txt" "$program" bench --shape "$shape" --weights q4 --compare ar,dual --reps "$pairs"
cat "$out/compare-$shape-q4.txt"

for weights in auto bf16; do
  part "$model, $weights weights: dual view against plain AR"
  save "compare-$model-$weights.txt" "$program" bench -m "$model" --weights "$weights" \
    --compare ar,dual --reps "$pairs" --prompts models/$model/recipe/held-out/{gsm8k,code,chat}.jsonl --limit "$prompts"
  cat "$out/compare-$model-$weights.txt"
done

part "$model: 16 GSM8K questions, 160 tokens, block 8, draft weights as the others"
for weights in f32 auto; do
  save "eval-$model-$weights.json" "$program" eval -m "$model" --prompts "$questions" --limit 16 \
    -n 160 --block 8 --weights "$weights" --draft-weights same --json
  python3 - "$weights" "$out/eval-$model-$weights.json" <<'PY'
import json, sys
report = json.load(open(sys.argv[2], encoding="utf-8"))
for name in ("token_weighted", "per_prompt_mean"):
    m = report[name]
    print(f"  {sys.argv[1]:5} {name:16} n={m['n']:<5} acceptance length {m['acceptance_length']:.3f}, "
          f"tokens per cycle {m['tokens_per_cycle']:.3f}, TPF {m['tpf']:.3f}")
PY
done

part "$model: rules of consensus"
save "consensus-$model.md" python3 bench/consensus.py "$program" "$model" "$questions"
cat "$out/consensus-$model.md"

part "$model: perplexity"
python3 -c 'import json, sys
for line in sys.stdin: print(json.loads(line)["question"])' <"$questions" >"$out/questions.txt"
save "perplexity-$model.txt" "$program" perplexity -m "$model" -f "$out/questions.txt" -c 256 --kl
cat "$out/perplexity-$model.txt"

part "$model: start to first token"
save "startup-$model.json" python3 bench/startup.py "$program" "$model"
python3 - "$out/startup-$model.json" <<'PY'
import json, sys
report = json.load(open(sys.argv[1], encoding="utf-8"))
print(f"  {report['seconds_to_first_token']:.2f} s, peak {report['peak_resident_bytes'] / 1e6:.0f} MB "
      f"(KV {report['kv_bytes'] / 1e6:.1f} MB)")
PY
part "all of it in $SECONDS s"
