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
