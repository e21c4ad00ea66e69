#!/usr/bin/env python3
"""Compares `orthrus tokenize` with the `tokenizers` package on generated text.

Texts of a fixed seed (random Unicode, code, white space, digits, contractions, emoji, long runs) go
through both with the tokenizers of Qwen3, the tiny checkpoint and SmolLM2 (from its GGUF file), and
with one of SentencePiece's kind that is trained here on this project's texts, in each form that
tokenizer.json and GGUF files have for it; the ids must agree, and the text that they stand for.
Needs the packages `tokenizers` and `gguf`.
"""

import argparse
import json
import lzma
import os
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

DATA = Path(__file__).resolve().parent.parent / "data"

WORDS = (
    "the of and to in is was for that café naïve Straße Ωmega Привет мир 你好 世界 こんにちは 안녕하세요 "
    "مرحبا שלום नमस्ते สวัสดี it's I'm we'll THEY'RE don'T he'd you've 'tis o'clock x1 v2.0 3.14159 "
    "1234567890 ½ Ⅷ ² ٣٤٥ １２３ snake_case camelCase __init__ #include <vector> std::cout<<endl; "
    "a[i+1]={0,}; //// /* */ -> => !== ... ??? !!! €100 100% @user #tag https://example.org/?q=1&r=2"
).split(" ")
SPACES = [" ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", " \n", "\n ", "\t\t", "\u00a0", "\u3000", "\u2003", "\u200b", "\u0085"]
EMOJI = ["😀", "👨‍👩‍👧‍👦", "🇩🇪", "👍🏽", "❤️", "🏳️‍🌈", "©", "™", "\ufe0f", "\u200d"]
MARKS = ["e\u0301", "\u0301", "\u0323\u0307", "a\u0308\u0323", "\u1100\u1161\u11a8", "\uac00\u11a8", "\u212b", "\u0958", "\ufb1d", "\u2126"]
# Left out: characters newer than Unicode 13, on whose classes the libraries' tables disagree.
RANGES = [(0x20, 0x7E), (0xA0, 0x24F), (0x370, 0x3FF), (0x400, 0x4FF), (0x5D0, 0x5EA), (0x620, 0x64A),
          (0x904, 0x939), (0xE01, 0xE3A), (0x1E00, 0x1EFF), (0x2000, 0x206F), (0x2190, 0x21FF),
          (0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xE000, 0xE0FF), (0xF900, 0xFA6D),
          (0xFE00, 0xFE0F), (0xFF01, 0xFF60), (0x1D400, 0x1D454), (0x1F300, 0x1F5FF),
          (0x20000, 0x20100), (0x0, 0x1F)]  # fmt: skip


def snippet(rng, specials):
    """One text; the kinds are those that tokenizers get wrong."""
    kind = rng.randrange(10)
    if kind == 0:
        return "".join(chr(rng.randint(*rng.choice(RANGES))) for _ in range(rng.randint(1, 60)))
    if kind == 1:
        return "".join(rng.choice(SPACES) for _ in range(rng.randint(1, 12))) + rng.choice(["", "x", "7", "!"])
    if kind == 2:
        return rng.choice(["a", " ", "\n", "1", "=", "ab", "é", "😀", " \n", "'s", "你"]) * rng.randint(1, 200)
    if kind == 3:
        return "".join(rng.choice(EMOJI + MARKS) for _ in range(rng.randint(1, 15)))
    if kind == 4:
        return "".join(rng.choice("0123456789.,+-e ") for _ in range(rng.randint(1, 30)))
    if kind == 5:
        return rng.choice(specials) + rng.choice(["", " ", "\n", "x"]) + rng.choice(specials)[: rng.randint(1, 12)]
    if kind == 6:
        return "".join(rng.choice("abcdefghijklmnopqrstuvwxyzABC'_") for _ in range(rng.randint(1, 300)))
    if kind == 7:
        line = "    " * rng.randint(0, 4) + "if (x%d >= %d) { return f(\"%s\"); }" % (
            rng.randint(0, 99), rng.randint(0, 9999), rng.choice(WORDS))  # fmt: skip
        return "\n".join([line] * rng.randint(1, 4))
    return "".join(rng.choice(WORDS) + rng.choice(SPACES[:6] + [" "] * 12) for _ in range(rng.randint(1, 40)))


def batches(specials, count, per_batch):
    """Joined snippets; each ends with a full stop, so that no program can take a last newline away."""
    rng = random.Random(20240517)
    for _ in range(count):
        yield "".join(snippet(rng, specials) for _ in range(per_batch)) + "."


def read_gguf_metadata(path):
    """The metadata of a GGUF file (version 2 or 3) as a dictionary."""
    scalars = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
    with open(path, "rb") as file:

        def number(code):
            return struct.unpack("<" + code, file.read(struct.calcsize("<" + code)))[0]

        def value(kind):
            if kind == 8:
                return file.read(number("Q")).decode()
            if kind == 9:
                inner, count = number("I"), number("Q")
                return [value(inner) for _ in range(count)]
            return number(scalars[kind])

        assert file.read(4) == b"GGUF", path
        number("I"), number("Q")
        count = number("Q")
        return {value(8): value(number("I")) for _ in range(count)}


def reference_from_gguf(path):
    """SmolLM2's tokenizer as the package would have it from its tokenizer.json."""
    data = read_gguf_metadata(path)
    tokens = data["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in data["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    assert data["tokenizer.ggml.pre"] == "smollm", data["tokenizer.ggml.pre"]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    types = data["tokenizer.ggml.token_type"]
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token, kind in zip(tokens, types) if kind == 3])
    return tokenizer


MARK = "\u2581"
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
SPECIALS = ["<unk>", "<s>", "</s>"]


def trained_pieces(size):
    """Tokens of a BPE trained on this project's texts, best first, then its single characters."""
    root = DATA.parent.parent
    texts = [path.read_text() for path in sorted([*root.glob("*.md"), *root.glob("docs/*.md"), *root.glob("src/*/*.h")])]
    texts += [" ".join(WORDS) + "\n" + "=" * 40 + " " * 40] * 3
    trained = Tokenizer(models.BPE())
    trained.normalizer = normalizers.Replace(" ", MARK)
    trained.pre_tokenizer = pre_tokenizers.Split(MARK, "merged_with_next")
    trained.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=size, show_progress=False))
    pieces = sorted(trained.get_vocab(), key=trained.get_vocab().get)
    runs = [mark * n for n in (2, 3, 4, 8, 16) for mark in (MARK, "=")]
    longer = [*runs, *(piece for piece in pieces if len(piece) > 1 and piece not in runs)]
    return longer, [piece for piece in pieces if len(piece) == 1 and piece != "\n"]


def sentencepiece_vocabulary():
    """Tokens, scores and merges as a converted Llama 2 has them: the ids of longer tokens follow their scores, and a
    token has a merge for each way to cut it into two others."""
    longer, characters = trained_pieces(3000)
    tokens = SPECIALS + BYTES + longer + characters
    scores = [0.0] * (len(SPECIALS) + len(BYTES)) + [-float(i) for i in range(len(longer) + len(characters))]
    known = set(longer + characters)
    merges = [(piece[:i], piece[i:]) for piece in longer for i in range(1, len(piece))
              if piece[:i] in known and piece[i:] in known]  # fmt: skip
    return tokens, scores, merges


def sentencepiece_reference(tokens, merges, normalizer, pre_tokenizer, strip):
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges, byte_fallback=True,
                                     fuse_unk=True, unk_token="<unk>"))  # fmt: skip
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIALS])
    tokenizer.add_tokens([AddedToken("<|call|>", normalized=True)])
    tokenizer.decoder = decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse(),
                                           *([decoders.Strip(" ", 1, 0)] if strip else [])])  # fmt: skip
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A", None, [("<s>", 1)])
    return tokenizer


def write_sentencepiece_gguf(path, tokens, scores, space_prefix):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    kinds = [2, 3, 3] + [6] * len(BYTES)
    writer.add_token_types(kinds + [1] * (len(tokens) - len(kinds)))
    writer.add_bos_token_id(1)
    if not space_prefix:
        writer.add_add_space_prefix(False)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def sentencepiece_cases(directory):
    """Name, model and reference of each form. "By score" has merges by score, the reference the same as ranks."""
    tokens, scores, merges = sentencepiece_vocabulary()
    prepended = normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)])
    replaced = normalizers.Replace(" ", MARK)
    forms = {"as Llama 2": (prepended, None, True), "without a space before": (replaced, None, False),
             "Metaspace first": (None, pre_tokenizers.Metaspace(MARK, "first", False), True),
             "Metaspace always, split": (None, pre_tokenizers.Metaspace(MARK, "always", True), True),
             "Metaspace never": (None, pre_tokenizers.Metaspace(MARK, "never", False), False)}  # fmt: skip
    for number, (name, form) in enumerate(forms.items()):
        folder = Path(directory) / f"sentencepiece{number}"
        folder.mkdir()
        reference = sentencepiece_reference(tokens, merges, *form)
        reference.save(str(folder / "tokenizer.json"))
        yield f"SentencePiece, {name}", folder, reference
    for space_prefix in (True, False):
        path = Path(directory) / f"sentencepiece{space_prefix}.gguf"
        write_sentencepiece_gguf(path, tokens, scores, space_prefix)
        form = (prepended, None, True) if space_prefix else (replaced, None, False)
        reference = sentencepiece_reference(tokens, merges, *form)
        # The file has no tokens that were added to the vocabulary.
        document = json.loads(reference.to_str())
        document["added_tokens"] = [token for token in document["added_tokens"] if token["special"]]
        yield f"SentencePiece, by score, prefix {space_prefix}", path, Tokenizer.from_str(json.dumps(document))


def tokenize(program, model, text, *flags):
    done = subprocess.run([program, "tokenize", "-m", str(model), "-f", "-", "--json", *flags],
                          input=text.encode(), capture_output=True, check=False)  # fmt: skip
    if done.returncode != 0:
        sys.exit(f"{program} tokenize -m {model}: exit code {done.returncode}: {done.stderr.decode()}")
    return json.loads(done.stdout)["text" if "--ids" in flags else "token_ids"]


def compare(name, program, model, reference, count, per_batch):
    """Exits at the first difference."""
    specials = [token.content for token in reference.get_added_tokens_decoder().values()]
    compared = 0
    for index, text in enumerate(batches(specials, count, per_batch)):
        expected = reference.encode(text, add_special_tokens=False)
        found = tokenize(program, model, text)
        if found != expected.ids:
            at = next((i for i, (a, b) in enumerate(zip(found, expected.ids)) if a != b),
                      min(len(found), len(expected.ids)))  # fmt: skip
            begin = expected.offsets[min(at, len(expected.ids) - 1)][0]
            sys.exit(f"{name}: batch {index} differs at token {at}: found {found[at:at + 8]}, expected "
                     f"{expected.ids[at:at + 8]}, near {text[max(0, begin - 20):begin + 40]!r}")  # fmt: skip
        text_again = tokenize(program, model, " ".join(map(str, found)), "--ids")
        if text_again != reference.decode(found, skip_special_tokens=False):
            sys.exit(f"{name}: batch {index}: the ids stand for {text_again!r}, expected "
                     f"{reference.decode(found, skip_special_tokens=False)!r}")  # fmt: skip
        compared += len(found)
    print(f"{name}: {compared} tokens of {count} texts agree")


def demo_gguf():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.environ.get("ORTHRUS_DEMO_GGUF") or f"{cache}/orthrus/smollm2-135m/SmolLM2-135M-Instruct.Q4_1.gguf"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="path of orthrus")
    parser.add_argument("--batches", type=int, default=12, help="texts for each tokenizer")
    parser.add_argument("--snippets", type=int, default=150, help="snippets in a text")
    args = parser.parse_args()
    tiny = DATA / "tiny" / "checkpoint"
    with tempfile.TemporaryDirectory() as directory:
        qwen3 = Path(directory) / "tokenizer.json"
        qwen3.write_bytes(lzma.open(DATA / "tokenizer" / "qwen3_tokenizer.json.xz").read())
        cases = [("Qwen3", directory, Tokenizer.from_file(str(qwen3))),
                 ("tiny", tiny, Tokenizer.from_file(str(tiny / "tokenizer.json"))),
                 ("SmolLM2", demo_gguf(), reference_from_gguf(demo_gguf())),
                 *sentencepiece_cases(directory)]  # fmt: skip
        for name, model, reference in cases:
            compare(name, args.program, model, reference, args.batches, args.snippets)


if __name__ == "__main__":
    main()
