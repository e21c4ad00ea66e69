#!/usr/bin/env bash
# Generates on the demo model twice, with the dual view and with plain AR, and compares the two.
set -euo pipefail
cd "$(dirname "$0")/.."

build/orthrus run -m smollm2-135m --compare -n 200 --temp 0 -p "${PROMPT:-Nina packs 12 boxes of \
apples with 24 apples in each box. She sells 5 boxes and gives 18 apples to her neighbours. How many \
apples does she have left?}"
