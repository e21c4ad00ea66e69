"""Prints the cases of `orthrus bench --json` files as a table."""

import json
import sys


def cell(case, key, pattern):
    value = case.get(key)
    return "-" if value is None else pattern.format(value)


def main(paths):
    for path in paths:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        machine = report["machine"]
        print(f"{path}: {machine['cpu']}, {machine['isa']}, {machine['threads']} threads, "
              f"{machine['read_gbps']:.1f} GB/s, {machine['fma_gflops']:.0f} GFLOP/s")
        print(f"{'case':10} {'weights':8} {'rows':>5} {'context':>8} {'ms':>10} {'GB/s':>7} "
              f"{'GFLOP/s':>8} {'x one row':>10} {'x limit':>8}")
        for case in report["cases"]:
            seconds = case.get("seconds")
            milliseconds = "-" if seconds is None else f"{1e3 * seconds:.3f}"
            print(f"{case['name']:10} {case.get('weights', '-'):8} {cell(case, 'rows', '{}'):>5} "
                  f"{cell(case, 'context', '{}'):>8} {milliseconds:>10} "
                  f"{cell(case, 'gbps', '{:.1f}'):>7} {cell(case, 'gflops', '{:.0f}'):>8} "
                  f"{cell(case, 'ratio_to_one_row', '{:.2f}'):>10} "
                  f"{cell(case, 'ratio_to_limit', '{:.2f}'):>8}")
        print()


if __name__ == "__main__":
    main(sys.argv[1:])
