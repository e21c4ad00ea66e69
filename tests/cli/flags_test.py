"""Flags, config files and files as a person gives them, above all wrong ones.

Usage: flags_test.py PROGRAM SOURCE_ROOT [unittest arguments]."""

import json
import os
import pathlib
import re
import tempfile

from program import DEMO, ROOT, TINY, ProgramTest, main, orthrus, plain_base

COMMANDS = ["run", "chat", "generate", "inspect", "plan", "bench", "eval", "perplexity", "tokenize", "template",
            "adapter", "quantize", "pull", "version"]


class Help(ProgramTest):
    def test_overview_lists_the_commands(self):
        for arguments in (["--help"], ["help"], ["-h"]):
            text = self.succeed(*arguments)
            for command in COMMANDS:
                self.assertRegex(text, rf"(?m)^  {command} ")

    def test_every_command_has_a_help(self):
        for command in COMMANDS:
            text = self.succeed(command, "--help")
            self.assertIn("Usage: orthrus " + command, text)
            self.assertEqual(text, self.succeed("help", command))

    def test_helps_say_what_one_must_know(self):
        for command, words in (("chat", ("/reset", "/stats", "/help", "/exit", "Ctrl-C")), ("plan", ("Exit code: 0", "1 where")),
                               ("bench", ("decode (one-row steps)", "takes ar,dual", "ratio of their times")),
                               ("template", ("array of messages",)), ("run", ("by their long names",))):
            text = " ".join(self.succeed(command, "--help").split())
            for word in words:
                self.assertIn(word, text)

    def test_nothing_is_a_usage_error_with_the_overview(self):
        done = orthrus()
        self.assertEqual(done.returncode, 2)
        self.assertIn("Usage: orthrus COMMAND", done.stdout)

    def test_version(self):
        self.assertRegex(self.succeed("--version"), r"^orthrus \d+\.\d+\.\d+\n$")
        report = json.loads(self.succeed("version", "--json"))
        self.assertIn(report["isa"], report["isa_supported"])
        portable = json.loads(self.succeed("version", "--json", env={"ORTHRUS_ISA": "portable"}))
        self.assertEqual(portable["isa"], "portable")
        folders = json.loads(self.succeed("version", "--json", env={"ORTHRUS_MODELS_DIR": "/mine"}))["model_folders"]
        self.assertEqual(folders[0], "/mine")
        self.assertIn(str(ROOT / "models"), folders)
        self.refuse(2, "ORTHRUS_ISA", "version", env={"ORTHRUS_ISA": "sse9"})


class HostileInput(ProgramTest):
    def test_json_nested_deeply(self):
        deep = '{"a":' + "[" * 60000 + "]" * 60000 + "}"
        self.refuse(2, r"--chat-template-kwargs: expected a JSON object: its text: JSON nested deeper", "run", "-m", TINY,
                    "--chat-template-kwargs", deep, "x")

    def test_a_named_pipe_is_no_model(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "pipe")
            os.mkfifo(path)
            for command in ("run", "tokenize"):
                self.refuse(1, re.escape(path), command, "-m", path, "x")
            for command in ("inspect", "plan", "template"):
                self.refuse(1, re.escape(path), command, "-m", path, stdin='{"messages": []}')


class WrongFlags(ProgramTest):
    def test_unknown_command_and_flag_name_the_nearest(self):
        self.refuse(2, r"unknown command rnu \(the nearest is run\)", "rnu")
        self.refuse(2, r"unknown flag --tmep \(the nearest is --temp\)", "run", "-m", TINY, "--tmep=1", "x")
        self.refuse(2, "a command comes first", "-m", TINY, "run")
        self.refuse(2, "--loud", "pull", "smollm2-135m", "--loud")

    def test_flags_of_others_say_what_to_do_instead(self):
        for command in (*COMMANDS, "serve"):
            given = ["OWNER/NAME"] if command == "pull" else [] if command in ("version", "adapter") else ["-m", TINY]
            self.refuse(2, "no flag --mlock here: weights are packed into memory", command, *given, "--mlock")
            self.refuse(2, "no flag --gpu-layers here: the CPU does all work", command, *given, "--gpu-layers=99")
            self.refuse(2, "no flag -ngl here: the CPU does all work", command, *given, "-ngl", "99")
        self.refuse(2, "no flag --tensor-parallel-size here: one process", "serve", "-m", TINY, "--tensor-parallel-size", "2")
        self.refuse(2, "no flag --max-num-seqs here: it is a flag of serve", "run", "-m", TINY, "--max-num-seqs", "2", "x")
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write("flash_attn: true\n")
            file.flush()
            self.refuse(2, r"\.yaml: no key flash_attn here: there is one kind of attention", "run", "-m", TINY, "--config", file.name, "x")

    def test_names_that_vllm_gives_the_context(self):
        self.assertEqual(json.loads(self.succeed("plan", "-m", TINY, "--max-model-len", "128", "--json"))["context"], 128)

    def test_what_is_near_to_nothing_points_to_the_help(self):
        self.refuse(2, "unknown command xyzzy: `orthrus --help` lists them$", "xyzzy")
        self.refuse(2, "unknown flag --xyzzy: `orthrus run --help` lists them$", "run", "-m", TINY, "--xyzzy")
        self.refuse(2, "unknown flag -q: `orthrus run --help` lists them$", "run", "-m", TINY, "-q")

    def test_two_dashes_end_the_flags(self):
        for words in (["--", "-5", "is", "a", "number"], ["--", "-5 is a number"]):
            ids = self.succeed("tokenize", "-m", TINY, *words)
            self.assertEqual(ids, self.succeed("tokenize", "-m", TINY, "-p", "-5 is a number"))
        self.assertEqual(self.answer("-n", "3", "--", "--temp", "-m")["token_ids"], self.answer("-n", "3", "-p", "--temp -m")["token_ids"])
        self.assertEqual(self.succeed("tokenize", "-m", TINY, "--", "a", "--", "b"), self.succeed("tokenize", "-m", TINY, "-p", "a -- b"))
        self.assertIn("already there", self.succeed("pull", "--", DEMO))
        self.refuse(2, "unexpected argument -x", "version", "--", "-x")
        self.refuse(2, r"unexpected argument model.gguf \(-m names a model\)", "serve", "model.gguf")
        self.refuse(2, "--compare: expected ar,dual, found ar", "bench", "-m", TINY, "--compare", "ar")

    def test_empty_values(self):
        for command, flag in (("run", "--config"), ("run", "--adapter"), ("run", "-m"), ("run", "-f"), ("run", "-sys"),
                              ("run", "--stop"), ("generate", "-o"), ("generate", "-f"), ("eval", "--prompts"),
                              ("bench", "--shape"), ("perplexity", "-f"), ("adapter", "-o")):
            with self.subTest(command=command, flag=flag):
                self.refuse(2, "the value is empty$", command, "-m", TINY, flag, "")
        for words in (["inspect", ""], ["run", "-m", TINY, "--adapter=", "x"], ["template", "-m", TINY, ""], ["pull", ""]):
            self.refuse(2, "the value is empty$", *words)
        for flag in ("--view", "--weights", "-ctk", "--temp", "-n", "--draft-max", "--chat-template-kwargs"):
            self.refuse(2, flag.replace("-ctk", "--cache-type-k").lstrip("-"), "run", "-m", TINY, flag, "", "x")
        self.assertEqual(self.answer("-n", "2", "-p", "")["token_ids"], self.answer("-n", "2", "--prompt=")["token_ids"])
        self.assertEqual(self.answer("-n", "2", "-p", "")["token_ids"], self.answer("-n", "2", "")["token_ids"])

    def test_flags_of_llama_cpp_that_mean_something_else(self):
        self.refuse(2, "no flag -b here: llama.cpp's logical batch does not exist: -ub says .*--batch", "generate", "-m", TINY, "-b", "512")
        self.refuse(2, "expected bf16, f32 or q8, found .f16. .*bf16 takes as many bytes as f16", "run", "-m", TINY, "-ctk", "f16", "x")

    def test_types_of_keys_and_values(self):
        for flags, types in (([], ("bf16", "bf16")), (["--kv-type", "q8"], ("q8", "q8")), (["-ctk", "q8_0"], ("q8", "bf16")),
                             (["-ctv=f32", "--kv-type", "q8_0"], ("q8", "f32"))):
            with self.subTest(flags=flags):
                settings = self.answer("-n", "2", "--weights", "bf16", *flags, "a")["settings"]
                self.assertEqual((settings["cache_type_k"], settings["cache_type_v"]), types)
        for flag, size in (("f32", 64 * 4), ("bf16", 64 * 2), ("q8", 64 + 4)):
            plan = json.loads(self.succeed("plan", TINY, "--kv-type", flag, "--json"))
            self.assertEqual(plan["kv_bytes_per_token"], 2 * 4 * 2 * size)

    def test_packed_caches(self):
        run = ["run", "-m", TINY, "--raw", "-n", "8", "--temp", "0", "-p", "a"]
        plain = self.succeed(*run)
        with tempfile.TemporaryDirectory() as folder:
            home = {"XDG_CACHE_HOME": folder}
            usual, named = pathlib.Path(folder, "orthrus/packed"), pathlib.Path(folder, "named")
            config = pathlib.Path(folder, "config.yaml")
            for value in ("false", "off", "OFF", "no", "0"):
                self.assertEqual(self.succeed(*run, f"--cache-packed={value}", env=home), plain)
            in_the_way = pathlib.Path(folder, "file")
            in_the_way.write_text("no folder")
            self.refuse(2, f"--cache-packed={in_the_way}: expected a folder, on or off, found a file", *run,
                        f"--cache-packed={in_the_way}", env=home)
            self.assertFalse(usual.exists())
            # A value of the flag needs the sign: the next word is the prompt's.
            for value in (folder, "on", "./here"):
                self.refuse(2, f'--cache-packed {value}: expected the value behind a "=": --cache-packed={value}', *run,
                            "--cache-packed", value, env=home)
            for flags in (["--cache-packed"], ["--cache-packed=on"], ["--cache-packed", "-n", "8"], [f"--cache-packed={named}"]):
                self.assertEqual(self.succeed(*run, *flags, env=home), plain)
            first, = usual.iterdir()
            second, = named.iterdir()
            self.assertRegex(first.name, r"^checkpoint-auto-[0-9a-f]{16}\.packed$")
            self.assertEqual(first.name, second.name)
            self.assertEqual(first.read_bytes(), second.read_bytes())
            self.refuse(1, r"the packed weights of a model \(--cache-packed\), not a model", "inspect", first)
            for value, place in (("true", usual), (named, named)):
                for file in place.iterdir():
                    file.unlink()
                config.write_text(f"cache_packed: {value}\n")
                self.assertEqual(self.succeed(*run, "--config", config, env=home), plain)
                self.assertEqual(len(list(place.iterdir())), 1)

    def test_draft_flags_without_the_dual_view(self):
        run = ["run", "-m", TINY, "--raw", "-n", "2", "--temp", "0", "-p", "a"]
        plain = self.succeed(*run)
        for flags, named in ((["--draft-max", "4", "--consensus", "kl"], "--draft-max 4, --consensus kl"),
                             (["--consensus", "rejection"], "--consensus rejection"), (["--consensus-stats"], "--consensus-stats"),
                             (["--draft-max", "0"], None)):
            done = orthrus(*run, "--view", "ar", *flags)
            self.assertEqual((done.returncode, done.stdout), (0, plain))
            expected = f"orthrus: warning: without effect with --view ar: {named}\n" if named else ""
            self.assertEqual(done.stderr, expected)

    def test_a_copy_in_place_of_trained_weights_is_a_warning(self):
        for model in (TINY, DEMO):
            done = orthrus("inspect", "-m", model, "--adapter", "copy")
            self.assertEqual(done.returncode, 0)
            self.assertRegex(done.stderr, r"\Aorthrus: warning: --adapter copy: untrained weights take the place .*\n\Z")

    def test_the_adapter_of_an_official_checkpoint(self):
        self.assertIn("its own files", self.succeed("inspect", TINY))
        self.refuse(2, "the diffusion weights of .* are in its own files.*orthrus inspect", "adapter", "-m", TINY)
        with tempfile.TemporaryDirectory() as folder:
            self.refuse(2, "has no diffusion view of its own", "adapter", "-m", plain_base(pathlib.Path(folder)))

    def test_values_out_of_range(self):
        cases = [("--temp", "-1"), ("--temp", "nan"), ("--temp", "hot"), ("--top-p", "1.5"), ("--min-p", "inf"),
                 ("-n", "-2"), ("-n", "1e99"), ("-c", "-1"), ("-t", "-3"), ("-ub", "0"), ("-ctk", "q4"), ("--kv-type", "q4_0"),
                 ("--view", "both"), ("--weights", "q3"), ("--draft-max", "many"), ("--draft-max", "-2"),
                 ("--consensus", "maybe"), ("--consensus-threshold", "-1"), ("--seed", "-7"),
                 ("--logit-bias", "seven"), ("--logit-bias", "7"), ("--logit-bias", "7+nan"),
                 ("--logit-bias", "7+inf"), ("--chat-template-kwargs", "[1]"), ("--repeat-penalty", "0")]
        for flag, value in cases:
            with self.subTest(flag=flag, value=value):
                self.refuse(2, "expected|not in|convert", "run", "-m", TINY, "-p", "x", flag, value)

    def test_a_flag_without_its_value(self):
        self.refuse(2, "--model|-m", "run", "-m")

    def test_of_a_flag_given_twice_the_last_counts(self):
        settings = self.answer("-p", "a", "-n", "1", "--top-k", "5", "--top-k", "7", "--stop", "x", "--stop", "y")["settings"]
        self.assertEqual((settings["top_k"], settings["stop"]), (7, ["x", "y"]))

    def test_what_excludes_each_other(self):
        self.refuse(2, "no text", "run", "-m", TINY)
        self.refuse(2, "given twice", "run", "-m", TINY, "-p", "a", "b")
        self.refuse(2, "which model", "run", "-p", "a")
        self.refuse(2, "--compare and --json", "run", "-m", TINY, "-p", "a", "--compare", "--json")
        self.refuse(2, "no use with --view ar", "run", "-m", TINY, "-p", "a", "--view", "ar", "--adapter", "copy")
        self.refuse(2, "--system-prompt has no use with --raw", "run", "-m", TINY, "-p", "a", "--raw", "-sys", "b")

    def test_bench_flags_without_use(self):
        self.refuse(2, "--cases has no use with --compare", "bench", "-m", TINY, "--compare", "ar,dual", "--cases", "rows")
        for extra in ([], ["--compare", "ar,dual"]):
            self.refuse(2, "--limit belongs to --prompts", "bench", "-m", TINY, "--limit", "3", *extra)

    def test_messages_quote_a_bounded_part_of_the_input(self):
        long = "a\x1b\n" * 40_000
        for arguments in ([long], ["run", long, "-m"], ["run", "--" + long], ["run", "-m", TINY, "--view", long, "x"],
                          ["run", "-m", TINY, "--logit-bias", long, "x"], ["run", "-m", TINY, "--temp", long, "x"],
                          ["run", "-m", TINY, "--draft-max", long, "x"], ["run", "-m", long, "x"],
                          ["run", "-m", TINY, "--chat-template-kwargs", long, "x"]):
            done = orthrus(*arguments)
            self.assertIn(done.returncode, (1, 2))
            self.assertRegex(done.stderr, r"\Aorthrus: error: [^\x00-\x1f\x7f]{1,1010}\n\Z")

    def test_what_the_model_cannot_give_is_noted(self):
        done = orthrus("run", "-m", TINY, "-p", "a", "-n", "2", "--temp", "0", "--raw", "--draft-max", "500", "-c", "9000000")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"\Aorthrus: info: -c 9000000: the model's limit of \d+ tokens holds\n"
                         r"orthrus: info: --draft-max 500: the model drafts at most \d+ tokens a cycle\n\Z")

    def test_dual_view_without_diffusion_weights(self):
        with tempfile.TemporaryDirectory() as folder:
            base = plain_base(pathlib.Path(folder))
            self.assertEqual(orthrus("inspect", "-m", base, "--adapter", "copy").stderr, "")
            self.refuse(2, "no diffusion view", "run", "-m", base, "-p", "a", "--view", "dual")
            report = json.loads(self.succeed("run", "-m", base, "-p", "a", "-n", "4", "--temp", "0", "--raw", "--json"))
            self.assertEqual(report["settings"]["view"], "ar")
            copy = json.loads(self.succeed("run", "-m", base, "-p", "a", "-n", "4", "--temp", "0", "--raw", "--json", "--adapter", "copy"))
            self.assertEqual(copy["settings"]["view"], "dual")
            self.assertEqual(copy["token_ids"], report["token_ids"])


class BadFiles(ProgramTest):
    def test_models_that_are_none(self):
        with tempfile.TemporaryDirectory() as folder:
            self.refuse(1, "no such file or directory, nor a known model.*smollm2-135m", "run", "-m", "/no/such", "x")
            self.refuse(1, "no such file", "inspect", "smollm3-9b")
            self.refuse(1, "config.json", "run", "-m", folder, "x")
            junk = pathlib.Path(folder) / "junk.gguf"
            for content in (b"", b"GGUF", b"\0" * 4096, os.urandom(4096)):
                junk.write_bytes(content)
                self.refuse(1, "junk.gguf", "inspect", str(junk))

    def test_a_gguf_file_under_another_name(self):
        source = self.succeed("pull", DEMO).split(": ", 1)[1].rsplit(" (", 1)[0]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.bin")
            os.symlink(source, path)
            self.assertEqual(json.loads(self.succeed("inspect", path, "--json"))["layers"], 30)
            self.assertTrue(self.succeed("run", "-m", path, "-n", "2", "--temp", "0", "-p", "Hi"))
            pathlib.Path(folder, "x.bin").write_text("no model")
            self.refuse(1, "neither a directory nor a GGUF file", "inspect", os.path.join(folder, "x.bin"))

    def test_a_known_model_that_was_not_pulled(self):
        with tempfile.TemporaryDirectory() as folder:
            self.refuse(1, "run `orthrus pull smollm2-135m`", "inspect", "smollm2-135m", env={"XDG_CACHE_HOME": folder})

    def test_optional_files_that_cannot_be_read(self):
        for name in ("generation_config.json", "tokenizer_config.json", "chat_template.jinja"):
            with tempfile.TemporaryDirectory() as folder, self.subTest(name=name):
                base = pathlib.Path(plain_base(pathlib.Path(folder)))
                (base / name).unlink(missing_ok=True)
                self.succeed("run", "-m", str(base), "-n", "1", "--raw", "x")
                (base / name).symlink_to(name)
                self.refuse(1, f"cannot open .*{name}: Too many levels of symbolic links", "run", "-m", str(base), "-n", "1", "x")

    def test_prompt_files(self):
        self.refuse(1, "/no/such", "run", "-m", TINY, "-f", "/no/such")
        self.refuse(1, "cannot read", "run", "-m", TINY, "-f", "/")

    def test_adapters(self):
        self.refuse(1, "/no/adapter", "run", "-m", TINY, "--adapter", "/no/adapter", "x")

    def test_an_adapter_of_another_base_is_a_warning(self):
        adapter = (ROOT / "models" / DEMO / "adapter.safetensors").read_bytes()
        known = json.loads(self.succeed("adapter", "-m", DEMO, "--json"))["base_hash"].encode()
        self.assertGreaterEqual(adapter.count(known), 1)  # the settings of its training name it too
        answer = ["run", "-m", DEMO, "-n", "4", "--temp", "0", "-p", "Hi"]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "other.safetensors")
            pathlib.Path(path).write_bytes(adapter.replace(known, b"0" * 64))
            done = orthrus(*answer, "--adapter", path)
            self.assertEqual((done.returncode, done.stdout), (0, self.succeed(*answer)))
            self.assertRegex(done.stderr, r"\Aorthrus: warning: adapter .*other.safetensors was trained on another base .*\n\Z")
            self.assertIn("trained on:  another model", self.succeed("adapter", "show", "-m", DEMO, path))

    def test_jsonl(self):
        for line, pattern in [("{", "stdin:1"), ('{"prompt": 1}', "stdin:1.*expected a string"), ("[]", "stdin:1"),
                              ("[" * 100_000, "stdin:1")]:
            self.refuse(1, pattern, "generate", "-m", TINY, stdin=line)

    def test_template_requests(self):
        deep = '{"messages": ' + "[" * 2_000_000 + "]" * 2_000_000 + "}"
        for request in ["", "3", "{}", deep, '{"messages": 3}', '{"messages": [], "kwargs": 3}']:
            self.refuse(1, "template request|JSON", "template", "-m", TINY, stdin=request)


class ConfigFiles(ProgramTest):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "config.yaml")

    def tearDown(self):
        self.folder.cleanup()

    def write(self, text):
        pathlib.Path(self.path).write_text(text)

    def test_flags_win_over_the_config_and_the_config_over_defaults(self):
        self.write(f"model: {TINY}\ntemp: 0.5\nseed: 11\nmax_seq_len: 256\nn-predict: 4\nraw: true\n")
        report = json.loads(self.succeed("run", "--config", self.path, "--json", "-p", "a", "--seed", "12"))
        settings = report["settings"]
        self.assertEqual([settings[k] for k in ("temperature", "seed", "ctx_size", "max_tokens")], [0.5, 12, 256, 4])

    def test_serving_keys_are_named_once(self):
        self.write("prefill_batch_size: 16\ndecode_batch_size: 8\nmax_seq_len: 256\nconsensus_threshold: 0.01\n"
                   "kv_cache_memory_budget_gb: 40\nmemory_utilization_target: 0.75\ndynamic_adjust_interval_ms: 500\n")
        done = orthrus("run", "-m", TINY, "--config", self.path, "-p", "a", "-n", "1", "--raw")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, "without effect here: prefill_batch_size, decode_batch_size, "
                         "kv_cache_memory_budget_gb, memory_utilization_target, dynamic_adjust_interval_ms\n$")

    def test_keys_of_the_article_are_those_of_the_docs(self):
        section = (ROOT / "docs/formats.md").read_text().split("\n## Config files\n")[1].split("\n## ")[0]
        rows = [line for line in section.splitlines() if line.startswith("| `")]
        keys = [key for row in rows for key in re.findall("`([a-z_]+)`", row.split("|")[1])]
        self.assertIn("use_diffusion_mode", keys)
        self.write("".join(f"{key}: 16\n" for key in keys if key != "use_diffusion_mode"))
        done = orthrus("run", "-m", TINY, "--config", self.path, "-p", "a", "-n", "1", "--raw")
        self.assertEqual(done.returncode, 0, done.stderr)
        serving = [key for row in rows if "`serve`" in row for key in re.findall("`([a-z_]+)`", row.split("|")[1])]
        self.assertEqual(done.stderr, f"orthrus: info: {self.path}: without effect here: {', '.join(serving)}\n")

    def test_unknown_keys(self):
        self.write("temprature: 1\n")
        self.refuse(2, r"unknown key temprature \(the nearest is temperature\)", "run", "-m", TINY, "--config", self.path, "x")

    def test_a_list_as_key(self):
        for text in ("[a, b]: 1\n", "chat-template-kwargs: {[a, b]: 1}\n", "chat-template-kwargs: {a: {[b]: 1}}\n"):
            self.write(text)
            self.refuse(2, "a key is not a plain word", "run", "-m", TINY, "--config", self.path, "x")

    def test_what_would_be_ignored(self):
        for text, pattern in (("seed: 1\n---\ntemp: 1\n", "more than one YAML document"), ('{"seed": 1, "seed": 2}', "seed is set twice"),
                              ("top-k: 1\ntop_k: 2\n", "top_k is set twice"), ('adapter: ""\n', "the value is empty"),
                              ('chat-template-kwargs: {"a": 1, "a": 2}', "a is set twice")):
            self.write(text)
            self.refuse(2, pattern, "run", "-m", TINY, "--config", self.path, "x")

    def test_missing_and_broken_files(self):
        self.refuse(1, "/no/such", "run", "-m", TINY, "--config", "/no/such", "x")
        self.write("a: [1\n")
        self.refuse(1, "not YAML or JSON", "run", "-m", TINY, "--config", self.path, "x")


if __name__ == "__main__":
    main()
