"""Pipes, closed streams, signals and a real terminal.

Usage: terminal_test.py PROGRAM SOURCE_ROOT [unittest arguments]."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from program import DEMO, PROGRAM, TINY, ProgramTest, main, orthrus


class PipesAndSignals(ProgramTest):
    # The demo model takes minutes to its context's end.
    ENDLESS = ["run", "-m", DEMO, "-p", "Tom", "--ignore-eos", "-c", "0", "--view", "ar", "-t", "1"]

    def start_generating(self, *arguments):
        process = subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        handler_is_set = 0
        while not handler_is_set:  # loading is over: SIGINT (bit 1) is caught from here on
            time.sleep(0.05)
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            handler_is_set = int(re.search(r"SigCgt:\s*([0-9a-f]+)", status)[1], 16) & 2
        return process

    def test_a_reader_that_goes_away(self):
        command = f"set -o pipefail; '{PROGRAM}' {' '.join(self.ENDLESS)} | head -c 1"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)
        self.assertEqual(len(done.stdout), 1)
        self.assertEqual(done.stderr, "")
        self.assertIn(done.returncode, (0, 128 + signal.SIGPIPE))
        help_text = subprocess.run(["bash", "-c", f"'{PROGRAM}' run --help | head -1"], capture_output=True, text=True)
        self.assertEqual(help_text.stderr, "")

    def test_a_full_disk(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "--version"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "^orthrus: error: cannot write to stdout: No space left on device\n$")

    def test_closed_streams(self):
        done = subprocess.run(["bash", "-c", f"'{PROGRAM}' --version >&-"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        done = subprocess.run(["bash", "-c", f"'{PROGRAM}' run -m '{TINY}' -f - <&-"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("stdin", done.stderr)

    def test_stderr_closed_or_full(self):
        answer = [PROGRAM, "run", "-m", TINY, "--raw", "-p", "a", "-n", "3", "--temp", "0", "-v"]
        warned = [PROGRAM, "run", "-m", TINY, "--config", "serving.yaml", "--raw", "-p", "a", "-n", "3", "--temp", "0"]
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "serving.yaml").write_text("prefill_batch_size: 16\n")
            for code, arguments in [(1, [PROGRAM, "inspect", "/no/such"]), (2, [PROGRAM, "run", "--bogus"]),
                                    (0, answer), (0, warned)]:
                expected = subprocess.run(arguments, capture_output=True, cwd=folder)
                for redirect in ("2>&-", "2>/dev/full"):
                    with self.subTest(arguments=arguments, redirect=redirect):
                        done = subprocess.run(["bash", "-c", f'"$@" {redirect}', "bash", *arguments],
                                              capture_output=True, cwd=folder)
                        self.assertEqual((done.returncode, done.stdout), (code, expected.stdout))
                        self.assertEqual(expected.returncode, code)

    def test_a_chat_whose_stderr_is_closed(self):
        arguments = [PROGRAM, "chat", "-m", TINY, "-v", "-c", "64", "-n", "3"]
        done = subprocess.run(["bash", "-c", '"$@" 2>&-', "bash", *arguments], input=b"a\n" + b"apple " * 300 + b"\nb\n",
                              capture_output=True)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(len(done.stdout.splitlines()), 2)

    def test_ctrl_c_ends_an_answer_with_what_there_is(self):
        process = subprocess.Popen([PROGRAM, *self.ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        first = process.stdout.read(1)  # the answer has begun
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, errors)
        self.assertTrue((first + rest).endswith(b"\n"))
        self.assertEqual(errors, b"")

    def test_ctrl_c_in_json_mode(self):
        process = self.start_generating(*self.ENDLESS, "--json")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(json.loads(out)["finish_reason"], "cancelled")

    def test_an_answer_outlives_the_files_of_its_model(self):
        """What the report says of the model was read when it was loaded."""
        gguf = json.loads(self.succeed("run", "-m", DEMO, "-p", "a", "-n", "1", "--json"))["settings"]["path"]
        with tempfile.TemporaryDirectory() as folder:
            link = pathlib.Path(folder, "model.gguf")
            link.symlink_to(gguf)
            process = self.start_generating("run", "-m", link, *self.ENDLESS[3:], "--json")
            link.unlink()
            process.send_signal(signal.SIGINT)
            out, errors = process.communicate(timeout=60)
        self.assertEqual((process.returncode, errors), (130, b""))
        self.assertEqual(json.loads(out)["settings"]["weights"], "q4_1")

    def test_ctrl_c_while_loading_ends_the_program(self):
        process = subprocess.Popen([PROGRAM, *self.ENDLESS[:-2]], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertIn(process.returncode, (-signal.SIGINT, 130))


@unittest.skipUnless(shutil.which("tmux"), "tmux is not installed")
class ChatInATerminal(ProgramTest):
    def setUp(self):
        self.socket = f"orthrus-test-{os.getpid()}-{self._testMethodName}"
        self.folder = tempfile.TemporaryDirectory()

    def tearDown(self):
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], capture_output=True)
        self.folder.cleanup()

    def start(self, *flags, model=TINY, no_color=None):
        environment = "unset NO_COLOR; " if no_color is None else f"export NO_COLOR={no_color}; "
        command = environment + " ".join([f"'{PROGRAM}'", "chat", "-m", f"'{model}'", *flags]) + "; echo code=$?; sleep 60"
        subprocess.run(["tmux", "-L", self.socket, "-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "200",
                        command], check=True)
        self.wait_for(r"(?m)^> $")

    def screen(self, *flags):
        done = subprocess.run(["tmux", "-L", self.socket, "capture-pane", "-p", *flags], capture_output=True, text=True)
        return done.stdout.rstrip("\n") + ("\n" if done.stdout.rstrip("\n").endswith("\n") else "")

    def wait_for(self, pattern, seconds=60):
        deadline = time.time() + seconds
        while time.time() < deadline:
            screen = "\n".join(line.rstrip() if line.rstrip() != ">" else "> " for line in self.screen().split("\n"))
            if re.search(pattern, screen):
                return screen
            time.sleep(0.1)
        self.fail(f"no {pattern!r} on the screen:\n{self.screen()}")

    def type(self, text):
        subprocess.run(["tmux", "-L", self.socket, "send-keys", "-l", text], check=True)
        self.press("Enter")

    def press(self, key):
        subprocess.run(["tmux", "-L", self.socket, "send-keys", key], check=True)

    def prompts(self, count):
        """Waits for the count-th prompt mark, where nothing was typed yet."""
        return self.wait_for(r"(?s)^" + r"(?:.*?\n> ){" + str(count) + r"}\Z|^(?:.*?\n> )" + "{" + str(count) + r"}$")

    def test_turns_reuse_the_cache(self):
        self.start("-n", "12", "--temp", "0")
        self.type("Tom has 3 apples")
        self.prompts(2)
        self.type("And then?")
        self.prompts(3)
        self.type("/stats")
        screen = self.wait_for(r"prompt (\d+) tokens \((\d+) cached\)")
        cached = int(re.search(r"\((\d+) cached\)", screen)[1])
        self.assertGreater(cached, 10)
        self.type("/reset")
        self.wait_for("a new conversation")
        self.type("Tom has 3 apples")
        self.type("/stats")
        self.wait_for(r"\(0 cached\)")
        self.type("/nonsense")
        self.wait_for("unknown: /nonsense")
        self.type("/help")
        self.wait_for("forget the conversation")
        self.type("/exit")
        self.wait_for("code=0")

    def test_ctrl_c_stops_the_answer_and_not_the_program(self):
        self.start("--ignore-eos", "-c", "0", "--view", "ar", "-t", "1", model=DEMO)
        self.type("Tom has 3 apples")
        self.wait_for(r"> Tom has 3 apples\n\S")
        self.press("C-c")
        self.wait_for(r"\(stopped\)")
        self.type("/stats")
        self.wait_for(r"\d+ tokens, ")
        self.press("C-c")
        self.wait_for("Ctrl-C again leaves")
        self.press("C-c")
        self.wait_for("code=0")

    def test_colours_in_a_terminal(self):
        self.start("--config", self.serving_config())
        self.wait_for("without effect here")
        screen = self.screen("-e")
        self.assertIn("\x1b[1m\x1b[32m>", screen)  # the mark
        self.assertIn("orthrus: \x1b[32minfo\x1b[39m: ", screen)

    def test_no_colours_where_NO_COLOR_is_set(self):
        self.start("--config", self.serving_config(), no_color="1")
        self.wait_for("without effect here")
        self.assertNotIn("\x1b[", self.screen("-e"))

    def serving_config(self):
        """A file that makes the program log a line."""
        path = pathlib.Path(self.folder.name, "serving.yaml")
        path.write_text("prefill_batch_size: 16\n")
        return f"'{path}'"

    def test_ctrl_d_leaves(self):
        self.start()
        self.press("C-d")
        self.wait_for("code=0")

    def test_chat_from_a_pipe(self):
        out = self.succeed("chat", "-m", TINY, "-n", "5", "--temp", "0", stdin="Tom\nhas\n/exit\nnever\n")
        self.assertGreaterEqual(len(out.splitlines()), 2)
        self.assertNotIn("> ", out)

    def test_chat_from_a_pipe_where_no_turn_had_an_answer(self):
        for text, code in (("apple " * 300 + "\n", 1), ("apple " * 300 + "\nTom\n", 0), ("/stats\n", 0), ("", 0)):
            done = orthrus("chat", "-m", TINY, "-c", "64", "-n", "3", "--temp", "0", stdin=text)
            self.assertEqual(done.returncode, code, done.stderr)

    def test_a_context_that_an_answer_fills(self):
        done = orthrus("chat", "-m", TINY, "-c", "64", "--ignore-eos", "--temp", "0", "-v", stdin="Tom\nMore\n")
        self.assertIn("(the context of 64 tokens is full: /reset makes room)\n", done.stderr)
        # The counters of the one answer come once.
        self.assertEqual(done.stderr.count("tokens per cycle"), 1, done.stderr)

    def test_a_message_too_long_for_the_context(self):
        """/reset is named where it helps: not where the message alone is too long."""
        chat = ["chat", "-m", TINY, "-c", "64", "-n", "3", "--temp", "0"]
        alone = orthrus(*chat, stdin="apple " * 300 + "\n").stderr
        self.assertRegex(alone, r"\Aorthrus: error: the prompt has \d+ tokens.*\n\Z")
        self.assertNotIn("/reset", alone)
        later = orthrus(*chat, stdin="Tom\n" + "apple " * 300 + "\n").stderr
        self.assertRegex(later, r"\Aorthrus: error: the prompt has \d+ tokens.* \(/reset forgets the conversation.*\)\n\Z")


if __name__ == "__main__":
    main()
