"""Checks that includes go one way: a folder of src/ includes itself and the folders that its
orthrus_module() line in CMakeLists.txt lists, with theirs; public headers include the standard
library and each other; only engine and what stands on it sees the public model API. Nothing of src/
or include/ sees the trainer or libtorch; a folder of trainer/ sees all of src/ and what TRAINER lists.

Usage: include_directions.py SOURCE_ROOT. Exit code 1 where an include goes the wrong way."""

import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
MODULE = re.compile(r"^orthrus_module\((\w+)([^)]*)\)", re.MULTILINE)
LOW_PUBLIC_HEADERS = {"orthrus/error.h", "orthrus/options.h"}
SOURCES = (".h", ".cc", ".inc")
TRAINER_ONLY = {"trainer", "ATen", "c10", "torch"}

# The folders of trainer/ that each of them may include beside itself.
TRAINER = {
    "model": set(),
    "data": {"model"},
    "fit": {"data", "model"},
    "export": {"fit", "model"},
    "plot": set(),
    "cli": {"model", "data", "fit", "export", "plot"},
}


def read_ladder(root):
    """{folder: all folders it may include}, from the order and DEPS of the modules."""
    ladder = {}
    for name, rest in MODULE.findall((root / "CMakeLists.txt").read_text()):
        allowed = {name}
        words = rest.split()
        if "DEPS" in words:
            for parent in words[words.index("DEPS") + 1:]:
                if parent == "LIBS":
                    break
                if parent not in ladder:
                    sys.exit(f"CMakeLists.txt: {name} lists {parent}, which does not stand before it")
                allowed |= ladder[parent]
        ladder[name] = allowed
    return ladder


def wrong_include(folder, header, quoted, ladder):
    """Why `folder` may not include `header`, or None."""
    top = header.split("/")[0]
    if top in TRAINER_ONLY:
        return "the engine needs nothing of the trainer"
    if top == "orthrus":
        if header not in LOW_PUBLIC_HEADERS and "engine" not in ladder[folder]:
            return "the public model API stands above it"
        return None
    if top in ladder:
        return None if top in ladder[folder] else f"{folder} does not stand on {top}"
    if quoted:
        return "quoted includes name their folder"
    return None


def wrong_trainer_include(folder, header, quoted, ladder):
    """Why `folder` of trainer/ may not include `header`, or None."""
    top, *rest = header.split("/")
    if top == "trainer":
        return None if rest[0] in TRAINER[folder] | {folder} else f"{folder} does not stand on {rest[0]}"
    if quoted and top not in ladder and top != "orthrus":
        return "quoted includes name their folder"
    return None


def check_trainer(root, ladder):
    checked, errors = 0, []
    for path in sorted((root / "trainer").rglob("*")):
        folder = path.relative_to(root / "trainer").parts[0]
        if path.suffix not in SOURCES or folder == "tests":
            continue
        if folder not in TRAINER:
            errors.append(f"{path.relative_to(root)}: {folder} is no folder of the trainer")
            continue
        for mark, header in INCLUDE.findall(path.read_text()):
            checked += 1
            reason = wrong_trainer_include(folder, header, mark == '"', ladder)
            if reason:
                errors.append(f"{path.relative_to(root)}: includes {header}: {reason}")
    return checked, errors


def check(root):
    ladder = read_ladder(root)
    checked, errors = check_trainer(root, ladder)
    for path in sorted((root / "src").rglob("*")):
        folder = path.relative_to(root / "src").parts[0]
        if path.suffix not in SOURCES or path.parent == root / "src":
            continue
        if folder not in ladder:
            errors.append(f"{path.relative_to(root)}: {folder} is no module of CMakeLists.txt")
            continue
        for mark, header in INCLUDE.findall(path.read_text()):
            checked += 1
            reason = wrong_include(folder, header, mark == '"', ladder)
            if reason:
                errors.append(f"{path.relative_to(root)}: includes {header}: {reason}")
    for path in sorted((root / "include").rglob("*.h")):
        for mark, header in INCLUDE.findall(path.read_text()):
            checked += 1
            if "/" in header and not header.startswith("orthrus/") or mark == '"' and "/" not in header:
                errors.append(f"{path.relative_to(root)}: includes {header}: not in the public API")
    return checked, errors


def main():
    checked, errors = check(pathlib.Path(sys.argv[1]))
    print("\n".join(errors))
    print(f"{checked} includes checked, {len(errors)} go the wrong way")
    sys.exit(1 if errors or checked == 0 else 0)


if __name__ == "__main__":
    main()
