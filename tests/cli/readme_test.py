"""Runs every command of the README: the ```sh blocks behind a line `<!-- run -->`, in order, in one
folder that looks like a clone with a finished build.

Usage: readme_test.py PROGRAM SOURCE_ROOT"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^<!-- run -->\n```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def make_clone(root, program, clone):
    for entry in root.iterdir():
        if entry.name.startswith((".", "build")):
            continue
        (clone / entry.name).symlink_to(entry)
    (clone / "build").mkdir()
    (clone / "build" / "orthrus").symlink_to(program)


def main():
    program, root = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    blocks = BLOCK.findall((root / "README.md").read_text(encoding="utf-8"))
    if not blocks:
        sys.exit("README.md: no block to run (a line `<!-- run -->` before ```sh)")
    with tempfile.TemporaryDirectory() as folder:
        clone = pathlib.Path(folder)
        make_clone(root, program, clone)
        for block in blocks:
            print(block, flush=True)
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", block], cwd=clone, timeout=600,
                                  stdin=subprocess.DEVNULL, env={**os.environ, "NO_COLOR": "1"})
            if done.returncode != 0:
                sys.exit(f"README.md: this block ended with exit code {done.returncode}:\n{block}")
    print(f"{len(blocks)} blocks of README.md run, 0 failed")


if __name__ == "__main__":
    main()
