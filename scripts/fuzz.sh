#!/usr/bin/env bash
# Runs every fuzz target for FUZZ_SECONDS (default 60). Seeds and earlier findings lie in
# fuzz/corpus/NAME; what a run adds goes to build-fuzz/corpus/NAME and serves the next run until
# `make clean`. An input that breaks a parser goes to fuzz/found/, which nothing deletes: once it
# is repaired, move the input to fuzz/corpus/NAME, where every later test replays it.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds="${FUZZ_SECONDS:-60}"
found=0
mkdir -p fuzz/found
trap 'rmdir --ignore-fail-on-non-empty fuzz/found' EXIT
for target in build-fuzz/fuzz/fuzz_*; do
  [[ -f "$target" && -x "$target" ]] || continue
  name="$(basename "$target")"
  name="${name#fuzz_}"
  corpus="build-fuzz/corpus/$name"
  mkdir -p "$corpus"
  log="build-fuzz/$name.log"
  if ! "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 \
      -print_final_stats=1 -artifact_prefix="fuzz/found/$name-" \
      "$corpus" "fuzz/corpus/$name" >"$log" 2>&1; then
    tail -40 "$log" >&2
    echo "fuzz: $name failed; its input lies in fuzz/found/" >&2
    exit 1
  fi
  runs="$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
  added="$(find "$corpus" -type f | wc -l)"
  echo "fuzz: $name: ${runs:-?} inputs in $seconds s, no finding; $added new inputs in $corpus"
  found=$((found + 1))
done
[[ $found -gt 0 ]] || { echo "fuzz: no target in build-fuzz/fuzz" >&2; exit 1; }
