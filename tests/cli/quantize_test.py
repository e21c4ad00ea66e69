"""What `orthrus quantize` writes, read again by this program, by the gguf package, and by llama-cpp-python where
that is installed, for the tests or for the race (its build takes long: `make test` does not bring it, `make bench-peers` does).

Usage: quantize_test.py PROGRAM SOURCE_ROOT [unittest arguments]."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import gguf
import numpy

from program import DEMO, PROGRAM, TINY, ProgramTest, main, orthrus, plain_base

PEERS = pathlib.Path(__file__).parents[2] / "build/peers/venv"  # of `make bench-peers`

try:
    sys.path += map(str, PEERS.glob("lib/python*/site-packages"))  # behind the tests' own packages
    import llama_cpp
except ImportError:
    llama_cpp = None

PROMPT = "Tom has 3 apples"


class QuantizeTest(ProgramTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.output = str(self.folder / "out.gguf")

    def quantize(self, model, kind, *flags):
        return self.succeed("quantize", "-m", model, "-o", self.output, "--type", kind, *flags)

    def run_model(self, model, *flags, temperature="0"):
        return json.loads(self.succeed("run", "-m", model, "--json", "--temp", temperature, "--seed", "1", *flags))


class ReadAgain(QuantizeTest):
    def test_texts_are_those_of_the_same_weights_made_at_load(self):
        for kind, weights in (("q8_0", "q8"), ("Q4_0", "q4"), ("BF16", "bf16")):
            self.quantize(TINY, kind)
            # With the chat template, and with the model's own way of sampling.
            for flags in (["--raw"], [], ["--raw", "--view", "ar"], ["--draft-max", "7"]):
                for temperature in ("0", "0.9"):
                    with self.subTest(kind=kind, flags=flags, temperature=temperature):
                        ask = ["-p", PROMPT, "-n", "40", *flags]
                        at_load = self.run_model(TINY, "--weights", weights, *ask, temperature=temperature)
                        again = self.run_model(self.output, *ask, temperature=temperature)
                        for key in ("token_ids", "text", "prompt_tokens", "finish_reason"):
                            self.assertEqual(again[key], at_load[key])
                        if "--draft-max" in flags:
                            self.assertEqual((again["drafted"], again["accepted"]), (at_load["drafted"], at_load["accepted"]))
            own = ["run", "--seed", "3", "-n", "20", "-p", PROMPT, "-m"]
            self.assertEqual(self.succeed(*own, self.output), self.succeed(*own, TINY, "--weights", weights))

    def test_lines_of_generate(self):
        lines = "".join(json.dumps({"prompt": f"Tom has {n} apples"}) + "\n" for n in range(4))
        def texts(*model):
            out = self.succeed("generate", "-f", "-", "-n", "20", "--temp", "0", "-m", *model, stdin=lines)
            return [json.loads(line)["text"] for line in out.splitlines()]
        self.quantize(TINY, "q8_0")
        self.assertEqual(texts(self.output), texts(TINY, "--weights", "q8"))

    def test_the_demo_model_with_its_adapter(self):
        self.assertRegex(self.quantize(DEMO, "q8_0"), r"^\S+out.gguf: 393 tensors, [\d,]+ bytes\n$")
        shown = json.loads(self.succeed("inspect", "-m", self.output, "--json"))
        original = json.loads(self.succeed("inspect", "-m", DEMO, "--json"))
        self.assertEqual(shown["diffusion_view"], "its own files")
        for key in ("name", "parameters", "diffusion_parameters", "block_size", "architecture", "layers"):
            self.assertEqual(shown[key], original[key])
        self.assertEqual(shown["types"]["Q8_0"]["parameters"], original["parameters"] - original["types"]["F32"]["parameters"])
        ask = ["-p", "Give three tips for staying healthy.", "-n", "60"]
        dual = self.run_model(self.output, *ask, "--draft-max", "7")
        self.assertEqual(dual["text"], self.run_model(self.output, *ask, "--view", "ar")["text"])
        before = self.run_model(DEMO, *ask, "--draft-max", "7")
        self.assertGreater(dual["tokens_per_cycle"], 0.7 * before["tokens_per_cycle"])
        # A base alone takes the adapter of the model that it was made of, without a warning.
        self.quantize(DEMO, "q4_0", "--view", "ar")
        adapter = json.loads(self.succeed("adapter", "-m", DEMO, "--json"))["path"]
        done = orthrus("run", "-m", self.output, "--adapter", adapter, "-p", "Hi", "-n", "4")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(json.loads(self.succeed("adapter", "-m", self.output, adapter, "--json"))["trained_on"], "this model")

    def test_notices(self):
        done = orthrus("quantize", "-m", DEMO, "-o", self.output, "--view", "ar")
        self.assertRegex(done.stderr, r"^orthrus: .*holds Q4_1 weights: they are read as floats, what they have lost stays lost\n$")
        done = orthrus("quantize", "-m", TINY, "-o", self.output)
        self.assertEqual(done.stderr, "")


class Refusals(QuantizeTest):
    def test_usage(self):
        for pattern, flags in (("which model", ["-o", "x"]), ("which file to write", ["-m", TINY]),
                               ("--type: ", ["-m", TINY, "-o", "x", "--type", "q5_0"]),
                               ("copy has no weights", ["-m", TINY, "-o", "x", "--adapter", "copy"]),
                               ("has no diffusion view", ["-m", plain_base(self.folder), "-o", "x", "--view", "dual"])):
            self.refuse(2, pattern, "quantize", *flags)

    def test_an_input_is_not_replaced(self):
        self.quantize(TINY, "q8_0")
        before = pathlib.Path(self.output).read_bytes()
        link = str(self.folder / "link.gguf")
        os.link(self.output, link)
        for output in (self.output, link):
            self.refuse(1, "is a file of the model itself", "quantize", "-m", self.output, "-o", output, "--type", "q4_0")
        self.assertEqual(pathlib.Path(self.output).read_bytes(), before)

    def test_a_full_disk_leaves_the_old_file(self):
        pathlib.Path(self.output).write_text("old")
        command = f"ulimit -f 100; exec '{PROGRAM}' quantize -m '{TINY}' -o '{self.output}'"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, f"orthrus: error: {self.output}: cannot be written: File too large\n")
        self.assertEqual(pathlib.Path(self.output).read_text(), "old")
        self.assertEqual(os.listdir(self.folder), ["out.gguf"])

    def test_ctrl_c_leaves_nothing(self):
        done = subprocess.Popen([PROGRAM, "quantize", "-m", DEMO, "-o", self.output], stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
        while done.poll() is None and not os.listdir(self.folder):
            time.sleep(0.001)
        done.send_signal(signal.SIGINT)
        self.assertEqual(done.wait(timeout=120), 130)
        self.assertEqual(os.listdir(self.folder), [])


class Elsewhere(QuantizeTest):
    def test_the_gguf_package_reads_the_same_values(self):
        base = plain_base(self.folder)
        steps = {gguf.GGMLQuantizationType.Q8_0: 1 / 127, gguf.GGMLQuantizationType.Q4_0: 1 / 6,
                 gguf.GGMLQuantizationType.BF16: 2**-8, gguf.GGMLQuantizationType.F32: 0}
        self.quantize(base, "bf16")
        exact = {t.name: gguf.dequantize(t.data, t.tensor_type) for t in gguf.GGUFReader(self.output).tensors}
        for kind in ("q8_0", "q4_0"):
            self.quantize(base, kind)
            reader = gguf.GGUFReader(self.output)
            self.assertEqual({t.name for t in reader.tensors}, set(exact))
            for tensor in reader.tensors:
                found = gguf.dequantize(tensor.data, tensor.tensor_type)
                wanted = exact[tensor.name]
                self.assertEqual(found.shape, wanted.shape)
                most = numpy.abs(wanted.reshape(-1, min(32, wanted.shape[-1]))).max(axis=1, keepdims=True)
                error = numpy.abs(found - wanted).reshape(most.shape[0], -1)
                self.assertTrue((error <= most * steps[tensor.tensor_type]).all(), tensor.name)

    def test_the_gguf_package_reads_the_metadata(self):
        self.quantize(plain_base(self.folder), "q8_0")
        reader = gguf.GGUFReader(self.output)
        field = lambda key: reader.get_field(key).contents()
        tokenizer = json.loads(pathlib.Path(TINY, "tokenizer.json").read_text())
        for key, value in (("general.architecture", "qwen3"), ("general.file_type", gguf.LlamaFileType.MOSTLY_Q8_0),
                           ("general.quantization_version", gguf.GGML_QUANT_VERSION), ("qwen3.block_count", 4),
                           ("qwen3.embedding_length", 192), ("qwen3.attention.key_length", 64),
                           ("qwen3.rope.freq_base", 10000.0), ("tokenizer.ggml.model", "gpt2"),
                           ("tokenizer.ggml.pre", "qwen2"), ("tokenizer.ggml.eos_token_id", 1023),
                           ("tokenizer.ggml.eot_token_id", 1021), ("tokenizer.ggml.add_bos_token", False),
                           ("general.sampling.temp", 0.7), ("general.sampling.top_k", 20),
                           ("tokenizer.chat_template", pathlib.Path(TINY, "chat_template.jinja").read_text())):
            self.assertEqual(field(key), value, key)
        tokens, types = field("tokenizer.ggml.tokens"), field("tokenizer.ggml.token_type")
        self.assertEqual((len(tokens), len(types)), (1088, 1088))
        for text, i in tokenizer["model"]["vocab"].items():
            self.assertEqual((tokens[i], types[i]), (text, gguf.TokenType.NORMAL))
        for token in tokenizer["added_tokens"]:
            self.assertEqual((tokens[token["id"]], types[token["id"]]), (token["content"], gguf.TokenType.CONTROL))
        self.assertEqual(types[1024:], [gguf.TokenType.UNUSED] * 64)
        self.assertEqual(len(field("tokenizer.ggml.merges")), len(tokenizer["model"]["merges"]))

    def test_the_diffusion_tensors_have_names_of_the_same_scheme(self):
        self.quantize(DEMO, "q4_0")
        names = {tensor.name: tensor for tensor in gguf.GGUFReader(self.output).tensors}
        for layer in range(30):
            for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
                view, base = names[f"blk.{layer}.{part}_diff.weight"], names[f"blk.{layer}.{part}.weight"]
                self.assertEqual((list(view.shape), view.tensor_type), (list(base.shape), base.tensor_type))
        self.assertEqual(list(names["mask_embd.weight"].shape), [576])

    @unittest.skipUnless(llama_cpp, f"llama-cpp-python is neither among the tests' packages nor in {PEERS}")
    def test_llama_cpp_reads_a_plain_base(self):
        for model, flags in ((plain_base(self.folder), []), (DEMO, ["--view", "ar"])):
            for kind in ("bf16", "q8_0", "q4_0"):
                with self.subTest(model=model, kind=kind):
                    self.quantize(model, kind, *flags)
                    llama = llama_cpp.Llama(model_path=self.output, n_ctx=256, verbose=False)
                    prompt = "Once upon a time"
                    ids = json.loads(self.succeed("tokenize", "-m", self.output, prompt, "--json"))
                    self.assertEqual(llama.tokenize(prompt.encode(), add_bos=False), ids["token_ids"])
                    mine = self.run_model(self.output, "--raw", "-p", prompt, "-n", "8", "--view", "ar", "--weights", "f32")
                    theirs = llama.create_completion(prompt, max_tokens=8, temperature=0)["choices"][0]["text"]
                    self.assertEqual(theirs[:10], mine["text"][:10])


if __name__ == "__main__":
    main()
