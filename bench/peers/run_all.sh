#!/usr/bin/env bash
# The race: installs the peers, makes the models, measures, and writes table, chart and JSON to build/peers/results/.
# RACE_MODELS, RACE_PRECISIONS, RACE_PEERS, RACE_CASES: some of them, with commas between (all); BENCH_REPS:
# repetitions (5); RACE_ISA=avx2: every engine without AVX-512, into build/peers/results-avx2/; RACE_RESUME=1 passes over
# what the results have already. Wants a machine with nothing else to do.
set -euo pipefail
cd "$(dirname "$0")/../.."

bash bench/peers/setup.sh "${RACE_ISA:-native}"
flags=(--repetitions "${BENCH_REPS:-5}")
for name in models precisions peers cases isa; do
  variable="RACE_${name^^}"
  [[ -z "${!variable:-}" ]] || flags+=("--$name" "${!variable}")
done
[[ "${RACE_RESUME:-}" != 1 ]] || flags+=(--resume)
exec build/peers/venv/bin/python bench/peers/race.py "${flags[@]}"
