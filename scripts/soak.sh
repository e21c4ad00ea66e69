#!/usr/bin/env bash
# The long tests: every ctest with the label `soak`, 2,000 requests of 64 clients, then the whole lossless matrix. It takes about
# three quarters of an hour on two quiet cores and stops after SOAK_MINUTES (default 110) with exit
# status 3. It resumes where an earlier run of the same build stopped; another build starts anew.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p build/soak
if ctest --test-dir build -N -L soak | grep -q 'Test *#'; then
  ctest --test-dir build -L soak --output-on-failure
fi
ORTHRUS_LOAD_REQUESTS=2000 build/tests/test_engine --gtest_filter='EngineLoad.*'
build/tests/lossless_matrix --full --resume build/soak/lossless.jsonl \
  --minutes "${SOAK_MINUTES:-110}"
