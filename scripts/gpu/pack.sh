#!/usr/bin/env bash
# Packs what a bare machine needs beside this checkout into parts: DIR/inputs.tar.part-* and DIR/SHA256SUMS.
# train_smollm2.sh --inputs DIR joins and checks them.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: pack.sh -o DIR [options]
  --model PATH     base model: a GGUF file or a Hugging Face folder
  --binary PATH    orthrus-train, built against the machine's PyTorch wheel; the shared libraries it needs go along
  --init PATH      adapter to go on from: a file, or a folder of its parts
  --part-bytes N   most bytes of a part, as split takes them (20M)
TEXT
}

fail() {
  echo "pack: $*" >&2
  exit 1
}

out="" model="" binary="" init="" part_bytes=20M
while [[ $# -gt 0 ]]; do
  case "$1" in
    -h | --help) usage && exit 0 ;;
    -o | --model | --binary | --init | --part-bytes) [[ $# -ge 2 ]] || fail "$1 needs a value" ;;
    *) usage >&2 && fail "unknown: $1" ;;
  esac
  case "$1" in
    -o) out="$2" ;;
    --model) model="$2" ;;
    --binary) binary="$2" ;;
    --init) init="$2" ;;
    --part-bytes) part_bytes="$2" ;;
  esac
  shift 2
done
[[ -n "$out" ]] || fail "-o DIR is missing"
for path in "$model" "$binary"; do [[ -z "$path" || -e "$path" ]] || fail "$path: not found"; done
[[ "$init" != *.index.json ]] || init="$(dirname "$init")"
if [[ -d "$init" ]]; then
  [[ -e "$init/adapter.safetensors" || -e "$init/adapter.safetensors.index.json" ]] ||
    fail "--init $init: a folder without adapter.safetensors and adapter.safetensors.index.json"
else
  [[ -z "$init" || -f "$init" ]] || fail "--init $init: neither a file nor a folder"
fi

stage="$(mktemp -d)"
trap 'rm -rf "$stage"' EXIT
mkdir "$stage/inputs"
if [[ -d "$model" ]]; then
  ln -s "$(realpath "$model")" "$stage/inputs/base"
elif [[ -n "$model" ]]; then
  mkdir "$stage/inputs/base"
  ln -s "$(realpath "$model")" "$stage/inputs/base/$(basename "$model")"
fi
if [[ -n "$init" ]]; then
  mkdir "$stage/inputs/init"
  if [[ -d "$init" ]]; then
    ln -s "$(realpath "$init")"/adapter* "$stage/inputs/init/"
  else
    ln -s "$(realpath "$init")" "$stage/inputs/init/adapter.safetensors"
  fi
fi
if [[ -n "$binary" ]]; then
  mkdir -p "$stage/inputs/bin/lib"
  ln -s "$(realpath "$binary")" "$stage/inputs/bin/orthrus-train"
  # Not what every machine has, nor what comes with the wheel.
  theirs='^(linux-vdso|ld-linux|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|gomp)\.so|lib(torch|c10|cu|nv|nccl|caffe2|shm))'
  while read -r name _ path _; do
    [[ "$path" == /* && ! "$name" =~ $theirs ]] || continue
    ln -s "$(realpath "$path")" "$stage/inputs/bin/lib/$name"
  done < <(ldd "$binary")
fi

mkdir -p "$out"
rm -f "$out"/inputs.tar.part-* "$out/SHA256SUMS"
tar -C "$stage" -chf - inputs | split -b "$part_bytes" -d - "$out/inputs.tar.part-"
(cd "$out" && sha256sum inputs.tar.part-* >SHA256SUMS)
echo "pack: $(wc -l <"$out/SHA256SUMS") parts, $(du -cm "$out"/inputs.tar.part-* | tail -1 | cut -f1) MiB in $out"
