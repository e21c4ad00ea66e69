#!/usr/bin/env bash
# Installs the peers of the race into build/peers/venv. llama.cpp is compiled for this CPU, with everything that
# the compiler finds in it; the first time that takes up to 20 minutes, later pip's cache has the result.
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
