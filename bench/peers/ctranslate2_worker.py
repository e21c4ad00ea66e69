"""CTranslate2 on a model that models.py wrote. Usage: ctranslate2_worker.py FOLDER THREADS."""

import json
import sys
import time
from pathlib import Path

import ctranslate2

from worker import FIRST_PROMPT, CannotRun, Worker


class CTranslate2(Worker):
    """It has no call for one pass: the time of some steps is that of an answer with them less one without them."""

    def __init__(self, folder, threads):
        self.folder = Path(folder)
        self.threads = threads

    def load(self):
        self.generator = ctranslate2.Generator(str(self.folder), device="cpu", compute_type="int8", intra_threads=self.threads)
        self.vocabulary = json.loads((self.folder / "vocabulary.json").read_text(encoding="utf-8"))
        self.ids = {token: i for i, token in enumerate(self.vocabulary)}
        self.vocab_size = len(self.vocabulary)
        self.timed([self.made_up_tokens(0, FIRST_PROMPT)], 1)

    def timed(self, prompts, count, context=None):
        """(seconds, answers of exactly `count` tokens); the state of `context` is computed once and kept."""
        start = [[self.vocabulary[token] for token in prompt] for prompt in prompts]
        static = [self.vocabulary[token] for token in context] if context else None
        begin = time.perf_counter()
        results = self.generator.generate_batch(
            start, static_prompt=static, cache_static_prompt=True, max_length=count, min_length=count, beam_size=1,
            sampling_topk=1, include_prompt_in_result=False, end_token=[], max_batch_size=0)
        seconds = time.perf_counter() - begin
        return seconds, [result.sequences_ids[0] for result in results]

    def prefill(self, tokens):
        one, _ = self.timed([self.made_up_tokens(0, 1)], 1)
        return self.timed([self.made_up_tokens(0, tokens + 1)], 1)[0] - one

    def decode(self, rows, context, steps):
        prompts = [[token] for token in self.made_up_tokens(0, rows)]
        static = self.made_up_tokens(0, context)
        self.timed(prompts[:1], 1, static)
        one, _ = self.timed(prompts, 1, static)
        return self.timed(prompts, steps + 1, static)[0] - one

    def generate(self, mode, count, ids):
        if mode != "ar":
            raise CannotRun(f"no drafting by {mode}")
        seconds, answers = self.timed([ids], count)
        return seconds, answers[0]

    def about(self):
        return {"version": f"ctranslate2 {ctranslate2.__version__}",
                "flags": f"{self.generator.compute_type}, rows of weights scaled as a whole", "kv": "f32"}


if __name__ == "__main__":
    CTranslate2(sys.argv[1], int(sys.argv[2])).serve()
