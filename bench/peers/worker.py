"""The protocol of the race's workers (bench/peers/orthrus_worker.cc says it): commands on stdin, one JSON object
a line on stdout. Peers subclass Worker. A command that a peer has no way to do raises CannotRun with the reason."""

import json
import os
import sys
import time


class CannotRun(Exception):
    pass


MAX_CONTEXT = 4096 + 256
CHUNK = 512
FIRST_PROMPT = 8


class Worker:
    """load, prefill, decode and generate; `vocab_size` is known once loaded."""

    vocab_size = 0

    def load(self):
        """Opens the model and computes the first token behind a prompt of FIRST_PROMPT tokens."""
        raise NotImplementedError

    def prefill(self, tokens):
        """Seconds of `tokens` tokens into an empty cache, with the logits of the last one."""
        raise NotImplementedError

    def decode(self, rows, context, steps):
        """Seconds of `steps` steps of `rows` sequences, each behind `context` tokens of its own."""
        raise NotImplementedError

    def generate(self, mode, count, ids):
        """(seconds, tokens): `count` greedy tokens behind `ids`."""
        raise NotImplementedError

    def about(self):
        """What the table says of this peer: version, flags, types of cache and arithmetic."""
        raise NotImplementedError

    def made_up_tokens(self, first, count):
        return [100 + i * 7919 % (self.vocab_size // 2) for i in range(first, first + count)]

    def answer(self, command, *arguments):
        if command == "ready":
            return {}
        if command == "load":
            begin = time.perf_counter()
            self.load()
            return {"seconds": time.perf_counter() - begin}
        if command == "about":
            return {"about": self.about()}
        if command == "prefill":
            return {"seconds": self.prefill(int(arguments[0]))}
        if command == "decode":
            return {"seconds": self.decode(*(int(argument) for argument in arguments))}
        if command == "generate":
            mode, count, ids = arguments
            seconds, tokens = self.generate(mode, int(count), [int(i) for i in ids.split(",")])
            return {"seconds": seconds, "tokens": tokens}
        raise ValueError(f"expected ready, load, about, prefill, decode or generate, found {command}")

    def serve(self):
        # Answers go to the true stdout; what a library prints there goes to stderr.
        answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        for line in sys.stdin:
            try:
                reply = self.answer(*line.split())
            except CannotRun as reason:
                reply = {"cannot": str(reason)}
            answers.write(json.dumps(reply) + "\n")
            answers.flush()
