#!/usr/bin/env bash
# The long tests: every ctest with the label `soak`, then the whole lossless matrix. The matrix
# resumes where an earlier run was stopped; remove build/soak to start again.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p build/soak
if ctest --test-dir build -N -L soak | grep -q 'Test *#'; then
  ctest --test-dir build -L soak --output-on-failure
fi
build/tests/lossless_matrix --full --resume build/soak/lossless.jsonl
