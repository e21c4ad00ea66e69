"""The rest of deploy/: what can be checked of the systemd unit and of the Dockerfile without either.

Usage: deploy_test.py BINARY SOURCE_ROOT [unittest arguments]."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BINARY = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(sys.argv[2]).resolve()
DEPLOY = ROOT / "deploy"


def call(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=ROOT)
    return done.returncode, done.stdout + done.stderr


class Unit(unittest.TestCase):
    @unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze")
    def test_systemd_takes_the_unit_and_calls_it_safe(self):
        text = (DEPLOY / "orthrus.service").read_text()
        self.assertEqual(text.count("/usr/local/bin/orthrus"), 1)
        with tempfile.TemporaryDirectory() as folder:
            unit = pathlib.Path(folder) / "orthrus.service"
            unit.write_text(text.replace("/usr/local/bin/orthrus", str(BINARY)))
            self.assertEqual(call("systemd-analyze", "verify", unit), (0, ""))
            # Exposure from 0 to 100; under 20 is what systemd calls OK.
            code, said = call("systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=20", unit)
            self.assertEqual(code, 0, said)


class Ends(unittest.TestCase):
    def number(self, pattern, file):
        found = re.findall(pattern, (DEPLOY / file).read_text(), re.M)
        self.assertEqual(len(found), 1, (pattern, file, found))
        return int(found[0])

    def test_nothing_is_killed_before_it_has_drained(self):
        drain = self.number(r"^drain-timeout: (\d+)$", "serve.yaml")
        self.assertEqual(self.number(r"--drain-timeout (\d+)", "README.md"), drain)
        self.assertEqual(self.number(r"running answers have (\d+) seconds", "README.md"), drain)
        # Ten seconds for what comes after: joining threads, giving memory back.
        self.assertGreaterEqual(self.number(r"^TimeoutStopSec=(\d+)$", "orthrus.service"), drain + 10)
        self.assertGreaterEqual(self.number(r"docker stop -t (\d+)", "README.md"), drain + 10)


class Prometheus(unittest.TestCase):
    @unittest.skipUnless(shutil.which("promtool"), "no promtool")
    def test_the_block_for_keys_is_right_once_it_is_no_comment(self):
        text = (DEPLOY / "prometheus.yml").read_text()
        with tempfile.TemporaryDirectory() as folder:
            key = pathlib.Path(folder) / "key"
            key.write_text("secret")
            text, lines = re.subn(r"^( +)# (authorization:|  credentials_file: )", r"\1\2", text, flags=re.M)
            self.assertEqual(lines, 2)
            config = pathlib.Path(folder) / "prometheus.yml"
            config.write_text(text.replace("/etc/prometheus/orthrus.key", str(key)))
            code, said = call("promtool", "check", "config", config)
            self.assertEqual(code, 0, said)
            key.unlink()  # it is part of the configuration
            self.assertNotEqual(call("promtool", "check", "config", config)[0], 0)


class Container(unittest.TestCase):
    def test_the_dockerfile_copies_what_there_is(self):
        text = (DEPLOY / "Dockerfile").read_text()
        named = re.findall(r"(?:scripts|deploy)/[\w.-]+\w", text)
        self.assertIn("scripts/setup.sh", named)
        for path in named:
            self.assertTrue((ROOT / path).exists(), path)

    def test_the_program_is_built_without_what_only_tests_need(self):
        packages = (ROOT / "scripts/apt-packages.txt").read_text().partition("\n# Tests")
        self.assertIn("prometheus-cpp-dev", packages[0])
        self.assertIn("libtorch-dev", packages[2])

    @unittest.skipUnless(shutil.which("dpkg-query"), "no Debian system")
    def test_the_packages_of_shared_libraries_are_found(self):
        code, said = call(DEPLOY / "runtime-packages.sh", BINARY)
        self.assertEqual(code, 0, said)
        packages = said.split()
        self.assertIn("libc6", packages)
        for package in packages:
            self.assertEqual(call("dpkg-query", "-W", "-f", "${db:Status-Status}", package), (0, "installed"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
