#!/usr/bin/env bash
# Measures this machine and the engine on it, one JSON file a format in build/bench/.
# BENCH_SHAPE names the shape (default qwen3-0.6b).
set -euo pipefail
cd "$(dirname "$0")/.."

shape="${BENCH_SHAPE:-qwen3-0.6b}"
mkdir -p build/bench
for weights in bf16 q8 q4; do
  out="build/bench/$shape-$weights.json"
  build/orthrus bench --shape "$shape" --weights "$weights" --json >"$out.part"
  mv "$out.part" "$out"
  python3 scripts/bench_table.py "$out"
done
