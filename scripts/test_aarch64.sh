#!/usr/bin/env bash
# Cross-compiles for AArch64 and runs the tests of the kernels and of the tiny models under qemu-user.
# Where the tools or libraries for it cannot be had, it says why and succeeds: that is this machine's
# fault. Usage: test_aarch64.sh [JOBS]
set -euo pipefail
cd "$(dirname "$0")/.."
jobs="${1:-$(nproc)}"
build=build-aarch64

skip() {
  echo "test-aarch64: skipped: $1"
  exit 0
}
if [[ "${SETUP:-}" != no ]]; then
  bash scripts/setup.sh aarch64 || skip "scripts/setup.sh could not install its packages (above)"
fi
for tool in cmake ninja pkg-config aarch64-linux-gnu-g++ qemu-aarch64 apt-get dpkg-deb; do
  command -v "$tool" >/dev/null || skip "there is no $tool"
done
bash scripts/aarch64_sysroot.sh "$build/sysroot" || skip "the arm64 packages of the libraries could not be fetched (above)"

cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DORTHRUS_SYSROOT="$PWD/$build/sysroot" \
  -DCMAKE_TOOLCHAIN_FILE=cmake/toolchain-aarch64.cmake >"$build/cmake.log" || {
  cat "$build/cmake.log"
  exit 1
}
tests=(base kernels cache model decode)
cmake --build "$build" -j "$jobs" --target "${tests[@]/#/test_}"

kernels() { timeout 300 qemu-aarch64 -L "$build/sysroot" -cpu "$1" "$build/tests/test_kernels" "${@:2}"; }

# A CPU with the dot product has the NEON kernels; one without it must not run them.
[[ "$(kernels max --gtest_list_tests)" == */neon* ]] || {
  echo "test-aarch64: no NEON kernels on an emulated CPU that has the dot product" >&2
  exit 1
}
kernels cortex-a72 --gtest_brief=1 --gtest_filter='ForcedIsa.*:Matmul.NonFinite*'

# Left out: qemu-user sets no limit to its guest's memory; an emulated machine may be slower than any that
# Probe knows; portable passes in all formats take minutes.
GTEST_FILTER='-ThreadPool.ThreadsThatCannotStartAreAnError:Probe.Measures*:Probe.Reads*:All/ForwardFormat.*_portable' \
  ctest --test-dir "$build" --timeout 400 --output-on-failure -j "$jobs" -R "^($(IFS='|'; echo "${tests[*]}"))$"
