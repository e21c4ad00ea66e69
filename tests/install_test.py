"""Installs the build into an empty folder, builds examples/ against it as a user would, and runs
both the example and the installed program. The program finds the adapter that was installed, the
example where ORTHRUS_MODELS_DIR names it.

Usage: install_test.py CMAKE BUILD_DIRECTORY SOURCE_ROOT"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile


def call(*command, env=None):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, env=env)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def check_library_finds_adapter(prefix, example):
    """A program that is not below the prefix finds the installed adapter through ORTHRUS_MODELS_DIR:
    a broken one there is what it complains about."""
    models = prefix / "share/orthrus/models"
    environment = {**os.environ, "ORTHRUS_MODELS_DIR": str(models)}
    text = call(example / "generate", "smollm2-135m", "Two plus two is", 8, env=environment)
    if "identical to plain AR" not in text:
        sys.exit(f"the example printed:\n{text}")
    adapter = models / "smollm2-135m/adapter.safetensors"
    adapter.write_text("broken")
    done = subprocess.run([example / "generate", "smollm2-135m", "Hi"], capture_output=True, text=True, timeout=600,
                          env=environment)
    if done.returncode != 1 or str(adapter) not in done.stderr:
        sys.exit(f"the library does not take {adapter}:\n{done.stdout}{done.stderr}")


def main():
    cmake, build, root = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    tiny = root / "tests/data/tiny/checkpoint"
    with tempfile.TemporaryDirectory() as folder:
        prefix = pathlib.Path(folder) / "prefix"
        example = pathlib.Path(folder) / "example"
        call(cmake, "--install", build, "--prefix", prefix)
        call(cmake, "-S", root / "examples", "-B", example, f"-DCMAKE_PREFIX_PATH={prefix}")
        call(cmake, "--build", example)
        text = call(example / "generate", tiny, "Tom has 3 apples", 32)
        if "identical to plain AR" not in text:
            sys.exit(f"the example printed:\n{text}")
        program = prefix / "bin/orthrus"
        report = json.loads(call(program, "run", "-m", tiny, "--raw", "--temp", 0, "-p", "Tom has 3 apples", "-n", 32,
                               "--json"))
        if not text.startswith(report["text"]):
            sys.exit(f"the example printed:\n{text}the program:\n{report['text']}")
        adapter = prefix / "share/orthrus/models/smollm2-135m/adapter.safetensors"
        shown = json.loads(call(program, "adapter", "-m", "smollm2-135m", "--json"))
        if not pathlib.Path(shown["path"]).is_relative_to(prefix) or not adapter.exists():
            sys.exit(f"the installed program takes its adapter from {shown['path']}")
        check_library_finds_adapter(prefix, example)
    print("installed, example built and run: identical to plain AR")


if __name__ == "__main__":
    main()
