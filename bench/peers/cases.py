"""What the race measures, and what is asked of it."""

from dataclasses import dataclass, replace

OURS = "orthrus"
PEERS = ("llama.cpp", "openvino", "ctranslate2")
MODELS = ("smollm2-135m", "qwen3-0.6b", "qwen3-1.7b")
PRECISIONS = ("bf16", "q8", "q4")
# The instructions that the race is run with: all of this CPU's, or those of one without AVX-512 and AVX-VNNI.
ISAS = ("native", "avx2")
OURS_NATIVE = "orthrus, all instructions"  # beside the race with fewer
SHORT, LONG = 128, 4096


@dataclass(frozen=True)
class Case:
    name: str
    title: str
    command: tuple  # of a worker
    tokens: int = 0  # that the command computes; 0: its time counts
    targets: tuple = (None, None, None)  # ours over the best peer's, by precision: at least (of a time: at most)

    def target(self, precision):
        return self.targets[PRECISIONS.index(precision)]

    def value(self, seconds):
        """Tokens a second, or the seconds."""
        return self.tokens / seconds if self.tokens else seconds


NOTHING_ASKED = (None, None, None)


def _decode(name, title, rows, context, steps, targets=NOTHING_ASKED):
    return Case(name, title, ("decode", rows, context, steps), rows * steps, targets)


def cases_of(model, isa="native"):
    """More steps of the small model, so that no measurement is over before its clock has got going."""
    cases = _cases(model)
    if isa == "native":
        return cases
    return tuple(replace(case, targets=AVX2_TARGETS.get(case.name, NOTHING_ASKED)) for case in cases)


def _cases(model):
    scale = {"smollm2-135m": 4, "qwen3-0.6b": 2}.get(model, 1)
    return (
        _decode("decode", "decode, 1 row", 1, SHORT, 8 * scale, (1.2, 1.2, 1.15)),
        _decode("decode-8", "decode, batch 8", 8, SHORT, 4 * scale, (1.8, 2.0, 1.8)),
        _decode("decode-32", "decode, batch 32", 32, SHORT, 2 * scale),
        Case("prefill-128", "prefill 128", ("prefill", 128), 128),
        Case("prefill-512", "prefill 512", ("prefill", 512), 512, (1.5, 1.5, 1.5)),
        _decode("decode-4096", "decode at context 4096", 1, LONG, 4 * scale, (1.4, 1.4, 1.3)),
        Case("load", "load to first token", ("load",), 0, (1.0, 1.0, 1.0)),
    )


AVX2_TARGETS = {"decode": (None, 1.0, None)}
# The time with AVX2 over that with every instruction: at most.
AVX2_SLOWER = {("decode", "q8"): 1.6}

# Answers to real prompts, of the demo model alone: the peers' own drafting beside the dual view.
TEXT = Case("text", "text of real prompts", ("generate",), 1)
TEXT_MODEL = "smollm2-135m"
TEXT_TOKENS = 96
TEXT_MODES = {"orthrus": ("orthrus", "ar"), "orthrus, dual view": ("orthrus", "dual"), "llama.cpp": ("llama.cpp", "ar"),
              "llama.cpp, prompt lookup": ("llama.cpp", "lookup"), "openvino": ("openvino", "ar"),
              "ctranslate2": ("ctranslate2", "ar")}

# Cells that no run can fill, with the reason.
_CANNOT = {
    ("ctranslate2", "bf16"): "computes in float32 or int8 on a CPU, not in bfloat16",
    ("ctranslate2", "q4"): "reads 4-bit weights (AWQ) on GPUs only",
}
_CANNOT_AVX2 = {
    "openvino": "has no switch for it: ONEDNN_MAX_CPU_ISA binds oneDNN alone; the plugin goes by the CPU and asks oneDNN for "
                "products that AVX2 does not have",
}


def cannot(peer, precision, isa):
    """The reason, or None."""
    return _CANNOT.get((peer, precision)) or (_CANNOT_AVX2.get(peer) if isa == "avx2" else None)
