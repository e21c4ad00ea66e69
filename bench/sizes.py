"""Load, memory and speed of models beyond the demo: random weights in the shapes of published models.

For each model and format
- seconds of a load: from the model's files, and from a packed cache (`--cache-packed`) that is in the system's cache or was
  dropped from it, each beside a plain read of that file; peak resident memory of a load and a short answer over the weights;
- one prompt that fills the context, with full draft blocks: seconds of its prefill, and the peak beside what `orthrus plan` says;
- tokens a second of plain decoding behind 256 tokens and at the end of the context (`orthrus bench --cases decode`).

Usage: sizes.py PROGRAM FOLDER CASE..., a CASE is SHAPE:WEIGHTS[:CONTEXT], for example qwen3-1.7b:q4:32768 (context 4096 where
it says none). The checkpoints are made in FOLDER where they are not there yet. SIZES_REPS: repetitions of short parts (3); the
long prompt is read once. Prints two Markdown tables."""

import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

MAKER = pathlib.Path(__file__).with_name("random_checkpoint.py")
PROMPT_LETTERS = 64  # of the short prompt
NEW_TOKENS = 64  # of an answer: more than the largest draft block has
BLOCK_BYTES = 8 << 20  # of a plain read
REPETITIONS = int(os.environ.get("SIZES_REPS", "3"))
LOAD_HEADS = ["shape", "weights", "GB", "load from the files, s", "from the packed cache, s", "plain read of it, s",
              "packed cache on disk, s", "plain read from disk, s", "peak of a load over the weights"]
RUN_HEADS = ["shape", "weights", "tokens", "prefill, s", "peak, GB", "plan, GB", "peak over plan", "tokens/s behind 256 tokens",
             "tokens/s at the end"]


def log(text):
    print(f"sizes: {text}", file=sys.stderr, flush=True)


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


def plain_read(path):
    """Seconds that reading the file takes, on one thread."""
    block = bytearray(BLOCK_BYTES)
    begin = time.perf_counter()
    with open(path, "rb", buffering=0) as file:
        while file.readinto(block):
            pass
    return time.perf_counter() - begin


def drop_from_cache(path):
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)


class Case:
    def __init__(self, program, folder, text):
        self.name, self.weights, *context = text.split(":")
        self.program, self.context = program, int(context[0]) if context else 4096
        self.model = folder / self.name
        self.prompt = folder / "prompt.txt"
        self.cache = folder / "packed"
        self.cached = f"--cache-packed={self.cache}"
        if not (self.model / "model.safetensors").exists():
            log(f"writing {self.model}")
            # In a process of its own: what this one takes when it starts the program counts as the program's peak.
            subprocess.run([sys.executable, MAKER, self.name, str(self.model)], check=True)
        self.flags = ["-m", str(self.model), "--weights", self.weights]

    def answer(self, prompt, *flags):
        self.prompt.write_text(prompt)
        seconds, peak, report = run(self.program, "run", *self.flags, "-c", str(self.context), "--raw", "-f", str(self.prompt), "-n",
                                    str(NEW_TOKENS), "--ignore-eos", "--json", *flags)
        report["load_seconds"] = seconds - report["prefill_seconds"] - report["decode_seconds"]
        report["peak"] = peak
        return report

    def tokens(self, text):
        self.prompt.write_text(text)
        output = subprocess.run([self.program, "tokenize", "-m", str(self.model), "-f", str(self.prompt), "--json"], check=True,
                                stdout=subprocess.PIPE).stdout
        return len(json.loads(output)["token_ids"])

    def long_prompt(self):
        """Of as many tokens as leave room for the answer, or a few less."""
        wanted, text = self.context - NEW_TOKENS, letters(4 * self.context)
        while (found := self.tokens(text)) > wanted:
            text = text[:int(len(text) * wanted / found) - (found < 1.01 * wanted)]
        return text

    def plan(self, *flags):
        return run(self.program, "plan", *self.flags, "-c", str(self.context), "--json", *flags)[2]

    def loads(self):
        """A row of the table of loads. Leaves the packed cache behind."""
        log(f"{self.name} {self.weights}: loads")
        short = letters(PROMPT_LETTERS)
        plain = [self.answer(short, "--temp", "0") for _ in range(REPETITIONS)]
        self.answer(short, "--temp", "0", self.cached)  # writes it
        file = next(self.cache.iterdir())
        warm, warm_reads = [], []
        for _ in range(REPETITIONS):
            warm.append(self.answer(short, "--temp", "0", self.cached))
            warm_reads.append(plain_read(file))
        drop_from_cache(file)
        cold = self.answer(short, "--temp", "0", self.cached)
        drop_from_cache(file)
        cold_read = plain_read(file)
        if len({tuple(report["token_ids"]) for report in [*plain, *warm, cold]}) != 1:
            sys.exit("sizes: texts differ with and without the packed cache")

        def seconds(reports):
            return f"{statistics.median(report['load_seconds'] for report in reports):.2f}"

        weights = self.plan()["weight_bytes"]
        return [self.name, self.weights, f"{weights / 1e9:.2f}", seconds(plain), seconds(warm), f"{statistics.median(warm_reads):.2f}",
                seconds([cold]), f"{cold_read:.2f}", f"{max(report['peak'] for report in plain) / weights - 1:+.1%}"]

    def runs(self):
        """A row of the table of answers. Takes the packed cache away."""
        log(f"{self.name} {self.weights}: decode behind 256 and {self.context - NEW_TOKENS} tokens")
        _, _, bench = run(self.program, "bench", *self.flags, self.cached, "--cases", "decode", "-c", str(self.context - NEW_TOKENS),
                          "--reps", str(REPETITIONS), "--json")
        for file in self.cache.iterdir():
            file.unlink()
        log(f"{self.name} {self.weights}: a prompt of about {self.context} tokens")
        plan = self.plan()
        full = self.answer(self.long_prompt(), "--draft-max", "31", "--temp", "0.8", "--top-p", "0.9", "--seed", "1")
        return [self.name, self.weights, f"{full['prompt_tokens'] + full['completion_tokens']:,}", f"{full['prefill_seconds']:.0f}",
                f"{full['peak'] / 1e9:.3f}", f"{plan['total_bytes'] / 1e9:.3f}", f"{full['peak'] / plan['total_bytes'] - 1:+.1%}",
                *(f"{1 / case['seconds']:.1f}" for case in bench["cases"])]


def table(heads, rows):
    for row in [heads, ["---"] * len(heads), *rows]:
        print("| " + " | ".join(row) + " |")


def main(program, folder, texts):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    loads, runs = [], []
    for text in texts:
        case = Case(program, folder, text)
        loads.append(case.loads())
        runs.append(case.runs())
        log(" | ".join(loads[-1] + runs[-1][2:]))
    table(LOAD_HEADS, loads)
    print()
    table(RUN_HEADS, runs)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
