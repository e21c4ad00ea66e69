"""Runs the commands of README.md: every shell block behind a line `<!-- run -->`, in order, in one
folder that looks like a clone with a finished build: it has the files that git knows and no others.
`<!-- run: X is Y -->` puts Y for X, which cannot be had everywhere.

Usage: readme_test.py PROGRAM SOURCE_ROOT"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^<!-- run(?:: (\S+) is (\S+))? -->\n```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CHAT = "orthrus chat -m smollm2-135m"
BUILT = ("build", ".git", ".venv", ".cache")


def known_files(root):
    """What a clone would have; everything where this is no clone."""
    done = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True)
    if done.returncode == 0 and done.stdout:
        return [name for name in map(os.fsdecode, done.stdout.split(b"\0")) if name and (root / name).exists()]
    print("no git here: the whole folder stands for a clone")
    return [str(path.relative_to(root)) for entry in root.iterdir() if not entry.name.startswith(BUILT)
            for path in [entry, *entry.rglob("*")] if path.is_file()]


def make_clone(root, program, clone):
    for name in known_files(root):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, clone / name)
    (clone / "build").mkdir()
    (clone / "build" / "orthrus").symlink_to(program)


def run(command, clone, typed):
    """Ends the test where the command fails; returns its stdout."""
    print(command, flush=True)
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=clone, timeout=600, input=typed,
                          stdout=subprocess.PIPE, text=True, env={**os.environ, "NO_COLOR": "1"})
    print(done.stdout, flush=True)
    if done.returncode != 0:
        sys.exit(f"README.md: this ended with exit code {done.returncode}:\n{command}")
    return done.stdout


def main():
    program, root = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    readme = (root / "README.md").read_text(encoding="utf-8")
    blocks = BLOCK.findall(readme)
    if len(blocks) < 2 or f"`{CHAT}`" not in readme or not any(name for name, _, _ in blocks):
        sys.exit("README.md: no blocks to run (a line `<!-- run -->` before ```sh), no chat, or no official checkpoint")
    with tempfile.TemporaryDirectory() as folder:
        clone = pathlib.Path(folder)
        make_clone(root, program, clone)
        if not (clone / "models/smollm2-135m/adapter.safetensors").exists():
            sys.exit("a clone has no adapter of the demo model")
        for name, stand_in, block in blocks:
            run(block.replace(f"-m {name}", f"-m {stand_in}") if name else block, clone, "")
        answer = run(f"build/{CHAT}", clone, "Name two colours.\n/exit\n")
        if not answer.strip():
            sys.exit(f"README.md: {CHAT} had no answer to a line from a pipe")
    print(f"{len(blocks)} blocks of README.md and a chat run, 0 failed")


if __name__ == "__main__":
    main()
