#!/usr/bin/env bash
# The Debian packages of the shared libraries that a program needs, one a line: what the last stage of the Dockerfile installs.
# Usage: runtime-packages.sh PROGRAM
set -euo pipefail

# The linker names /lib/..., which is /usr/lib/...; packages list either.
ldd "$1" | awk '$2 == "=>" { print $3 }' | while read -r library; do
  real="$(realpath "$library")"
  dpkg-query -S "$real" 2>/dev/null || dpkg-query -S "${real#/usr}"
done | sed 's/:.*//' | sort -u
