#!/usr/bin/env bash
# Makes the figures of docs/benchmarks.md, "Serving": tables on stdout and, with the JSON files and charts, in build/bench/load/.
# BENCH_REPS: the repetitions (5). Wants a machine with nothing else to do.
set -euo pipefail
cd "$(dirname "$0")/../.."

out=build/bench/load
reps="${BENCH_REPS:-5}"
mkdir -p "$out"

# The demo model's own file holds 4-bit weights, which --weights q8 leaves as they are.
q8="$out/smollm2-135m-q8_0.gguf"
build/orthrus quantize -m smollm2-135m -o "$q8" --type q8_0

echo "smollm2-135m, weights of 8 bits"
python3 bench/load/sweep.py -m "$q8" --repetitions "$reps" --out "$out/q8_0"
echo "smollm2-135m, weights as they are stored (4 bits)"
python3 bench/load/sweep.py throughput --repetitions "$reps" --out "$out/stored"
for scenario in article article-tight; do
  python3 bench/load/load.py --scenario "$scenario" --out "$out"
done
python3 bench/load/load.py --rate 0.5 --requests 60 --out "$out/poisson"
