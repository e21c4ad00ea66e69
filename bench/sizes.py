"""Load, memory and decode of models beyond the demo: random weights in the shapes of published models.

For each model and format: seconds to load from the model's files and from a packed cache (the file in the system's cache, and
dropped from it), peak resident memory beside what `orthrus plan` says, decode at a short and at a long context.

Usage: sizes.py PROGRAM FOLDER CASE..., a CASE is SHAPE:WEIGHTS[:CONTEXT], for example qwen3-1.7b:q4:32768. The
checkpoints are made in FOLDER where they are not there yet. Prints a Markdown table."""

import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

import random_checkpoint

PROMPT_LETTERS = 64  # of the short prompt
NEW_TOKENS = 16


def run(program, *arguments):
    """(seconds, peak resident bytes, the report) of one run of the program."""
    begin = time.perf_counter()
    process = subprocess.Popen([program, *arguments], stdout=subprocess.PIPE)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    if status != 0:
        sys.exit(f"sizes: {' '.join(arguments)} failed")
    return seconds, usage.ru_maxrss * 1024, json.loads(output)


def letters(count):
    source = random.Random(2)
    return "".join(source.choice("abcdefghijklmnopqrstuvwxyz ") for _ in range(count))


class Case:
    def __init__(self, program, folder, text):
        shape, self.weights, *context = text.split(":")
        self.program, self.name, self.context = program, shape, int(context[0]) if context else 4096
        self.model = folder / shape
        self.prompt = folder / "prompt.txt"
        self.cache = folder / "packed"
        if not (self.model / "model.safetensors").exists():
            random_checkpoint.main(shape, str(self.model))
        self.flags = ["-m", str(self.model), "--weights", self.weights, "-c", str(self.context)]

    def answer(self, prompt, *flags):
        self.prompt.write_text(prompt)
        seconds, peak, report = run(self.program, "run", *self.flags, "--raw", "-f", str(self.prompt), "-n", str(NEW_TOKENS),
                                    "--temp", "0", "--ignore-eos", "--json", *flags)
        report["load_seconds"] = seconds - report["prefill_seconds"] - report["decode_seconds"]
        report["peak"] = peak
        return report

    def long_prompt(self):
        """Of as many tokens as the context has room for."""
        sample = letters(4096)
        self.prompt.write_text(sample)
        ids = json.loads(subprocess.run([self.program, "tokenize", "-m", str(self.model), "-f", str(self.prompt), "--json"],
                                        check=True, stdout=subprocess.PIPE).stdout)
        count = len(ids["ids"] if isinstance(ids, dict) else ids)
        return letters(int((self.context - 2 * NEW_TOKENS - 64) * len(sample) / count * 0.995))

    def drop_from_cache(self, path):
        file = os.open(path, os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)

    def measure(self, repetitions):
        _, _, plan = run(self.program, "plan", *self.flags, "--json")
        short = letters(PROMPT_LETTERS)
        plain = [self.answer(short, "--view", "dual") for _ in range(repetitions)]
        cached_flag = f"--cache-packed={self.cache}"
        self.answer(short, cached_flag)  # writes it
        cached = [self.answer(short, cached_flag) for _ in range(repetitions)]
        for file in self.cache.iterdir():
            self.drop_from_cache(file)
        cold = self.answer(short, cached_flag)
        if len({tuple(report["token_ids"]) for report in [*plain, *cached, cold]}) != 1:
            sys.exit("sizes: texts differ with and without the packed cache")
        full = self.answer(self.long_prompt(), "--draft-max", "31", "--temp", "0.8", "--seed", "1")
        for file in self.cache.iterdir():
            file.unlink()

        def seconds(reports):
            return statistics.median(report["load_seconds"] for report in reports)

        steps = full["forward_passes"] - -(-full["prompt_tokens"] // 512)
        return [self.name, self.weights, f"{plan['weight_bytes'] / 1e9:.2f} GB", f"{seconds(plain):.1f}",
                f"{seconds(cached):.2f}", f"{cold['load_seconds']:.1f}",
                f"{max(report['peak'] for report in plain) / plan['weight_bytes'] - 1:+.1%}",
                f"{full['prompt_tokens'] + full['completion_tokens']:,}", f"{plan['total_bytes'] / 1e9:.3f} GB",
                f"{full['peak'] / 1e9:.3f} GB", f"{full['peak'] / plan['total_bytes'] - 1:+.1%}",
                f"{1e3 * plain[0]['decode_seconds'] / plain[0]['cycles']:.0f}",
                f"{1e3 * full['decode_seconds'] / max(steps, 1):.0f}"]


def main(program, folder, cases):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    heads = ["shape", "weights", "bytes", "load, s", "from packed cache, s", "the same from disk, s", "peak of a short run over weights",
             "tokens", "plan", "peak", "peak over plan", "cycle, ms", "pass at the long context, ms"]
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads), flush=True)
    for case in cases:
        print("| " + " | ".join(Case(program, folder, case).measure(3)) + " |", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
