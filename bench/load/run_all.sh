#!/usr/bin/env bash
# Makes the figures of docs/benchmarks.md, "Serving": tables on stdout and, with the JSON files and charts, in build/bench/load/.
# BENCH_REPS: the repetitions (5); BENCH_SERVE_WEIGHTS: formats of the weights (q8, and those stored). Wants a machine with
# nothing else to do.
set -euo pipefail
cd "$(dirname "$0")/../.."

out=build/bench/load
reps="${BENCH_REPS:-5}"

for weights in ${BENCH_SERVE_WEIGHTS:-q8 auto}; do
  echo "smollm2-135m, weights $weights"
  python3 bench/load/sweep.py --weights "$weights" --repetitions "$reps" --out "$out/$weights"
done
for scenario in article article-tight; do
  python3 bench/load/load.py --scenario "$scenario" --out "$out"
done
python3 bench/load/load.py --rate 0.5 --requests 60 --out "$out/poisson"
