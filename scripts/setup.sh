#!/usr/bin/env bash
# Installs the Debian packages of apt-packages.txt that are missing, as root or through sudo; where
# neither is possible it prints the one command to run, and exits 1. `setup.sh program` installs
# only what the program is built with (deploy/Dockerfile), `setup.sh aarch64` the packages of
# apt-packages-aarch64.txt.
set -euo pipefail

list="$(dirname "$0")/apt-packages.txt"
until=''
case "${1:-}" in
  program) until='/^# Tests/,$d' ;;  # the list's line "# Tests ..." ends what the program needs
  aarch64) list="$(dirname "$0")/apt-packages-aarch64.txt" ;;
esac
mapfile -t packages < <(sed -e "$until" -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' "$list")

if ! command -v dpkg-query >/dev/null; then
  echo "setup: this is not a Debian system; the packages to find by yourself are:" >&2
  printf '  %s\n' "${packages[@]}" >&2
  echo "setup: then run 'make' with SETUP=no" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  status="$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)"
  [[ "$status" == *installed* && "$status" != *not-installed* ]] || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

if [[ "$(id -u)" == 0 ]]; then
  as_root=()
elif command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
  as_root=(sudo)
else
  echo "setup: these packages are missing, and neither root nor sudo is at hand. Run as root:" >&2
  echo "  apt-get install -y --no-install-recommends ${missing[*]}" >&2
  exit 1
fi

echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null

# Servers that tests start for themselves are not to serve this machine by themselves.
if [[ -d /run/systemd/system ]]; then
  for server in haproxy nginx prometheus; do
    [[ " ${missing[*]} " != *" $server"* ]] || "${as_root[@]}" systemctl disable --now --quiet "$server"
  done
fi
