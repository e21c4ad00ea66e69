"""Makes the files of the race: the same weights for every engine.

A GGUF file for each precision comes from `orthrus quantize`. llama.cpp and orthrus read it as it is; OpenVINO's GGUF
reader makes a model of it (bfloat16 by way of float16, which it reads); CTranslate2's own classes take the values of
the bfloat16 file. Files that are there are kept."""

import argparse
import json
import lzma
import shutil
import subprocess
from pathlib import Path

import gguf
import numpy as np

SOURCE = Path(__file__).resolve().parents[2]
TYPES = {"bf16": "bf16", "q8": "q8_0", "q4": "q4_0"}
# As src/engine/shapes.cc has them.
QWEN3 = {"block_count": 28, "context_length": 40960, "head_count": 16, "head_count_kv": 8, "head_dim": 128,
         "vocab_size": 151936, "rope_freq_base": 1e6, "layer_norm_rms_eps": 1e-6}
SHAPES = {"qwen3-0.6b": QWEN3 | {"embedding_length": 1024, "feed_forward_length": 3072},
          "qwen3-1.7b": QWEN3 | {"embedding_length": 2048, "feed_forward_length": 6144}}


def once(path, make):
    """make(part) writes the file or folder `part`, which then becomes `path`: whole or not at all."""
    if not path.exists():
        print(f"writing {path}", flush=True)
        part = path.with_name("part-" + path.name)
        shutil.rmtree(part, ignore_errors=True)
        part.unlink(missing_ok=True)
        make(part)
        part.rename(path)
    return path


def to_bf16(values):
    """float32 to bfloat16, to nearest even, as uint16."""
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def write_random(shape, path):
    """A Qwen3 model of normal random weights with Qwen3's own tokenizer, padded to the embedding's rows."""
    s = SHAPES[shape]
    writer = gguf.GGUFWriter(path, "qwen3")
    writer.add_name(f"{shape}, random weights")
    for key in ("block_count", "context_length", "embedding_length", "feed_forward_length", "head_count", "head_count_kv",
                "layer_norm_rms_eps", "rope_freq_base", "vocab_size"):
        getattr(writer, f"add_{key}")(s[key])
    writer.add_key_length(s["head_dim"])
    writer.add_value_length(s["head_dim"])
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_BF16)
    add_tokenizer(writer, s["vocab_size"])
    rng = np.random.default_rng(1)
    width, inner = s["embedding_length"], s["feed_forward_length"]
    query, key = s["head_count"] * s["head_dim"], s["head_count_kv"] * s["head_dim"]

    def add_matrix(name, rows, columns):
        values = rng.standard_normal((rows, columns), dtype=np.float32) * np.float32(0.02)
        writer.add_tensor(name, to_bf16(values).view(np.uint8), raw_dtype=gguf.GGMLQuantizationType.BF16)

    def add_norm(name, count):
        writer.add_tensor(name, np.ones(count, dtype=np.float32))

    add_matrix("token_embd.weight", s["vocab_size"], width)
    for i in range(s["block_count"]):
        for name, count in (("attn_norm", width), ("attn_q_norm", s["head_dim"]), ("attn_k_norm", s["head_dim"]), ("ffn_norm", width)):
            add_norm(f"blk.{i}.{name}.weight", count)
        for name, rows, columns in (("attn_q", query, width), ("attn_k", key, width), ("attn_v", key, width),
                                    ("attn_output", width, query), ("ffn_gate", inner, width), ("ffn_up", inner, width),
                                    ("ffn_down", width, inner)):
            add_matrix(f"blk.{i}.{name}.weight", rows, columns)
    add_norm("output_norm.weight", width)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_tokenizer(writer, vocab_size):
    tokenizer = json.loads(lzma.open(SOURCE / "tests/data/tokenizer/qwen3_tokenizer.json.xz").read())
    tokens = {i: token for token, i in tokenizer["model"]["vocab"].items()}
    types = {i: gguf.TokenType.NORMAL for i in tokens}
    for added in tokenizer["added_tokens"]:
        tokens[added["id"]] = added["content"]
        types[added["id"]] = gguf.TokenType.CONTROL if added["special"] else gguf.TokenType.USER_DEFINED
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in tokenizer["model"]["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list([tokens.get(i, f"[PAD{i}]") for i in range(vocab_size)])
    writer.add_token_types([types.get(i, gguf.TokenType.UNUSED) for i in range(vocab_size)])
    writer.add_token_merges(merges)
    end = next(i for i, token in tokens.items() if token == "<|endoftext|>")
    writer.add_eos_token_id(end)
    writer.add_bos_token_id(end)
    writer.add_pad_token_id(end)
    writer.add_add_bos_token(False)


def write_f16(source, path):
    """The GGUF file with its bfloat16 values as float16."""
    reader = gguf.GGUFReader(source)
    architecture = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(path, architecture)
    for field in reader.fields.values():
        if field.name in ("general.architecture", "general.file_type") or field.name.startswith(("GGUF.", "orthrus.")):
            continue
        element = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=element)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    for tensor in reader.tensors:
        values = values_of(tensor)
        writer.add_tensor(tensor.name, values.astype(np.float16) if values.ndim == 2 else values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def values_of(tensor):
    """float32, [rows, columns] or [columns]"""
    return gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32, copy=False)


def write_openvino(source, folder):
    import openvino_genai

    # The reader puts its files beside the GGUF file.
    folder.mkdir()
    link = folder / source.name
    link.symlink_to(source.resolve())
    openvino_genai.LLMPipeline(str(link), "CPU", enable_save_ov_model=True)
    link.unlink()
    if not (folder / "openvino_model.xml").exists():
        raise SystemExit(f"openvino-genai wrote no model of {source}")


def write_ctranslate2(source, folder):
    from ctranslate2.specs import common_spec, transformer_spec

    reader = gguf.GGUFReader(source)
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    architecture = reader.fields["general.architecture"].contents()

    def setting(name):
        return reader.fields[f"{architecture}.{name}"].contents()

    def values(name):
        return values_of(tensors[name + ".weight"])

    heads = setting("attention.head_count")
    qwen = architecture == "qwen3"
    head_dim = setting("attention.key_length") if qwen else setting("embedding_length") // heads
    # Files of the llama architecture hold the rows of queries and keys in the order of neighbouring pairs.
    spec = transformer_spec.TransformerDecoderModelSpec.from_config(
        setting("block_count"), heads, activation=common_spec.Activation.SWISH, pre_norm=True, ffn_glu=True, rms_norm=True,
        rotary_dim=head_dim, rotary_interleave=not qwen, rotary_base=setting("rope.freq_base"),
        num_heads_kv=setting("attention.head_count_kv"), head_dim=head_dim, qk_norm=qwen)
    decoder = spec.decoder
    decoder.scale_embeddings = False
    decoder.embeddings.weight = values("token_embd")
    decoder.projection.weight = values("output" if "output.weight" in tensors else "token_embd")
    decoder.layer_norm.gamma = values("output_norm")
    for i, layer in enumerate(decoder.layer):
        block = f"blk.{i}."
        attention = layer.self_attention
        attention.layer_norm.gamma = values(block + "attn_norm")
        attention.linear[0].weight = np.concatenate([values(block + name) for name in ("attn_q", "attn_k", "attn_v")])
        attention.linear[1].weight = values(block + "attn_output")
        if qwen:
            attention.q_norm.gamma = values(block + "attn_q_norm")
            attention.k_norm.gamma = values(block + "attn_k_norm")
        layer.ffn.layer_norm.gamma = values(block + "ffn_norm")
        layer.ffn.linear_0.weight = values(block + "ffn_gate")
        layer.ffn.linear_0_noact.weight = values(block + "ffn_up")
        layer.ffn.linear_1.weight = values(block + "ffn_down")
    tokens = reader.fields["tokenizer.ggml.tokens"].contents()
    spec.register_vocabulary(tokens)
    end = tokens[reader.fields["tokenizer.ggml.eos_token_id"].contents()]
    spec.config.bos_token = spec.config.eos_token = spec.config.unk_token = end
    spec.config.layer_norm_epsilon = setting("attention.layer_norm_rms_epsilon")
    spec.validate()
    spec.optimize(quantization="int8")
    folder.mkdir()
    spec.save(str(folder))


def quantize(model, precision, path, *flags):
    subprocess.run([SOURCE / "build/orthrus", "quantize", "-m", model, "-o", path, "--type", TYPES[precision], *flags],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def make(model, precision, peers, folder):
    """{engine: what its worker opens}"""
    folder.mkdir(parents=True, exist_ok=True)

    def of_precision(name):
        path = folder / f"{model}-{name}.gguf"
        if model not in SHAPES:
            return once(path, lambda part: quantize(model, name, part, "--view", "ar"))
        if name == "bf16":
            return once(path, lambda part: write_random(model, part))
        source = of_precision("bf16")
        return once(path, lambda part: quantize(source, name, part))

    file = of_precision(precision)
    paths = {"orthrus": file, "llama.cpp": file}
    if "openvino" in peers:
        source = file
        if precision == "bf16":
            source = once(folder / f"{model}-f16.gguf", lambda part: write_f16(file, part))
        paths["openvino"] = once(folder / f"{model}-{precision}-openvino", lambda part: write_openvino(source, part))
    if "ctranslate2" in peers and precision == "q8":
        source = of_precision("bf16")
        paths["ctranslate2"] = once(folder / f"{model}-ctranslate2", lambda part: write_ctranslate2(source, part))
    return paths


def make_dual(model, precision, folder):
    """The model with its diffusion view, for orthrus alone."""
    return once(folder / f"{model}-{precision}-dual.gguf", lambda part: quantize(model, precision, part))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("precision", choices=TYPES)
    arguments = parser.parse_args()
    for peer, path in make(arguments.model, arguments.precision, ("openvino", "ctranslate2"), SOURCE / "build/peers/models").items():
        print(peer, path)
