"""What the tests of the program share: running it, and what every success and every refusal has in
common. Arguments of a test file: PROGRAM SOURCE_ROOT [unittest arguments]. Uses the tiny checkpoint in
tests/data; the demo model must have been pulled (`make test` does)."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

PROGRAM = os.path.abspath(sys.argv[1])
ROOT = pathlib.Path(sys.argv[2]).resolve()
TINY = str(ROOT / "tests/data/tiny/checkpoint")
DEMO = "smollm2-135m"


def orthrus(*arguments, stdin="", env=None, timeout=120):
    return subprocess.run([PROGRAM, *arguments], input=stdin, capture_output=True, text=True, timeout=timeout,
                          env={**os.environ, **(env or {})})


class ProgramTest(unittest.TestCase):
    def succeed(self, *arguments, **keywords):
        done = orthrus(*arguments, **keywords)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def refuse(self, code, pattern, *arguments, **keywords):
        """One line on stderr, nothing on stdout, that exit code."""
        done = orthrus(*arguments, **keywords)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertTrue(lines[0].startswith("orthrus: error: "), lines[0])
        self.assertRegex(lines[0], pattern)

    def answer(self, *arguments, temperature="0", **keywords):
        flags = ["run", "-m", TINY, "--json", "--raw", "--temp", temperature]
        return json.loads(self.succeed(*flags, *arguments, **keywords))


def plain_base(folder):
    """The tiny checkpoint as a plain model: its config no longer says Orthrus."""
    base = folder / "base"
    shutil.copytree(TINY, base)
    config = json.loads((base / "config.json").read_text())
    for key in ("block_size", "mask_token_id"):
        config.pop(key, None)
    config["architectures"] = ["Qwen3ForCausalLM"]
    config["model_type"] = "qwen3"
    (base / "config.json").write_text(json.dumps(config))
    return str(base)


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
