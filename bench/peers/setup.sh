#!/usr/bin/env bash
# Installs the peers of the race into build/peers/venv. llama.cpp is compiled for this CPU, with everything that
# the compiler finds in it; the first time that takes up to 20 minutes, later pip's cache has the result.
# With the argument avx2 also a llama.cpp without AVX-512 and AVX-VNNI into build/peers/llama-avx2 (as long again).
set -euo pipefail
cd "$(dirname "$0")/../.."

venv=build/peers/venv
done_file="$venv/.installed"
if [[ ! "$done_file" -nt bench/peers/requirements.txt ]]; then
  python3 -m venv "$venv"
  echo "installing the peers into $venv"
  CMAKE_ARGS="-DGGML_NATIVE=ON" "$venv/bin/python" -m pip install -q --disable-pip-version-check \
    --no-binary llama-cpp-python -r bench/peers/requirements.txt
  touch "$done_file"
fi

avx2=build/peers/llama-avx2
pin=$(grep '^llama-cpp-python==' bench/peers/requirements.txt)
if [[ "${1:-}" == avx2 && "$(cat "$avx2/.installed" 2>/dev/null)" != "$pin" ]]; then
  echo "installing llama.cpp without AVX-512 into $avx2"
  rm -rf "$avx2"
  # Not from pip's cache, which knows a version, but not what it was compiled for.
  CMAKE_ARGS="-DGGML_NATIVE=OFF -DGGML_SSE42=ON -DGGML_AVX=ON -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON \
-DGGML_BMI2=ON -DGGML_AVX_VNNI=OFF -DGGML_AVX512=OFF" CMAKE_BUILD_PARALLEL_LEVEL=2 "$venv/bin/python" -m pip install -q \
    --disable-pip-version-check --no-cache-dir --no-deps --no-binary llama-cpp-python --target "$avx2" \
    "$pin"
  if [[ "$(objdump -d "$avx2/llama_cpp/lib/libggml-cpu.so" | grep -c zmm)" != 0 ]]; then
    echo "$avx2: compiled with AVX-512, expected without" >&2
    exit 1
  fi
  echo "$pin" >"$avx2/.installed"
fi
