"""Installs the build into an empty folder, builds examples/ against it as a user would, and runs
both the example and the installed program. Both find the adapter that was installed.

Usage: install_test.py CMAKE BUILD_DIRECTORY SOURCE_ROOT"""

import json
import pathlib
import shlex
import subprocess
import sys
import tempfile


def call(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def registry_of_prefix(program, build, prefix, folder):
    """model_registry.cc compiled as in a build for this prefix. All else of the library does not
    know the prefix, so this object in front of it makes the library of such a build."""
    configured = json.loads(call(program, "version", "--json"))["model_folders"][1]
    entries = json.loads((pathlib.Path(build) / "compile_commands.json").read_text())
    entry = next(e for e in entries if e["file"].endswith("src/engine/model_registry.cc"))
    if configured not in entry["command"]:
        sys.exit(f"{configured} is not what the library was built for:\n{entry['command']}")
    command = shlex.split(entry["command"].replace(configured, str(prefix / "share/orthrus/models")))
    command[command.index("-o") + 1] = str(folder / "model_registry.o")
    done = subprocess.run(command, cwd=entry["directory"], capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return folder / "model_registry.o"


def check_library_finds_adapter(cmake, build, prefix, folder, example):
    """A broken adapter in the installed place is what the example complains about."""
    registry = registry_of_prefix(prefix / "bin/orthrus", build, prefix, folder)
    call(cmake, example, f"-DCMAKE_EXE_LINKER_FLAGS={registry}")
    call(cmake, "--build", example)
    text = call(example / "generate", "smollm2-135m", "Two plus two is", 8)
    if "identical to plain AR" not in text:
        sys.exit(f"the example printed:\n{text}")
    adapter = prefix / "share/orthrus/models/smollm2-135m/adapter.safetensors"
    adapter.write_text("broken")
    done = subprocess.run([example / "generate", "smollm2-135m", "Hi"], capture_output=True, text=True, timeout=600)
    if done.returncode != 1 or str(adapter) not in done.stderr:
        sys.exit(f"the installed library does not take {adapter}:\n{done.stdout}{done.stderr}")


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
        check_library_finds_adapter(cmake, build, prefix, pathlib.Path(folder), example)
    print("installed, example built and run: identical to plain AR")


if __name__ == "__main__":
    main()
