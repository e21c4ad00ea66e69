#!/usr/bin/env bash
# Goes on with the shipped adapter as it was trained, or from START=copy (or another adapter) for MINUTES, on a CPU:
# data, training, export, evaluation (data and evaluation: half an hour on two cores with AVX512_BF16). The same call
# goes on where it was stopped.
#   models/smollm2-135m/recipe/train.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/../../.."
recipe=models/smollm2-135m/recipe
work="${1:?folder for data, checkpoints and results}"
model=smollm2-135m

data() { build/orthrus-train data -m "$model" -n 200 --batch 48 "$@"; }
held_out=()
for kind in gsm8k code chat; do
  data --prompts "$recipe/held-out/$kind.jsonl" --weights f32 -o "$work/held-out/$kind"
  held_out+=(--exclude "$recipe/held-out/$kind.jsonl")
done
for source in gsm8k:1900 code:600 chat:1500 code-self:300; do
  kind="${source%:*}"
  data --prompts "$recipe/prompts/$kind.jsonl" --limit "${source#*:}" "${held_out[@]}" -o "$work/data/$kind"
done

resume=()
if compgen -G "$work/run/checkpoint-*" >/dev/null; then resume=(--resume); fi
build/orthrus-train fit -m "$model" --adapter "${START:-models/$model/adapter.safetensors}" \
  --data "$work"/data/* --held-out "$work"/held-out/* --eval-documents 30 -o "$work/run" \
  --minutes "${MINUTES:-50}" --lr 8e-4 --warmup 20 --seed 1 --eval-minutes 10.5 "${resume[@]}"
build/orthrus-train plot --run "$work/run"
build/orthrus-train export -m "$model" --run "$work/run" --type int8 --metadata license=apache-2.0 \
  -o "$work/adapter.safetensors"

for kind in gsm8k code chat; do
  for weights in f32 auto; do
    build/orthrus eval -m "$model" --adapter "$work/adapter.safetensors" --prompts "$recipe/held-out/$kind.jsonl" \
      -n 200 --block 8 --weights "$weights" --json >"$work/eval-$kind-$weights.json"
  done
done
