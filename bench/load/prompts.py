"""Requests from real prompts: GSM8K questions, code (HumanEval), chat, and long texts to read."""

import dataclasses
import json
import pathlib
import random

ROOT = pathlib.Path(__file__).resolve().parents[2]
HELD_OUT = ROOT / "models/smollm2-135m/recipe/held-out"
SHORT_KINDS = ("gsm8k", "code", "chat")
# Shares of the usual mix.
MIX = {"gsm8k": 0.4, "code": 0.25, "chat": 0.3, "long": 0.05}


@dataclasses.dataclass(frozen=True)
class Request:
    kind: str
    body: dict  # of a POST to /v1/chat/completions

    def varied(self, **members):
        return Request(self.kind, {**self.body, **members})


def short_prompts(kind):
    lines = [json.loads(line) for line in (HELD_OUT / f"{kind}.jsonl").read_text().splitlines()]
    return [line.get("question") or line["prompt"] for line in lines]


def library():
    """A long text: this project's documents and all held-out prompts."""
    documents = [path.read_text() for path in sorted((ROOT / "docs").glob("*.md"))]
    return "\n\n".join(documents + [text for kind in SHORT_KINDS for text in short_prompts(kind)])


def parse_mix(text):
    """`gsm8k=0.5,long=0.5`, or one kind alone."""
    mix = {}
    for part in text.split(","):
        kind, _, share = part.partition("=")
        if kind not in MIX:
            raise ValueError(f"--mix: expected kinds out of {', '.join(MIX)}, found {kind!r}")
        mix[kind] = float(share or 1)
    return mix


class PromptSource:
    """Draws prompts, the same ones for the same seed. `chars_a_token` says about how long a text of so many tokens is."""

    def __init__(self, seed, mix=None, chars_a_token=3.0, long_tokens=(2000, 8000), most_tokens=8000):
        self.random = random.Random(seed)
        self.mix = mix or MIX
        self.chars_a_token = chars_a_token
        self.most_tokens = most_tokens
        self.long_tokens = tuple(min(n, most_tokens) for n in long_tokens)
        self.texts = {kind: short_prompts(kind) for kind in SHORT_KINDS}
        self.library = library()

    def long_prompt(self, tokens):
        """A part of the library that begins anywhere, so that no two have their beginning in common."""
        size = int(tokens * self.chars_a_token)
        begin = self.random.randrange(len(self.library))
        text = (self.library[begin:] + self.library * (1 + size // len(self.library)))[:size]
        return f"What is this text about?\n\n{text}"

    def prompt(self, kind):
        if kind == "long":
            return self.long_prompt(self.random.randint(*self.long_tokens))
        return self.random.choice(self.texts[kind])[:int(self.most_tokens * self.chars_a_token)]

    def numbered(self, max_tokens, number, **members):
        """A short greedy request whose text begins with a number, so that no cache holds any of it."""
        request = self.request(max_tokens, **members)
        message = request.body["messages"][0]
        return request.varied(messages=[{**message, "content": f"No. {number}: {message['content']}"}])

    def request(self, max_tokens, sampled=0.0, kind=None, **members):
        """`sampled`: the share of requests with a temperature of 0.8 and a seed; the others are greedy. `max_tokens` may be a
        range."""
        kind = kind or self.random.choices(list(self.mix), list(self.mix.values()))[0]
        if not isinstance(max_tokens, int):
            max_tokens = self.random.randint(*max_tokens)
        body = {"messages": [{"role": "user", "content": self.prompt(kind)}], "max_tokens": max_tokens, "temperature": 0.0,
                "stream": True, "stream_options": {"include_usage": True}}
        if self.random.random() < sampled:
            body |= {"temperature": 0.8, "top_p": 0.95, "seed": self.random.randrange(2**31)}
        return Request(kind, body | members)
