#!/usr/bin/env bash
# The long tests: every ctest with the label `soak`, 2,000 requests of 64 clients, half an hour of serving under the address
# sanitizer and five minutes under the thread sanitizer where those builds exist (make sanitize), then the whole lossless
# matrix. It takes about three quarters of an hour on two quiet cores beside the serving and stops after SOAK_MINUTES (default
# 110) of the matrix with exit status 3. The matrix resumes where an earlier run of the same build stopped; another build
# starts anew.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p build/soak
if ctest --test-dir build -N -L soak | grep -q 'Test *#'; then
  ctest --test-dir build -L soak --output-on-failure
fi
ORTHRUS_LOAD_REQUESTS=2000 build/tests/test_engine --gtest_filter='EngineLoad.*'
for build in build-asan build-tsan; do
  [[ -x $build/orthrus ]] || echo "soak: no $build/orthrus, its part is left out: \`make sanitize\` builds it"
done
if [[ -x build-asan/orthrus ]]; then
  python3 bench/load/soak.py --program build-asan/orthrus --minutes 30 --json build/soak/serve-asan.json
fi
if [[ -x build-tsan/orthrus ]]; then
  setarch -R python3 bench/load/soak.py --program build-tsan/orthrus --minutes 5 --json build/soak/serve-tsan.json
fi
build/tests/lossless_matrix --full --resume build/soak/lossless.jsonl \
  --minutes "${SOAK_MINUTES:-110}"
