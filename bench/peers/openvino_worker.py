"""OpenVINO on a stateful model that openvino-genai made of a GGUF file (models.py). Usage: openvino_worker.py FOLDER THREADS."""

import sys
import time
from pathlib import Path

import numpy as np
import openvino
import openvino_tokenizers  # noqa: F401, the operations of the tokenizer's model
from openvino import opset13

from worker import CHUNK, FIRST_PROMPT, CannotRun, Worker


def last_row_only(model):
    """lm_head over the last row of a pass, as openvino-genai changes its models too."""
    head = model.get_results()[0].input_value(0).get_node()
    if head.get_type_name() != "MatMul":
        raise RuntimeError(f"the model ends in {head.get_type_name()}, expected MatMul")
    rows = head.input_value(0)
    last = opset13.slice(rows, np.array([-1]), np.array([np.iinfo(np.int64).max]), np.array([1]), np.array([1]))
    head.input(0).replace_source_output(last.output(0))
    model.validate_nodes_and_infer_types()
    return model


class OpenVino(Worker):
    def __init__(self, folder, threads):
        self.folder = Path(folder)
        self.threads = threads
        self.saved = {}

    def load(self):
        core = openvino.Core()
        self.tokenizer = core.compile_model(core.read_model(self.folder / "openvino_tokenizer.xml"), "CPU")
        model = last_row_only(core.read_model(self.folder / "openvino_model.xml"))
        self.vocab_size = model.output(0).partial_shape[2].get_length()
        # Its defaults otherwise: bfloat16 arithmetic where the CPU has it, quantised activations, 8-bit cache.
        self.compiled = core.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": self.threads, "PERFORMANCE_HINT": "LATENCY"})
        self.request = self.compiled.create_infer_request()
        self.run([self.made_up_tokens(0, FIRST_PROMPT)], 0)

    def run(self, rows, past):
        """rows: equally long lists of tokens, behind `past` each; the best token of each."""
        ids = np.array(rows, dtype=np.int64)
        count, tokens = ids.shape
        positions = np.tile(np.arange(past, past + tokens, dtype=np.int64), (count, 1))
        out = self.request.infer(
            {"input_ids": ids, "attention_mask": np.ones((count, past + tokens), dtype=np.int64),
             "position_ids": positions, "beam_idx": np.arange(count, dtype=np.int32)},
            share_inputs=True, share_outputs=True)
        return out[0][:, -1, :].argmax(axis=1).tolist()

    def fill(self, rows, length):
        chunk = max(1, CHUNK // len(rows))
        for begin in range(0, length, chunk):
            best = self.run([row[begin:begin + chunk] for row in rows], begin)
        return best

    def prefill(self, tokens):
        ids = self.made_up_tokens(0, tokens)
        self.request.reset_state()
        begin = time.perf_counter()
        self.fill([ids], tokens)
        return time.perf_counter() - begin

    def decode(self, rows, context, steps):
        key = (rows, context)
        if key not in self.saved:
            self.request.reset_state()
            self.fill([self.made_up_tokens(row, context) for row in range(rows)], context)
            self.saved[key] = [np.array(state.state.data, copy=True) for state in self.request.query_state()]
        for state, values in zip(self.request.query_state(), self.saved[key]):
            state.state = openvino.Tensor(values)
        tokens = self.made_up_tokens(0, rows)
        begin = time.perf_counter()
        for position in range(context, context + steps):
            tokens = self.run([[token] for token in tokens], position)
        return time.perf_counter() - begin

    def generate(self, mode, count, ids):
        if mode != "ar":
            raise CannotRun(f"no drafting by {mode}")
        self.request.reset_state()
        begin = time.perf_counter()
        tokens = self.fill([ids], len(ids))
        while len(tokens) < count:
            tokens += self.run([tokens[-1:]], len(ids) + len(tokens) - 1)
        return time.perf_counter() - begin, tokens

    def about(self):
        def value(name):
            found = self.compiled.get_property(name)
            return found.to_string() if hasattr(found, "to_string") else str(found)
        return {"version": f"openvino {openvino.__version__.split('-')[0]}",
                "flags": f"arithmetic {value('INFERENCE_PRECISION_HINT')}, "
                         f"quantised activations in groups of {value('DYNAMIC_QUANTIZATION_GROUP_SIZE')}",
                "kv": value("KV_CACHE_PRECISION")}


if __name__ == "__main__":
    OpenVino(sys.argv[1], int(sys.argv[2])).serve()
