"""llama.cpp, through the low-level bindings of llama-cpp-python. Usage: llama_cpp_worker.py MODEL.gguf THREADS."""

import ctypes
import sys
import time

import llama_cpp as lib
import numpy as np
from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

from worker import CHUNK, FIRST_PROMPT, MAX_CONTEXT, CannotRun, Worker

quiet = lib.llama_log_callback(lambda level, text, data: None)


class Context:
    """A context with `sequences` caches of `tokens` tokens, each its own stream."""

    def __init__(self, model, vocab_size, threads, tokens, sequences):
        params = lib.llama_context_default_params()
        params.n_ctx = tokens * sequences
        params.n_batch = params.n_ubatch = CHUNK
        params.n_seq_max = sequences
        params.n_threads = params.n_threads_batch = threads
        params.kv_unified = False
        params.no_perf = True
        self.handle = lib.llama_init_from_model(model, params)
        if not self.handle:
            raise CannotRun(f"no context of {sequences} x {tokens} tokens")
        self.memory = lib.llama_get_memory(self.handle)
        self.vocab_size = vocab_size
        self.batch = lib.llama_batch_init(CHUNK, 0, 1)
        self.filled = 0

    def run(self, rows):
        """rows: [(token, position, sequence, whether logits are wanted)]; the best token of each of those."""
        batch = self.batch
        for i, (token, position, sequence, logits) in enumerate(rows):
            batch.token[i] = token
            batch.pos[i] = position
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = sequence
            batch.logits[i] = logits
        batch.n_tokens = len(rows)
        if lib.llama_decode(self.handle, batch) != 0:
            raise RuntimeError("llama_decode failed")
        count = sum(row[3] for row in rows)
        if not count:
            return []
        logits = np.ctypeslib.as_array(lib.llama_get_logits(self.handle), (count, self.vocab_size))
        return logits.argmax(axis=1).tolist()

    def fill(self, tokens):
        """Tokens into the empty first sequence; the best token behind the last."""
        best = []
        for begin in range(0, len(tokens), CHUNK):
            chunk = tokens[begin:begin + CHUNK]
            rows = [(token, begin + i, 0, False) for i, token in enumerate(chunk)]
            if begin + len(chunk) == len(tokens):
                rows[-1] = (*rows[-1][:3], True)
            best = self.run(rows)
        return best[0]


class LlamaCpp(Worker):
    def __init__(self, path, threads):
        self.path = path
        self.threads = threads
        self.contexts = {}
        self.high_level = {}

    def load(self):
        lib.llama_log_set(quiet, ctypes.c_void_p(0))
        lib.llama_backend_init()
        self.model = lib.llama_model_load_from_file(self.path.encode(), lib.llama_model_default_params())
        if not self.model:
            raise RuntimeError(f"llama.cpp does not open {self.path}")
        self.vocab_size = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(self.model))
        self.context(MAX_CONTEXT, 1).fill(self.made_up_tokens(0, FIRST_PROMPT))

    def context(self, tokens, sequences):
        key = (tokens, sequences)
        if key not in self.contexts:
            self.contexts[key] = Context(self.model, self.vocab_size, self.threads, tokens, sequences)
        return self.contexts[key]

    def empty(self, context):
        lib.llama_memory_clear(context.memory, False)
        context.filled = 0
        return context

    def prefill(self, tokens):
        ids = self.made_up_tokens(0, tokens)
        context = self.empty(self.context(2 * CHUNK, 1))
        begin = time.perf_counter()
        context.fill(ids)
        return time.perf_counter() - begin

    def decode(self, rows, context, steps):
        # A cache for each, so that the longest is filled once.
        cache = self.context(context + 256 - context % 256, rows)
        if cache.filled != context:
            self.empty(cache)
            cache.fill(self.made_up_tokens(0, context))
            for sequence in range(1, rows):
                lib.llama_memory_seq_cp(cache.memory, 0, sequence, -1, -1)
            cache.filled = context
        tokens = self.made_up_tokens(0, rows)
        begin = time.perf_counter()
        for position in range(context, context + steps):
            tokens = cache.run([(token, position, row, True) for row, token in enumerate(tokens)])
        seconds = time.perf_counter() - begin
        for row in range(rows):
            lib.llama_memory_seq_rm(cache.memory, row, context, -1)
        return seconds

    def generate(self, mode, count, ids):
        """ar: one token a step. lookup: llama-cpp-python's own drafting, drafts from n-grams of the text so far."""
        if mode == "ar":
            context = self.empty(self.context(MAX_CONTEXT, 1))
            begin = time.perf_counter()
            tokens = [context.fill(ids)]
            while len(tokens) < count:
                tokens += context.run([(tokens[-1], len(ids) + len(tokens) - 1, 0, True)])
            self.empty(context)
            return time.perf_counter() - begin, tokens
        if mode != "lookup":
            raise CannotRun(f"no drafting by {mode}")
        if mode not in self.high_level:
            draft = LlamaPromptLookupDecoding(num_pred_tokens=10)
            self.high_level[mode] = lib.Llama(self.path, n_ctx=1024, n_threads=self.threads, n_threads_batch=self.threads,
                                              n_batch=CHUNK, draft_model=draft, verbose=False)
        llama = self.high_level[mode]
        llama.reset()
        tokens = []
        begin = time.perf_counter()
        for token in llama.generate(ids, temp=0, repeat_penalty=1.0):
            tokens.append(int(token))
            if len(tokens) == count:
                break
        return time.perf_counter() - begin, tokens

    def about(self):
        flags = lib.llama_print_system_info().decode().strip().strip("|").split("|")
        on = [flag.split("=")[0].split(":")[-1].strip() for flag in flags if flag.strip().endswith("= 1")]
        return {"version": f"llama-cpp-python {lib.__version__}", "flags": "compiled for " + " ".join(on), "kv": "f16"}


if __name__ == "__main__":
    LlamaCpp(sys.argv[1], int(sys.argv[2])).serve()
