"""`orthrus pull OWNER/NAME` against a server that behaves like the hub, and -m OWNER/NAME.

Usage: hub_test.py PROGRAM SOURCE_ROOT [unittest arguments]."""

import os
import pathlib
import signal
import subprocess
import tempfile
import time

from fake_hub import FakeHub, Repository
from program import PROGRAM, ROOT, TINY, ProgramTest, main, orthrus

NAME = "tiny-org/Tiny-Orthrus"
FOLDER = "models--tiny-org--Tiny-Orthrus"
WEIGHTS = "model.safetensors"
RUN = ["--raw", "--temp", "0", "-n", "24", "-p", "Once upon a time"]


def tiny_repository(**traits):
    files = {path.name: path.read_bytes() for path in sorted(pathlib.Path(TINY).iterdir())}
    files |= {"README.md": b"# Tiny", ".gitattributes": b"* lfs", "pytorch_model.bin": b"\0" * 3000,
              "onnx/model.onnx": b"\1" * 2000}
    return Repository(files, large=[WEIGHTS, "pytorch_model.bin", "onnx/model.onnx"], **traits)


class HubTest(ProgramTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)
        self.cache = self.home / "hub"
        self.hub = FakeHub()
        self.addCleanup(self.hub.stop)
        self.repository = self.hub.repositories[NAME] = tiny_repository()
        self.env = {"HF_HOME": str(self.home), "HF_ENDPOINT": self.hub.endpoint + "/", "HF_TOKEN": "",
                    "HF_HUB_CACHE": "", "HUGGINGFACE_HUB_CACHE": "", "HF_TOKEN_PATH": "", "HF_HUB_OFFLINE": "",
                    "HF_HUB_DOWNLOAD_TIMEOUT": "", "SSL_CERT_FILE": "", "CURL_CA_BUNDLE": "", "HF_HUB_DISABLE_IMPLICIT_TOKEN": "",
                    "no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}

    def pull(self, *arguments, code=0, **env):
        done = orthrus("pull", *arguments, env={**self.env, **env})
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def fail_to_pull(self, pattern, *arguments, code=1, **env):
        self.refuse(code, pattern, "pull", *arguments, env={**self.env, **env})

    def blob(self, path=WEIGHTS):
        return self.cache / FOLDER / "blobs" / self.repository.content_name(path)

    def incomplete(self, path=WEIGHTS):
        return pathlib.Path(f"{self.blob(path)}.incomplete")

    def ranges(self, path=WEIGHTS):
        return [headers.get("Range") for _, _, _, headers in self.hub.asked("storage", path)]

    def text(self, model):
        done = orthrus("run", "-m", model, *RUN, env=self.env)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


class Pulling(HubTest):
    def test_a_model_comes_into_the_cache_and_runs(self):
        done = self.pull(NAME, HF_TOKEN="hf_secret")
        snapshot = self.cache / FOLDER / "snapshots" / ("a" * 40)
        self.assertEqual(done.stdout, f"{NAME}: {snapshot}\n")
        self.assertRegex(done.stderr, r"6 files, .*; left out: 4 files, 5011 B \(--include takes others\)\n\Z")
        for path in pathlib.Path(TINY).iterdir():
            link = snapshot / path.name
            self.assertEqual(os.readlink(link), f"../../blobs/{self.repository.content_name(path.name)}")
            self.assertEqual(link.read_bytes(), path.read_bytes())
        self.assertEqual(len(list(snapshot.iterdir())), 6)
        self.assertEqual((self.cache / FOLDER / "refs/main").read_text(), "a" * 40)
        self.assertEqual(list(self.cache.rglob("*.incomplete")), [])
        self.assertEqual(self.text(NAME), self.text(TINY))
        done = orthrus("run", "-hf", NAME, *RUN, env=self.env)
        self.assertEqual(done.stdout, self.text(TINY))

    def test_the_token_goes_to_the_hub_alone(self):
        self.repository.private = True
        self.pull(NAME, HF_TOKEN="hf_secret")
        self.assertTrue(self.hub.asked("storage", WEIGHTS))
        for server, _, path, headers in self.hub.requests:
            expected = "Bearer hf_secret" if server == "hub" else None
            self.assertEqual(headers.get("Authorization"), expected, path)

    def test_the_token_of_a_login_counts(self):
        self.repository.private = True
        (self.home / "token").write_text("hf_secret\n")
        self.fail_to_pull("set HF_TOKEN", NAME, HF_HUB_DISABLE_IMPLICIT_TOKEN="1")
        self.fail_to_pull("is refused", NAME, HF_TOKEN="hf_other")
        self.pull(NAME, "--dry-run")
        (self.home / "token").rename(self.home / "elsewhere")
        self.pull(NAME, "--dry-run", HF_TOKEN_PATH=str(self.home / "elsewhere"))
        self.fail_to_pull("HF_TOKEN: expected a token of one line", NAME, code=2, HF_TOKEN="a\r\nX-Evil: 1")

    def test_what_is_there_is_not_fetched_again(self):
        self.pull(NAME)
        files = len(self.hub.asked("hub", "/resolve/"))
        self.assertRegex(self.pull(NAME).stdout, r"\(already there\)\n\Z")
        self.assertEqual(len(self.hub.asked("hub", "/resolve/")), files)
        # A new commit with one other file: that one alone is fetched, the old snapshot stays.
        self.repository.commit = "b" * 40
        self.repository.files["generation_config.json"] = b'{"temperature": 0.5}'
        self.pull(NAME)
        self.assertEqual(len(self.hub.asked("hub", "/resolve/")), files + 1)
        self.assertEqual((self.cache / FOLDER / "refs/main").read_text(), "b" * 40)
        self.assertEqual(len(list((self.cache / FOLDER / "snapshots").iterdir())), 2)

    def test_a_mirror_that_lists_names_only(self):
        self.repository.bare_listing = True
        self.pull(NAME)
        self.assertTrue(self.blob().exists())
        self.assertTrue(self.blob("config.json").exists())
        self.assertEqual([method for _, method, _, _ in self.hub.asked("storage", "")], ["GET"])

    def test_a_repository_of_another_name_by_now(self):
        self.hub.repositories["old/name"] = NAME
        self.pull("old/name", HF_TOKEN="hf_secret")
        self.assertEqual(self.text("old/name"), self.text(TINY))

    def test_a_dry_run_lists_and_fetches_nothing(self):
        out = self.pull(NAME, "--dry-run").stdout
        self.assertRegex(out, r"(?m)^ +5\.1 MB  model\.safetensors$")
        self.assertRegex(out, r"(?m)^6 files, 5\.2 MB, 5\.2 MB to fetch\nleft out: 4 files, 5011 B ")
        self.assertFalse(self.cache.exists())
        self.pull(NAME)
        self.assertRegex(self.pull(NAME, "--dry-run").stdout, r"model\.safetensors  \(already there\)\n(?s:.*), 0 B to fetch")

    def test_patterns_choose(self):
        self.pull(NAME, "--include", "*.json", "--include", "onnx/", "--exclude", "tok*")
        snapshot = self.cache / FOLDER / "snapshots" / ("a" * 40)
        found = sorted(str(path.relative_to(snapshot)) for path in snapshot.rglob("*") if path.is_file())
        self.assertEqual(found, ["config.json", "generation_config.json", "onnx/model.onnx"])
        self.assertEqual(os.readlink(snapshot / "onnx/model.onnx"),
                         f"../../../blobs/{self.repository.content_name('onnx/model.onnx')}")
        self.fail_to_pull("none of its 10 files fits --include", NAME, "--include", "*.gguf")

    def test_another_revision_has_its_own_name(self):
        done = self.pull(NAME, "--revision", "v2")
        self.assertEqual((self.cache / FOLDER / "refs/v2").read_text(), "a" * 40)
        self.assertEqual(self.text(done.stdout.split(": ")[1].strip()), self.text(TINY))
        self.refuse(1, f"orthrus pull {NAME}", "run", "-m", NAME, "x", env=self.env)
        self.pull(NAME, "--revision", "a" * 40)
        self.assertEqual(sorted(path.name for path in (self.cache / FOLDER / "refs").iterdir()), ["v2"])
        for revision in ("../main", "/etc", "a//b", "a b"):
            self.fail_to_pull("expected a branch, tag or commit", NAME, "--revision", revision, code=2)


class Transfers(HubTest):
    def test_a_cut_connection_goes_on_where_it_was(self):
        self.hub.faults[WEIGHTS] = [("status", 503, {}), ("cut", 2_000_000)]
        done = self.pull(NAME)
        self.assertEqual(self.ranges(), [None, None, "bytes=2000000-"])
        # A try that got far is not counted.
        self.assertEqual(done.stderr.count("trying again in 0.5 s (1 of 5)\n"), 2, done.stderr)
        self.assertEqual(self.text(NAME), self.text(TINY))

    def test_a_pull_goes_on_with_what_another_left(self):
        self.hub.faults[WEIGHTS] = [("cut", 3_000_000)]
        done = self.pull(NAME, "--retries", "0", code=1)
        self.assertRegex(done.stderr, r"orthrus: error: tiny-org/Tiny-Orthrus: model\.safetensors: .*\n\Z")
        self.assertEqual(self.incomplete().stat().st_size, 3_000_000)
        self.assertFalse((self.cache / FOLDER / "snapshots").exists())
        self.refuse(1, f"orthrus pull {NAME}", "run", "-m", NAME, "x", env=self.env)
        self.pull(NAME)
        self.assertEqual(self.ranges(), [None, "bytes=3000000-"])
        self.assertEqual(self.text(NAME), self.text(TINY))

    def test_a_server_that_sends_all_in_place_of_the_rest(self):
        self.hub.faults[WEIGHTS] = [("cut", 1_000), ("whole",)]
        self.pull(NAME)
        self.assertEqual(self.blob().read_bytes(), self.repository.files[WEIGHTS])

    def test_a_server_that_never_gets_to_the_end(self):
        # It begins anew each time: what comes is not more than before, so that tries are used up.
        self.hub.faults[WEIGHTS] = [("cut from the start", size) for size in (3_000_000, 1_000_000, 3_000_000)] * 3
        done = self.pull(NAME, "--retries", "2", code=1)
        self.assertRegex(done.stderr.splitlines()[-1], "also after 2 more tries")
        self.assertEqual(len(self.ranges()), 3)

    def test_a_signature_that_has_expired(self):
        self.hub.faults[WEIGHTS] = [("status", 403, {})]
        self.assertIn("the storage host answers with status 403: trying again", self.pull(NAME).stderr)

    def test_leftovers_that_are_wrong(self):
        self.blob().parent.mkdir(parents=True)
        self.incomplete().write_bytes(b"x" * 1000)
        self.fail_to_pull_once_started("its SHA-256 is [0-9a-f]{64}, expected [0-9a-f]{64}: what was fetched is removed")
        self.assertFalse(self.incomplete().exists())
        self.incomplete().write_bytes(b"x" * 6_000_000)  # longer than the file
        self.pull(NAME)
        self.assertEqual(self.blob().read_bytes(), self.repository.files[WEIGHTS])

    def fail_to_pull_once_started(self, pattern):
        done = self.pull(NAME, code=1)
        self.assertRegex(done.stderr.splitlines()[-1], pattern)

    def test_another_content_than_the_hub_names(self):
        for path, kind in (("config.json", "Git SHA-1"), (WEIGHTS, "SHA-256")):
            self.hub.faults[path] = [("corrupt",)]
            self.fail_to_pull_once_started(f"{path}: its {kind} is .*, expected {self.repository.content_name(path)}")
            self.assertFalse(self.blob(path).exists() or self.incomplete(path).exists())
        self.pull(NAME)

    def test_a_busy_hub(self):
        self.hub.faults["listing"] = [("status", 429, {"Retry-After": "1"}), ("status", 502, {})]
        started = time.monotonic()
        done = self.pull(NAME, "--dry-run")
        self.assertGreater(time.monotonic() - started, 1.9)
        self.assertRegex(done.stderr, r"status 429: trying again in 1\.0 s \(1 of 5\)\n.*status 502: trying again in 1\.0 s")
        self.hub.faults["listing"] = [("status", 429, {"Retry-After": "4000"})]
        self.fail_to_pull("asks to wait for 4000 seconds", NAME)
        self.hub.faults["listing"] = [("status", 500, {})]
        self.fail_to_pull("the hub answers with status 500", NAME, "--retries", "0")

    def test_a_stalled_connection_is_given_up(self):
        self.hub.faults[WEIGHTS] = [("stall", 1_000_000)]
        done = self.pull(NAME, HF_HUB_DOWNLOAD_TIMEOUT="1")
        self.assertIn("not a byte in 1 s: trying again", done.stderr)
        self.assertEqual(self.ranges(), [None, "bytes=1000000-"])

    def test_an_interrupt_leaves_what_is_there(self):
        self.hub.faults[WEIGHTS] = [("stall", 1_500_000)]
        process = subprocess.Popen([PROGRAM, "pull", NAME], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, **self.env})
        while not (self.incomplete().exists() and self.incomplete().stat().st_size == 1_500_000):
            self.assertIsNone(process.poll())
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        self.assertEqual((process.returncode, out), (130, ""), err)
        self.assertRegex(err, r"interrupted: the next pull goes on from here\n\Z")
        self.pull(NAME)
        self.assertEqual(self.ranges(), [None, "bytes=1500000-"])

    def test_two_pulls_at_once_fetch_a_file_once(self):
        self.hub.faults[WEIGHTS] = [("slow", 1)]
        processes = [subprocess.Popen([PROGRAM, "pull", NAME], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      text=True, env={**os.environ, **self.env}) for _ in range(2)]
        ends = [process.communicate(timeout=60) for process in processes]
        self.assertEqual([process.returncode for process in processes], [0, 0], ends)
        self.assertEqual(len(self.ranges()), 1)
        self.assertIn("another process fetches it: waiting", ends[0][1] + ends[1][1])


class Refusals(HubTest):
    def test_what_the_hub_refuses(self):
        self.fail_to_pull("org/none: no such public model on http.*; for a private one set HF_TOKEN", "org/none")
        self.fail_to_pull("org/none: not found on http", "org/none", HF_TOKEN="hf_secret")
        self.fail_to_pull("no revision v9 on the hub", NAME, "--revision", "v9")
        self.repository.gated = True
        done = self.pull(NAME, code=1)
        self.assertRegex(done.stderr.splitlines()[-1],
                         rf"access is restricted: accept the terms at {self.hub.endpoint}/{NAME} and set HF_TOKEN\Z")
        self.pull(NAME, HF_TOKEN="hf_secret")

    def test_without_a_network(self):
        self.fail_to_pull("HF_HUB_OFFLINE is set", NAME, HF_HUB_OFFLINE="1")
        self.assertEqual(self.hub.requests, [])
        self.fail_to_pull("Could not resolve host", NAME, HF_ENDPOINT="http://hub.invalid")
        self.fail_to_pull("connect", NAME, HF_ENDPOINT="http://127.0.0.1:1")
        for endpoint in ("ftp://127.0.0.1", "huggingface", "http://"):
            self.fail_to_pull("HF_ENDPOINT: expected https://HOST", NAME, code=2, HF_ENDPOINT=endpoint)

    def test_names_of_files_that_lead_elsewhere(self):
        for name in ("../evil", "a/../../evil", "/etc/passwd", "", ".", "a//b", "a\nb", "a\\b", 5):
            self.repository.extra_siblings = [{"rfilename": name, "size": 1, "blobId": "0" * 40}]
            self.fail_to_pull("expected a path below the repository", NAME)
        self.repository.extra_siblings = [{"rfilename": "config.json", "size": 1, "blobId": "0" * 40}]
        self.fail_to_pull("two files named", NAME)
        self.assertFalse(self.cache.exists())

    def test_redirects_that_lead_elsewhere(self):
        secret = self.home / "secret"
        secret.write_text("x")
        for address in (f"file://{secret}", "ftp://127.0.0.1/x", "gopher://127.0.0.1/x", "http://"):
            self.hub.faults[WEIGHTS] = [("redirect", address)]
            done = self.pull(NAME, code=1)
            self.assertRegex(done.stderr.splitlines()[-1], r"redirected to .*, expected an http or https address\Z")
        self.hub.faults[WEIGHTS] = [("redirect", f"/{NAME}/resolve/main/{WEIGHTS}")] * 20
        done = self.pull(NAME, code=1)
        self.assertRegex(done.stderr.splitlines()[-1], r"more than 10 redirects\Z")

    def test_a_disk_that_is_too_small(self):
        self.repository.sizes = {WEIGHTS: 10**17}
        done = self.pull(NAME, code=1)
        self.assertRegex(done.stderr.splitlines()[-1], r"100000\d+\.\d MB to fetch, and only .* MB are free in /")
        self.assertFalse(self.cache.exists())

    def test_a_server_that_sends_more_than_it_lists(self):
        self.repository.sizes = {WEIGHTS: 1_000_000}
        done = self.pull(NAME, code=1)
        self.assertRegex(done.stderr.splitlines()[-1], "sends more than the 1000000 bytes")

    def test_repositories_that_orthrus_cannot_read(self):
        del self.repository.files[WEIGHTS]
        self.fail_to_pull("nothing that orthrus reads", NAME)
        self.hub.repositories[NAME] = tiny_repository()
        del self.hub.repositories[NAME].files["tokenizer.json"]
        self.fail_to_pull("no tokenizer.json", NAME)

    def test_names_of_models_that_are_none(self):
        for name in ("../x", "a/b/c", "a--b/c", "a/b:", "a/.b", "http://x/y"):
            self.fail_to_pull("Expected OWNER/NAME", name, code=2)
        self.refuse(1, r"a/b: no such file or directory, and not .or only in part. pulled from the hub: `orthrus pull a/b` fetches it",
                    "inspect", "-m", "a/b", env=self.env)
        self.refuse(1, r"`orthrus pull a/b:Q8_0`", "run", "-m", "a/b:Q8_0", "x", env=self.env)
        self.refuse(1, r"`orthrus pull a/adapter`", "run", "-m", TINY, "--adapter", "a/adapter", "x", env=self.env)
        self.assertEqual(self.hub.requests, [])


class Certificates(HubTest):
    def test_they_are_verified(self):
        certificate = str(ROOT / "tests/data/hub/self_signed.pem")
        hub = FakeHub(certificate=certificate)
        self.addCleanup(hub.stop)
        hub.repositories[NAME] = self.repository
        known = {"HF_ENDPOINT": hub.endpoint, "SSL_CERT_FILE": certificate}
        self.fail_to_pull("certificate", NAME, HF_ENDPOINT=hub.endpoint)
        self.pull(NAME, "--include", "*.json", **known)
        # The host's name counts too, and what began under TLS does not leave it.
        self.fail_to_pull("(?i)subject name|no alternative", NAME, **known | {
            "HF_ENDPOINT": hub.endpoint.replace("127.0.0.1", "localhost"), "no_proxy": "localhost"})
        done = self.pull(NAME, code=1, **known)
        self.assertRegex(done.stderr.splitlines()[-1], r"redirected to http:.*, expected an https address\Z")


class GgufRepositories(HubTest):
    def setUp(self):
        super().setUp()
        names = ["M-Q2_K.gguf", "M-Q4_K_M.gguf", "big/M-F16-00001-of-00002.gguf", "big/M-F16-00002-of-00002.gguf",
                 "mmproj-M-Q8_0.gguf"]
        self.hub.repositories["o/m"] = Repository({name: b"GGUF" + name.encode() for name in names}, large=names)
        self.snapshot = self.cache / "models--o--m/snapshots" / ("a" * 40)

    def found(self):
        return sorted(str(path.relative_to(self.snapshot)) for path in self.snapshot.rglob("*.gguf"))

    def test_a_type_names_the_file(self):
        done = self.pull("o/m:q2_k")
        self.assertEqual(done.stdout, f"o/m:q2_k: {self.snapshot}/M-Q2_K.gguf\n")
        self.assertEqual(self.found(), ["M-Q2_K.gguf"])
        # It is junk, and what refuses it names the file that was opened.
        for name in ("o/m", "o/m:Q2_K"):
            self.refuse(1, "M-Q2_K.gguf", "inspect", "-m", name, env=self.env)
        self.refuse(1, "`orthrus pull o/m:F16`", "inspect", "-m", "o/m:F16", env=self.env)
        self.pull("o/m:F16")
        self.assertEqual(self.found(), ["M-Q2_K.gguf", "big/M-F16-00001-of-00002.gguf", "big/M-F16-00002-of-00002.gguf"])
        self.refuse(2, "o/m has several GGUF models, name one: o/m:Q2_K, o/m:F16", "inspect", "-m", "o/m", env=self.env)
        self.fail_to_pull("no GGUF model of type Q9; it has: Q2_K, Q4_K_M, F16", "o/m:Q9")

    def test_without_a_type(self):
        done = self.pull("o/m")
        self.assertIn("o/m: Q4_K_M of Q2_K, Q4_K_M, F16 (o/m:TYPE takes another)\n", done.stderr)
        self.assertEqual(self.found(), ["M-Q4_K_M.gguf"])


class WithPython(HubTest):
    """huggingface_hub (a dependency of the tokenizers package in .venv/) shares the cache."""

    def python(self, code):
        env = {name: value for name, value in {**os.environ, **self.env}.items() if value}
        done = subprocess.run([str(ROOT / ".venv/bin/python"), "-c", code], capture_output=True, text=True, timeout=120,
                              env={**env, "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1"})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def test_python_finds_what_was_pulled(self):
        self.pull(NAME)
        code = ("import huggingface_hub as hub\n"
                f"print(hub.snapshot_download('{NAME}', local_files_only=True))\n"
                f"print(hub.hf_hub_download('{NAME}', '{WEIGHTS}'))\n"  # asks the hub, fetches nothing
                "info = hub.scan_cache_dir()\n"
                "print(len(info.repos), info.warnings)")
        snapshot = f"{self.cache}/{FOLDER}/snapshots/{'a' * 40}"
        self.assertEqual(self.python(code).splitlines(), [snapshot, f"{snapshot}/{WEIGHTS}", "1 []"])
        self.assertEqual(len([1 for _, method, _, _ in self.hub.asked("storage", WEIGHTS) if method == "GET"]), 1)

    def test_what_python_fetched_is_found(self):
        self.python("import huggingface_hub as hub\n"
                    f"hub.snapshot_download('{NAME}', allow_patterns=['*.json', '*.jinja', '*.safetensors'])")
        self.assertEqual(self.text(NAME), self.text(TINY))
        self.assertRegex(self.pull(NAME).stdout, r"\(already there\)\n\Z")


if __name__ == "__main__":
    main()
