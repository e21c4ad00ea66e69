#!/usr/bin/env python3
"""Compares the instructions of the hot loops with those kept in instruction_counts.json.

    instruction_counts.py COUNTED_KERNELS COMPILER BUILD_TYPE [--update]

callgrind counts, so that the machine's speed and load play no part; it knows no AVX-512, whose loops
avx512_speed.cc times. Counts depend on the compiler: with another one than the file's the test is
skipped. A count that is off by more than 3 % either way fails: --update writes the file anew, and the
change stands in the commit.
"""
import json
import pathlib
import platform
import re
import subprocess
import sys
import tempfile

SKIPPED = 77  # ctest's SKIP_RETURN_CODE
SLACK = 0.03
KEPT = pathlib.Path(__file__).with_name("instruction_counts.json")
ISAS = ("avx2", "portable")


def skip(reason):
    print(f"SKIP: {reason}")
    sys.exit(SKIPPED)


def measure(program, isa):
    """The instructions of every item."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "counts"
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", "--collect-atstart=no", f"--callgrind-out-file={out}", program, isa],
            capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(f"{program} {isa} under valgrind: exit status {run.returncode}\n{run.stderr}")
        counts = {}
        for dump in sorted(out.parent.glob("counts.*"), key=lambda path: int(path.suffix[1:])):
            text = dump.read_text()
            item = re.search(r"^desc: Trigger: Client Request: (.*)$", text, re.M)
            if item:
                counts[item[1]] = int(re.search(r"^(?:summary|totals): (\d+)", text, re.M)[1])
        return counts


def main():
    program, compiler, build_type, *options = sys.argv[1:]
    if options not in ([], ["--update"]):
        sys.exit(__doc__)
    built = {"processor": platform.machine(), "compiler": compiler, "build": build_type}
    if options:
        KEPT.write_text(json.dumps(built | {isa: measure(program, isa) for isa in ISAS}, indent=1) + "\n")
        print(f"wrote {KEPT}")
        return
    kept = json.loads(KEPT.read_text())
    for key, value in built.items():
        if kept[key] != value:
            skip(f"{KEPT.name} was counted with {key} {kept[key]}, this is {value}")
    wrong = []
    for isa in ISAS:
        counts = measure(program, isa)
        for item in sorted(counts.keys() | kept[isa].keys()):
            expected, found = kept[isa].get(item), counts.get(item)
            if expected is None or found is None:
                wrong.append(f"{isa}, {item}: expected {expected} instructions, found {found}")
            elif abs(found - expected) > SLACK * expected:
                wrong.append(f"{isa}, {item}: expected {expected} instructions, found {found} "
                             f"({found / expected - 1:+.1%})")
    if wrong:
        print("\n".join(wrong))
        sys.exit(f"{KEPT.name} does not fit: find out why, or update the file (CONTRIBUTING.md)")
    print(f"{sum(len(kept[isa]) for isa in ISAS)} counts are within {SLACK:.0%}")


main()
