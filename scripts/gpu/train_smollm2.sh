#!/usr/bin/env bash
# Data, training and export of a diffusion view on one machine without a network (scripts/gpu/README.md).
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"

usage() {
  cat <<'TEXT'
usage: train_smollm2.sh --out DIR (--inputs DIR | --model PATH) [options] [-- flags of `orthrus-train fit`]
  --inputs DIR        parts that pack.sh made: base model, and maybe binary and adapter
  --model PATH        base model as it is
  --binary PATH       orthrus-train (default: that of the inputs, else it is built here)
  --work DIR          all that need not come back; the same call goes on from it (default: DIR of --out + "-work")
  --device NAME       cuda (default), cuda:N or cpu
  --minutes M         of training (6)
  --tokens N          answer tokens to make, at least (3000000)
  --prompts FILE      .jsonl, .jsonl.gz or .txt; repeatable (default: models/smollm2-135m/recipe/prompts/*)
  --held-out FILE     the same, for the evaluation (default: models/smollm2-135m/recipe/held-out/*, else GSM8K questions)
  --self-prompts N    user turns that the model writes by itself (8000)
  --limit N           prompts of each file, 0: all (0)
  --answer N          most tokens of an answer (256)
  --batch N           sequences answered together (1024)
  --init PATH         adapter to go on from, a file or a folder (default: that of the inputs)
  --export-minutes M  between exports while it trains (2)
  --smoke             a rehearsal: a few prompts, seconds of training
TEXT
}

fail() {
  echo "train: $*" >&2
  exit 1
}
say() { echo "train: $(date +%H:%M:%S) $*"; }

out="" inputs="" model="" binary="" work="" init="" device=cuda smoke=no
minutes=6 export_minutes=2 tokens=3000000 self_prompts=8000 limit=0 answer=256 batch=1024
prompts=() held_out=() fit_flags=()
while [[ $# -gt 0 ]]; do
  case "$1" in
    -h | --help) usage && exit 0 ;;
    --smoke)
      smoke=yes tokens=600 self_prompts=0 limit=6 answer=32 batch=8 minutes=0.05
      shift
      continue
      ;;
    --)
      shift
      fit_flags=("$@")
      break
      ;;
    --*) [[ $# -ge 2 ]] || fail "$1 needs a value" ;;
  esac
  case "$1" in
    --out) out="$2" ;;
    --inputs) inputs="$2" ;;
    --model) model="$2" ;;
    --binary) binary="$2" ;;
    --work) work="$2" ;;
    --device) device="$2" ;;
    --minutes) minutes="$2" ;;
    --tokens) tokens="$2" ;;
    --prompts) prompts+=("$2") ;;
    --held-out) held_out+=("$2") ;;
    --self-prompts) self_prompts="$2" ;;
    --limit) limit="$2" ;;
    --answer) answer="$2" ;;
    --batch) batch="$2" ;;
    --init) init="$2" ;;
    --export-minutes) export_minutes="$2" ;;
    *) usage >&2 && fail "unknown: $1" ;;
  esac
  shift 2
done
[[ -n "$out" ]] || fail "--out DIR is missing"
[[ -n "$inputs$model" ]] || fail "--inputs DIR or --model PATH is missing"
[[ "$device" =~ ^(cpu|cuda(:[0-9]+)?)$ ]] || fail "--device $device: expected cpu, cuda or cuda:N"
work="${work:-${out%/}-work}"
mkdir -p "$out" "$work"
exec > >(tee -a "$out/console.log") 2>&1
console=$!
trap 'exec >&- 2>&-; wait "$console" || true' EXIT # its last lines too

take_inputs() {
  [[ -n "$inputs" ]] || return 0
  if [[ ! -e "$work/inputs" ]]; then
    (cd "$inputs" && sha256sum --quiet -c SHA256SUMS) || fail "$inputs: parts are missing or damaged"
    rm -rf "$work/inputs.new" && mkdir "$work/inputs.new"
    cat "$inputs"/inputs.tar.part-* | tar -C "$work/inputs.new" -xf -
    mv "$work/inputs.new/inputs" "$work/inputs"
  fi
  if [[ -z "$model" && -d "$work/inputs/base" ]]; then
    model="$work/inputs/base"
    [[ -e "$model/config.json" ]] || model="$(ls "$model"/*.gguf)"
  fi
  [[ -n "$init" || ! -e "$work/inputs/init" ]] || init="$work/inputs/init"
  [[ -n "$binary" || ! -e "$work/inputs/bin/orthrus-train" ]] || binary="$work/inputs/bin/orthrus-train"
}

check_init() {
  [[ -z "$init" || -f "$init" || -e "$init/adapter.safetensors" || -e "$init/adapter.safetensors.index.json" ]] ||
    fail "--init $init: no adapter"
}

# Headers that the build needs, and the Debian packages that have them.
check_packages() {
  local missing=() tool header package
  for tool in g++ cmake ninja pkg-config; do command -v "$tool" >/dev/null || missing+=("$tool"); done
  while read -r header package; do
    [[ -z "$(command -v g++)" ]] || echo "#include <$header>" | g++ -std=c++20 -E -x c++ - >/dev/null 2>&1 ||
      missing+=("$package")
  done <<'TEXT'
fmt/core.h libfmt-dev
spdlog/spdlog.h libspdlog-dev
nlohmann/json.hpp nlohmann-json3-dev
yaml-cpp/yaml.h libyaml-cpp-dev
CLI/CLI.hpp libcli11-dev
openssl/evp.h libssl-dev
oniguruma.h libonig-dev
utf8proc.h libutf8proc-dev
TEXT
  [[ ${#missing[@]} -eq 0 ]] || fail "to build, these are missing: ${missing[*]}; or give --binary"
}

take_binary() {
  if [[ -z "$binary" ]]; then
    check_packages
    python3 -c 'import torch' 2>/dev/null || fail "python3 imports no torch: install a PyTorch wheel, or give --binary"
    say "build"
    cmake -S "$root" -B "$work/build" -G Ninja -DORTHRUS_TRAINER=ON -DORTHRUS_TESTS=OFF \
      -DTorch_DIR="$root/scripts/gpu/torch_wheel" >"$work/cmake.log" || fail "cmake failed: $work/cmake.log"
    cmake --build "$work/build" --target orthrus-train >"$work/build.log" || fail "the build failed: $work/build.log"
    binary="$work/build/orthrus-train"
  fi
  [[ -x "$binary" ]] || fail "$binary: not a program"
  local libraries="" needed
  [[ ! -d "$(dirname "$binary")/lib" ]] || libraries="$(realpath "$(dirname "$binary")/lib")"
  needed="$(ldd "$binary")"
  if [[ ! "$needed" =~ libtorch\.so[.0-9]*' => /' ]]; then
    libraries+=":$(python3 -c 'import os, torch; print(os.path.dirname(torch.__file__))')/lib"
  fi
  [[ -z "$libraries" ]] || export LD_LIBRARY_PATH="${libraries#:}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  "$binary" --help >/dev/null || fail "$binary: does not start; ldd says: $(ldd "$binary" | grep 'not found' | tr -s '\n\t' ' ')"
}

# unpacked FILE: the file, or its content without .gz in the work folder.
unpacked() {
  if [[ "$1" == *.gz ]]; then
    local plain
    plain="$work/prompts/$2-$(basename "${1%.gz}")"
    mkdir -p "$work/prompts"
    gzip -dc "$1" >"$plain"
    echo "$plain"
  else
    echo "$1"
  fi
}

take_prompts() {
  local recipe="$root/models/smollm2-135m/recipe" file flags=()
  shopt -s nullglob
  [[ ${#prompts[@]} -gt 0 ]] || prompts=("$recipe"/prompts/*.jsonl "$recipe"/prompts/*.jsonl.gz)
  [[ ${#held_out[@]} -gt 0 ]] || held_out=("$recipe"/held-out/*.jsonl "$recipe"/held-out/*.jsonl.gz)
  [[ ${#held_out[@]} -gt 0 ]] || held_out=("$root/tests/data/gsm8k/questions.jsonl")
  shopt -u nullglob
  prompt_flags=() held_out_flags=() exclude_flags=()
  for file in "${prompts[@]}"; do
    [[ -r "$file" ]] || fail "$file: cannot be read"
    prompt_flags+=(--prompts "$(unpacked "$file" train)")
  done
  for file in "${held_out[@]}"; do
    [[ -r "$file" ]] || fail "$file: cannot be read"
    held_out_flags+=(--prompts "$(unpacked "$file" held-out)")
    exclude_flags+=(--exclude "$(unpacked "$file" held-out)")
  done
  [[ ${#prompt_flags[@]} -gt 0 || "$self_prompts" -gt 0 ]] || fail "no prompts: --prompts FILE or --self-prompts N"
}

# answers FOLDER FLAGS: data into the work folder; sets `made` to its answer tokens.
answers() {
  local folder="$1" line
  shift
  line="$("$binary" data -m "$model" --backend torch --device "$device" --weights f32 --batch "$batch" -n "$answer" \
    --limit "$limit" -o "$work/$folder" "$@" | tail -1)"
  say "$line"
  made="$(sed -E 's/.* ([0-9]+) answer tokens$/\1/' <<<"$line")"
}

# Greedy answers to all prompts once; then, until there are enough tokens, sampled ones to the same prompts and to new
# self-prompts.
make_data() {
  say "data"
  answers held-out "${held_out_flags[@]}"
  local round=1 total=0 flags
  data=()
  while [[ "$total" -lt "$tokens" ]]; do
    flags=("${prompt_flags[@]}" "${exclude_flags[@]}" --self-prompts "$self_prompts" --seed "$((round * 1000003))")
    [[ "$round" -eq 1 ]] || flags+=(--temp 0.7)
    answers "train-$round" "${flags[@]}"
    data+=("$work/train-$round")
    [[ "$made" -gt 0 ]] || fail "the model answers nothing"
    total=$((total + made)) round=$((round + 1))
  done
  answer_tokens="$total"
}

# Copies the parts under names of their own (adapter-a-... and adapter-b-... in turn). They count from the moment their
# index takes the place of the old one, and only then the old parts go: a cut at any moment leaves a whole adapter.
publish_adapter() {
  local index="$out/adapter.safetensors.index.json" turn=a file name
  if grep -qs '"adapter-a-' "$index"; then turn=b; fi
  for file in "$work"/adapter/adapter-0*; do
    name="${file##*/}"
    cp "$file" "$out/adapter-$turn-${name#adapter-}" || return 1
  done
  sed "s/\"adapter-0/\"adapter-$turn-0/" "$work/adapter/${index##*/}" >"$index.tmp" || return 1
  mv "$index.tmp" "$index" || return 1
  for file in "$out"/adapter*; do
    [[ "$file" == "$index" || "$file" == "$out/adapter-$turn-"* ]] || rm -f "$file"
  done
}

# The newest checkpoint as an int8 adapter in parts, and the curves. Sets `too_large` where no parts under 16 MiB can be
# made: a tensor is never split.
too_large=""
export_adapter() {
  compgen -G "$work/run/checkpoint-*.safetensors" >/dev/null || return 1
  rm -rf "$work/adapter"
  "$binary" export -m "$model" --run "$work/run" --type int8 --part-bytes 15MiB -o "$work/adapter" || return 1
  too_large="$(find "$work/adapter" -type f -size +16M -printf '%f has %s bytes; ')"
  [[ -z "$too_large" ]] || return 1
  "$binary" plot --run "$work/run" >"$work/forecast.txt" || return 1
  publish_adapter || return 1
  cp "$work/run/report.html" "$work/run/log.jsonl" "$out/"
}

train() {
  local flags=(--adapter copy)
  [[ -z "$init" ]] || flags=(--adapter "$init")
  if compgen -G "$work/run/checkpoint-*.safetensors" >/dev/null; then flags+=(--resume); fi
  if [[ "$smoke" == yes ]]; then
    flags+=(--row-tokens 256 --row-blocks 16 --step-rows 1 --eval-documents 4)
  elif [[ "$device" != cpu ]]; then
    flags+=(--row-tokens 4096 --row-blocks 512 --step-rows 4)
  fi
  say "fit for $minutes minutes on $answer_tokens answer tokens"
  "$binary" fit -m "$model" --data "${data[@]}" --held-out "$work/held-out" -o "$work/run" --device "$device" \
    --minutes "$minutes" --checkpoint-minutes "$export_minutes" "${flags[@]}" "${fit_flags[@]}" &
  local fit=$! last="" newest code=0
  trap 'kill -TERM "$fit" 2>/dev/null || true' INT TERM
  while kill -0 "$fit" 2>/dev/null; do
    newest="$(compgen -G "$work/run/checkpoint-*.safetensors" | sort -V | tail -1 || true)"
    if [[ -n "$newest" && "$newest" != "$last" ]] && export_adapter; then last="$newest"; fi
    if [[ -n "$too_large" ]]; then
      kill -TERM "$fit" 2>/dev/null || true
      break
    fi
    sleep 1
  done
  wait "$fit" || code=$?
  trap - INT TERM
  [[ -n "$too_large" ]] || export_adapter || [[ -n "$too_large" ]] || fail "nothing was exported: fit ended with $code"
  [[ -z "$too_large" ]] || fail "adapter parts over 16 MiB, which do not come back: ${too_large}all is in $work"
  # 130: it was told to stop, and saved.
  [[ "$code" -eq 0 || "$code" -eq 130 ]] || fail "fit ended with $code; its last checkpoint is exported"
}

write_card() {
  local gpu="" commit="" hash
  if [[ "$device" != cpu ]]; then
    local number="${device#cuda}"
    number="${number#:}"
    gpu="$(nvidia-smi --query-gpu=name --format=csv,noheader -i "${number:-0}" || true)"
  fi
  commit="$(git -C "$root" rev-parse HEAD 2>/dev/null || true)"
  hash="$(find "$model" -type f -print0 | sort -z | xargs -0 cat | sha256sum | cut -d' ' -f1)"
  python3 - "$out" "$work/forecast.txt" device "${gpu:-$device}" commit "$commit" base_sha256 "$hash" \
    answer_tokens "$answer_tokens" minutes "$minutes" init "$init" self_prompts "$self_prompts" \
    prompts "${prompts[*]##*/}" held_out "${held_out[*]##*/}" fit_flags "${fit_flags[*]}" <<'TEXT'
import json, sys
out, forecast, *facts = sys.argv[1:]
card = dict(zip(facts[::2], facts[1::2]))
lines = [json.loads(line) for line in open(out + "/log.jsonl")]
card["evaluations"] = [line for line in lines if line.get("event") == "evaluation"]
card["forecast"] = open(forecast).read()
json.dump(card, open(out + "/card.json", "w"), indent=1)
TEXT
}

check_out() {
  local count large
  count="$(find "$out" -type f | wc -l)"
  large="$(find "$out" -type f -size +16M)"
  [[ "$count" -le 8 && -z "$large" ]] || fail "$out: $count files, over 16 MiB: ${large:-none}"
  say "done: $count files, $(du -sm "$out" | cut -f1) MiB in $out"
}

take_inputs
[[ -e "$model" ]] || fail "${model:-no base model}: not found"
check_init
take_binary
take_prompts
make_data
train
write_card
check_out
