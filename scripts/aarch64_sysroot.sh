#!/usr/bin/env bash
# aarch64_sysroot.sh FOLDER: unpacks the arm64 packages of the libraries in apt-packages.txt, and what
# those need, into FOLDER. They come from this system's own package sources, with lists and state
# apart: no root is needed, and nothing is installed.
set -euo pipefail

folder="$(realpath -m "$1")"
mapfile -t libraries < <(sed -e 's/[[:space:]]*#.*//' "$(dirname "$0")/apt-packages.txt" |
  grep -E -- '-dev$' | grep -v -E 'torch|gloo|libclang')  # the trainer and the fuzzers are not built

stamp="$folder.packages"
[[ -d "$folder" && "$(cat "$stamp" 2>/dev/null)" == "${libraries[*]}" ]] && exit 0
rm -rf "$folder" "$stamp"

apt="$folder.apt"
mkdir -p "$apt/lists/partial" "$apt/archives/partial"
: >"$apt/status"
options=(-qq -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20 -o Acquire::Retries=1
  -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root
  -o Dir::State="$apt" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt")
apt-get "${options[@]}" update
apt-get "${options[@]}" install -y --no-install-recommends --download-only "${libraries[@]}"

unpacked="$folder.new"
rm -rf "$unpacked"
mkdir -p "$unpacked/usr"
for part in lib bin sbin; do
  mkdir "$unpacked/usr/$part"
  ln -s "usr/$part" "$unpacked/$part"
done
for package in "$apt"/archives/*.deb; do
  dpkg-deb --fsys-tarfile "$package" | tar -C "$unpacked" -x --keep-directory-symlink
done
# Absolute links are meant from the root of a system.
find "$unpacked" -type l -lname '/*' -print0 | while IFS= read -r -d '' link; do
  ln -sfn "$folder$(readlink "$link")" "$link"
done
mv "$unpacked" "$folder"
rm -r "$apt"
echo "${libraries[*]}" >"$stamp"
