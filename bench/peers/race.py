"""This engine beside others on the same weights, threads and cores (docs/benchmarks.md, "The race").

Every repetition visits every engine with every case, so that a slow spell of the machine meets them all. Each engine
is a process of its own that keeps its model. Results go to RESULTS/MODEL-PRECISION.json; a part that is run again replaces its cases."""

import argparse
import json
import os
import subprocess
import time
from datetime import datetime, timezone
from pathlib import Path

import models
import report
import results
from cases import (ISAS, MODELS, OURS, OURS_NATIVE, PEERS, PRECISIONS, TEXT, TEXT_MODEL, TEXT_MODES, TEXT_TOKENS, cannot,
                   cases_of)
from quiet import Neighbours
from workers import WorkerDied, WorkerProcess

SANITY_TOKENS = 24
WAITS = (0.2, 0.5, 1)  # seconds after each try of a measurement that others disturbed


def commit():
    def git(*arguments):
        return subprocess.run(["git", "-C", models.SOURCE, *arguments], check=True, capture_output=True, text=True).stdout.strip()
    return git("rev-parse", "--short", "HEAD") + (" with changes" if git("status", "--porcelain", "--untracked-files=no") else "")


def cpu_name():
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    fields = dict(line.split(":", 1) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    fields = {key.strip(): value.strip() for key, value in fields.items()}
    return f"{fields.get('model name', 'unknown CPU')} (family {fields.get('cpu family')}, model {fields.get('model')})"


def log(text):
    print(text, flush=True)


def give_up(entry, peer, reason):
    entry["values"].pop(peer, None)
    entry["cannot"][peer] = str(reason)
    log(f"  {reason}")


class Race:
    """Of one model in one precision."""

    def __init__(self, model, precision, arguments, cores):
        self.model, self.precision, self.cores, self.isa = model, precision, cores, arguments.isa
        self.repetitions = arguments.repetitions
        self.folder = arguments.models_folder
        self.wanted = arguments.cases
        reasons = {peer: cannot(peer, precision, self.isa) for peer in arguments.peers}
        self.cannot = {peer: reason for peer, reason in reasons.items() if reason}
        ours = (OURS,) if self.isa == "native" else (OURS, OURS_NATIVE)
        self.peers = [peer for peer in (*ours, *arguments.peers) if peer not in self.cannot]
        self.unit = {"model": model, "precision": precision, "isa": self.isa, "peers": {}, "agreement": {}, "cases": {}}
        self.workers = {}

    def run(self, save):
        """save(unit) after each part, so that a race that is ended keeps what it has."""
        self.paths = models.make(self.model, self.precision, self.peers, self.folder)
        self.paths[OURS_NATIVE] = self.paths[OURS]
        try:
            self.start()
            timed = [case for case in cases_of(self.model, self.isa) if case.name in self.wanted]
            self.measure([case for case in timed if case.tokens], self.ask_worker, self.peers)
            save(self.unit)
            self.end()  # a second process of each may not fit beside them
            self.measure([case for case in timed if not case.tokens], self.ask_new_worker, self.peers)
            save(self.unit)
            if self.model == TEXT_MODEL and TEXT.name in self.wanted:
                self.start()
                self.run_text()
                save(self.unit)
        finally:
            self.end()

    def start(self):
        for peer in list(self.peers):
            worker = self.workers[peer] = self.new_worker(peer, self.paths[peer])
            try:
                worker.ask("load")
                self.unit["peers"][peer] = worker.ask("about")["about"]
            except WorkerDied as reason:
                if peer == OURS:
                    raise
                self.peers.remove(peer)
                self.cannot[peer] = str(reason)
                log(f"  {reason}")

    def end(self):
        for worker in self.workers.values():
            worker.end()
        self.workers = {}

    def new_worker(self, peer, path):
        return WorkerProcess(peer, path, self.cores, self.isa)

    def ask_worker(self, case, peer):
        """(value, whether others disturbed it)"""
        worker = self.workers[peer]
        worker.expect_alive()
        neighbours = Neighbours(self.cores, worker.process.pid)
        return case.value(worker.ask(*case.command)["seconds"]), neighbours.disturbed()

    def ask_new_worker(self, case, peer):
        worker = self.new_worker(peer, self.paths[peer])
        try:
            worker.ask("ready")
            neighbours = Neighbours(self.cores, worker.process.pid)
            return case.value(worker.ask(*case.command)["seconds"]), neighbours.disturbed()
        finally:
            worker.end()

    def undisturbed(self, ask, case, peer):
        """As ask, but again where others took the cores meanwhile; at last the fastest of the tries, and True."""
        tries = []
        for wait in WAITS:
            value, disturbed = ask(case, peer)
            if not disturbed:
                return value, False
            tries.append(value)
            time.sleep(wait)
        return (max if case.tokens else min)(tries), True

    def measure(self, cases, ask, peers):
        """Warms up, then visits the peers in turn, beginning with another one each time."""
        for case in cases:
            entry = {"commit": commit(), "date": datetime.now(timezone.utc).isoformat(timespec="seconds"), "cpu": cpu_name(),
                     "threads": len(self.cores), "values": {}, "cannot": dict(self.cannot), "disturbed": 0}
            for peer in peers:
                try:
                    ask(case, peer)
                    entry["values"][peer] = []
                except WorkerDied as reason:
                    give_up(entry, peer, reason)
            self.unit["cases"][case.name] = entry
        for repetition in range(self.repetitions):
            for case in cases:
                entry = self.unit["cases"][case.name]
                running = list(entry["values"])
                for i in range(len(running)):
                    peer = running[(i + repetition) % len(running)]
                    try:
                        value, disturbed = self.undisturbed(ask, case, peer)
                    except WorkerDied as reason:
                        give_up(entry, peer, reason)
                        continue
                    entry["values"][peer].append(value)
                    entry["disturbed"] += disturbed
        for case in cases:
            found = results.ratio(case, self.unit["cases"][case.name])
            log(f"  {case.title}: " + (f"{found[0]:.2f} of {found[1]}" if found else "nothing to compare"))

    def run_text(self):
        """Real prompts: whether all engines compute the same, and what drafts bring."""
        prompts = text_prompts(self.model)
        first = {peer: self.workers[peer].ask("generate", "ar", SANITY_TOKENS, prompts[0])["tokens"] for peer in self.peers}
        for peer, tokens in first.items():
            same = next((i for i, (a, b) in enumerate(zip(tokens, first[OURS])) if a != b), len(tokens))
            self.unit["agreement"][peer] = same
        if any(mode == "dual" for _, mode in TEXT_MODES.values()):
            self.workers[OURS].end()
            self.workers[OURS] = self.new_worker(OURS, models.make_dual(self.model, self.precision, self.folder))
            self.workers[OURS].ask("load")
        names = [name for name, (peer, _) in TEXT_MODES.items() if peer in self.peers]

        def ask(_, name):
            peer, mode = TEXT_MODES[name]
            neighbours = Neighbours(self.cores, self.workers[peer].process.pid)
            answers = [self.workers[peer].ask("generate", mode, TEXT_TOKENS, prompt) for prompt in prompts]
            tokens = sum(len(answer["tokens"]) for answer in answers)
            return tokens / sum(answer["seconds"] for answer in answers), neighbours.disturbed()

        self.measure([TEXT], ask, names)


def text_prompts(model):
    """Token ids of two held-out prompts of each kind, as a chat."""
    prompts = []
    for kind in ("gsm8k", "code", "chat"):
        with open(models.SOURCE / f"models/{model}/recipe/held-out/{kind}.jsonl", encoding="utf-8") as file:
            for line in [next(file) for _ in range(2)]:
                fields = json.loads(line)
                text = next(value for key in ("question", "prompt") if (value := fields.get(key)))
                chat = f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"
                out = subprocess.run([models.SOURCE / "build/orthrus", "tokenize", "-m", model, "--json", "-p", chat],
                                     check=True, capture_output=True, text=True).stdout
                prompts.append(",".join(str(token) for token in json.loads(out)["token_ids"]))
    return prompts


def names_in(allowed):
    def parse(text):
        names = text.split(",")
        for name in names:
            if name not in allowed:
                raise argparse.ArgumentTypeError(f"expected some of {', '.join(allowed)}, with commas between; found {name}")
        return names
    return parse


def main():
    case_names = [case.name for case in cases_of(MODELS[0])] + [TEXT.name]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=names_in(MODELS), default=list(MODELS))
    parser.add_argument("--precisions", type=names_in(PRECISIONS), default=list(PRECISIONS))
    parser.add_argument("--peers", type=names_in(PEERS), default=list(PEERS))
    parser.add_argument("--cases", type=names_in(case_names), default=case_names)
    parser.add_argument("--isa", choices=ISAS, default=ISAS[0], help="avx2: all engines without AVX-512, and orthrus with it beside them")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--resume", action="store_true", help="pass over cases that have their repetitions")
    parser.add_argument("--results", type=Path, help="(build/peers/results, with --isa avx2 build/peers/results-avx2)")
    parser.add_argument("--models-folder", type=Path, default=models.SOURCE / "build/peers/models")
    arguments = parser.parse_args()
    if arguments.results is None:
        arguments.results = models.SOURCE / "build/peers" / ("results" if arguments.isa == "native" else f"results-{arguments.isa}")

    cores = sorted(os.sched_getaffinity(0))[:arguments.threads]
    if len(cores) < arguments.threads:
        parser.error(f"--threads {arguments.threads}, but this process may use {len(cores)} cores")
    begin = time.monotonic()
    wanted = arguments.cases
    for model in arguments.models:
        for precision in arguments.precisions:
            path = arguments.results / f"{model}-{precision}.json"
            old = results.read(path)
            arguments.cases = [name for name in wanted if not (arguments.resume and results.done(old, name, arguments.repetitions))]
            if arguments.cases:
                log(f"{model}, {precision}")
                Race(model, precision, arguments, set(cores)).run(
                    lambda unit, path=path, old=old: results.write(path, results.merged(old, unit)))
    report.main(arguments.results)
    log(f"{(time.monotonic() - begin) / 60:.1f} minutes; table and chart in {arguments.results}")


if __name__ == "__main__":
    main()
