"""Time from the start of the program to the first token of a warm run, and its peak memory beyond
weights and KV cache.

Usage: startup.py PROGRAM MODEL [RUNS]. Prints one JSON object."""

import json
import os
import statistics
import subprocess
import sys
import time


def run_once(program, model):
    """(seconds from start to exit, peak resident bytes, the program's report)"""
    begin = time.perf_counter()
    process = subprocess.Popen(
        [program, "run", "-m", model, "-n", "1", "--temp", "0", "--json", "-p", "Hello"],
        stdout=subprocess.PIPE)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    if status != 0:
        sys.exit(f"{program} failed on {model}")
    return seconds, usage.ru_maxrss * 1024, json.loads(output)


def main(program, model, runs):
    run_once(program, model)  # the file into the page cache, the machine into machine.json
    results = [run_once(program, model) for _ in range(runs)]
    size = json.loads(subprocess.run([program, "inspect", "-m", model, "--json"], check=True,
                                     stdout=subprocess.PIPE).stdout)
    print(json.dumps({
        "model": model,
        "runs": runs,
        "seconds_to_first_token": statistics.median(r[0] for r in results),
        "peak_resident_bytes": max(r[1] for r in results),
        "kv_bytes": results[0][2]["kv_bytes"],
        "inspect": size,
    }, indent=2))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 5)
