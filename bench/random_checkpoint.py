"""Writes an Orthrus checkpoint with random bf16 weights in the shape of a published model, for measurements of load
and memory. Its tokenizer has as many tokens and merges as the real one, so that it takes as much memory.

Usage: random_checkpoint.py SHAPE FOLDER"""

import json
import os
import random
import string
import struct
import sys

SHAPES = {  # as in src/engine/shapes.cc; Qwen3 shapes have heads of 128 and 8 KV heads
    "qwen3-0.6b": {"hidden": 1024, "mlp": 3072, "layers": 28, "heads": 16, "tied": True},
    "qwen3-1.7b": {"hidden": 2048, "mlp": 6144, "layers": 28, "heads": 16, "tied": True},
    "qwen3-8b": {"hidden": 4096, "mlp": 12288, "layers": 36, "heads": 32, "tied": False},
    "small": {"hidden": 512, "mlp": 1536, "layers": 12, "heads": 8, "tied": True},  # nobody's: for tests/cli/memory_test.py
}
VOCABULARY, TOKENS, KV_HEADS, HEAD = 151936, 151643, 8, 128
POOL_BYTES = 64 << 20


def tensors(shape):
    """(name, shape) of every tensor, in the order of the file."""
    hidden, mlp = shape["hidden"], shape["mlp"]
    queries, keys = shape["heads"] * HEAD, KV_HEADS * HEAD
    yield "model.embed_tokens.weight", [VOCABULARY, hidden]
    if not shape["tied"]:
        yield "lm_head.weight", [VOCABULARY, hidden]
    for i in range(shape["layers"]):
        layer = f"model.layers.{i}."
        yield layer + "input_layernorm.weight", [hidden]
        yield layer + "post_attention_layernorm.weight", [hidden]
        for part, sizes in (("gate", [mlp, hidden]), ("up", [mlp, hidden]), ("down", [hidden, mlp])):
            yield f"{layer}mlp.{part}_proj.weight", sizes
        for suffix in ("", "_diff"):
            for part, sizes in (("q_proj", [queries, hidden]), ("k_proj", [keys, hidden]), ("v_proj", [keys, hidden]),
                                ("o_proj", [hidden, queries]), ("q_norm", [HEAD]), ("k_norm", [HEAD])):
                yield f"{layer}self_attn.{part}{suffix}.weight", sizes
    yield "model.norm.weight", [hidden]


def write_weights(shape, path):
    entries, at = {}, 0
    for name, sizes in tensors(shape):
        count = sizes[0] * (sizes[1] if len(sizes) > 1 else 1)
        entries[name] = {"dtype": "BF16", "shape": sizes, "data_offsets": [at, at + 2 * count]}
        at += 2 * count
    header = json.dumps(entries).encode()
    header += b" " * (-len(header) % 8)
    # Values of about +-0.01: any mantissa, exponent 2^-7 or 2^-6, any sign.
    source = random.Random(1)
    pool = bytearray(POOL_BYTES)
    pool[0::2] = source.randbytes(POOL_BYTES // 2)
    pool[1::2] = source.randbytes(POOL_BYTES // 2).translate(bytes([0x3c, 0xbc] * 128))
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(header)) + header)
        while at:
            begin = 2 * source.randrange(POOL_BYTES // 4)
            at -= out.write(memoryview(pool)[begin:begin + min(at, POOL_BYTES // 2)])


def byte_letters():
    """The character that stands for each byte, as GPT-2 has them."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, beyond = {}, 256
    for byte in range(256):
        letters[byte] = chr(byte if byte in plain else beyond)
        beyond += byte not in plain
    return letters.values()


def write_tokenizer(path):
    vocabulary = {letter: i for i, letter in enumerate(byte_letters())}
    merges, words = [], list(string.ascii_lowercase)
    while len(vocabulary) < TOKENS:  # all words of two letters, then of three, of four
        words = [(word, letter) for word in words for letter in string.ascii_lowercase][:TOKENS - len(vocabulary)]
        merges += [" ".join(pair) for pair in words]
        words = ["".join(pair) for pair in words]
        vocabulary.update(zip(words, range(len(vocabulary), TOKENS)))
    special = [{"id": TOKENS + i, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
                "normalized": False, "special": True}
               for i, content in enumerate(("<|endoftext|>", "<|im_start|>", "<|im_end|>"))]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}
    with open(path, "w", encoding="utf-8") as out:
        json.dump({"added_tokens": special, "normalizer": None, "pre_tokenizer": byte_level, "decoder": byte_level,
                   "model": {"type": "BPE", "vocab": vocabulary, "merges": merges}}, out)


def main(name, folder):
    shape = SHAPES[name]
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as out:
        json.dump({
            "model_type": "orthrus", "architectures": ["OrthrusLM"], "hidden_act": "silu", "rms_norm_eps": 1e-6,
            "vocab_size": VOCABULARY, "hidden_size": shape["hidden"], "intermediate_size": shape["mlp"],
            "num_hidden_layers": shape["layers"], "num_attention_heads": shape["heads"],
            "num_key_value_heads": KV_HEADS, "head_dim": HEAD, "max_position_embeddings": 40960,
            "rope_theta": 1000000, "tie_word_embeddings": shape["tied"], "attention_bias": False, "block_size": 32,
            "mask_token_id": 151669, "eos_token_id": TOKENS}, out)
    write_tokenizer(os.path.join(folder, "tokenizer.json"))
    write_weights(shape, os.path.join(folder, "model.safetensors"))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
