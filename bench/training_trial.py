#!/usr/bin/env python3
"""Times the trial that the trainer was begun from (its PyTorch, ../shared/training/trial/train.py) on a shard of ours.

    bench/training_trial.py TRIAL_FOLDER SHARD MODEL.gguf [MINUTES]

Needs PyTorch and the gguf package; prints the trial's own lines, which end in diffusion tokens a second. PyTorch 1.13
(Debian's python3-torch) has no rms_norm and no grouped attention: both are defined here by their formulas.
"""
import array
import json
import os
import pathlib
import runpy
import struct
import sys
import tempfile


def documents(path):
    """The first answer of each document of a shard (docs/training.md): prompt and answer tokens."""
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", data[8:16])[0]
    header = json.loads(data[16:16 + size])
    at = 16 + size

    def numbers(count):
        nonlocal at
        values = struct.unpack(f"<{count}I", data[at:at + 4 * count])
        at += 4 * count
        return values

    lengths, spans = numbers(header["documents"]), numbers(header["documents"])
    ends = numbers(2 * header["spans"])
    rest = array.array("H" if header["vocab_size"] <= 65536 else "I", data[at:])
    token = span = 0
    for length, count in zip(lengths, spans):
        if count:
            begin, end = ends[2 * span], ends[2 * span + 1]
            yield {"p": list(rest[token:token + begin]), "o": list(rest[token + begin:token + end])}
        token, span = token + length, span + count


def define_what_is_missing(torch):
    functional = torch.nn.functional

    def rms_norm(x, shape, weight, eps):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight

    def attention(q, k, v, attn_mask=None, is_causal=False, enable_gqa=False):
        group = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        if is_causal:
            hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(hidden, float("-inf"))
        elif attn_mask is not None:
            scores = scores.masked_fill(~attn_mask, float("-inf"))
        return torch.softmax(scores, -1) @ v

    if not hasattr(functional, "rms_norm"):
        functional.rms_norm = rms_norm
        functional.scaled_dot_product_attention = attention


def main():
    folder, shard, model = sys.argv[1:4]
    minutes = sys.argv[4] if len(sys.argv) > 4 else "1"
    if "OPENBLAS_CORETYPE" not in os.environ and "avx512f" in pathlib.Path("/proc/cpuinfo").read_text():
        os.environ["OPENBLAS_CORETYPE"] = "SkylakeX"
        os.execv(sys.executable, [sys.executable, *sys.argv])
    os.environ["SMOLLM2_GGUF"] = os.path.abspath(model)
    shard = os.path.abspath(shard)
    import torch
    define_what_is_missing(torch)
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    with tempfile.TemporaryDirectory() as scratch:
        lines = os.path.join(scratch, "data.jsonl")
        with open(lines, "w", encoding="utf-8") as out:
            out.writelines(json.dumps(d) + "\n" for d in documents(shard))
        os.chdir(folder)
        sys.path.insert(0, ".")
        sys.argv = ["train.py", "--data", lines, "--K", "8", "--nb", "48", "--T", "384", "--bs", "2",
                    "--minutes", minutes, "--evalmin", "1000", "--out", os.path.join(scratch, "head.pt")]
        runpy.run_path("train.py", run_name="__main__")


if __name__ == "__main__":
    main()
