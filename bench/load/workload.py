"""Random requests whose answers are known to be one and the same, however often and in whatever company they are asked for."""

import asyncio
import collections
import dataclasses

import drive
from answers import read_answer
from http_client import ask

STOPS = (["\n\n"], ["the", "."], ["e"])
SCHEMA = {"type": "json_schema", "json_schema": {"name": "item", "schema": {
    "type": "object", "properties": {"name": {"type": "string", "maxLength": 12}, "count": {"type": "integer"}},
    "required": ["name", "count"], "additionalProperties": False}}}


def vary(request, random):
    """Adds what requests may ask for."""
    members = {"use_diffusion_mode": random.random() < 0.75}
    chance = random.random()
    if chance < 0.15:
        members = {"consensus": random.choice(["kl", "rejection"]), "draft_max": random.randint(1, 7),
                   "use_diffusion_mode": True}
    elif chance < 0.35:
        members["draft_max"] = random.randint(0, 7)
    if random.random() < 0.2:
        members["ignore_eos"] = True
    if random.random() < 0.15:
        members["stop"] = random.choice(STOPS)
    if random.random() < 0.15:
        members |= {"logprobs": True, "top_logprobs": random.randint(0, 3)}
    if random.random() < 0.15:
        members |= {"frequency_penalty": 0.5, "repetition_penalty": 1.1}
    if random.random() < 0.1:
        members["response_format"] = SCHEMA
    if random.random() < 0.2:
        members |= {"stream": False, "stream_options": None}
    return request.varied(**members)


def make_pool(source, count, max_tokens):
    """`count` different requests; a third of them are sampled."""
    return [vary(source.request(max_tokens, sampled=0.34), source.random) for _ in range(count)]


def alone(request):
    """The same, as it is asked for in order to compare: in plain AR, where that must write the same."""
    if request.body.get("consensus", "exact") != "exact":
        return request
    return request.varied(use_diffusion_mode=False)


def signature(answer):
    """What must be the same each time."""
    return answer.text, answer.finish_reason, answer.tokens, tuple(answer.token_ids)


@dataclasses.dataclass
class Tally:
    """What became of requests."""

    sent: int = 0
    finished: int = 0
    cancelled: int = 0
    tokens: int = 0  # of finished answers
    prompt_tokens: int = 0
    cancelled_tokens: int = 0  # that we heard of
    cancelled_most: int = 0  # that could have been written
    drafted: int = 0
    accepted: int = 0
    errors: list = dataclasses.field(default_factory=list)
    seen: dict = dataclasses.field(default_factory=lambda: collections.defaultdict(collections.Counter))  # index: signatures

    def add(self, index, request, answer):
        self.sent += 1
        if answer.error:
            self.errors.append(f"request {index}: {answer.error}")
        elif answer.cancelled:
            self.cancelled += 1
            self.cancelled_tokens += sum(step[1] for step in answer.steps)
            self.cancelled_most += request.body["max_tokens"]
        else:
            self.finished += 1
            self.tokens += answer.tokens
            self.prompt_tokens += answer.prompt_tokens
            self.drafted += answer.drafted
            self.accepted += answer.accepted
            self.seen[index][signature(answer)] += 1


async def client(address, pool, random, tally, more, cancels=0.2, among=None):
    """One after the other as long as more() says so; a share of them is cut off somewhere. `among`: the indices to choose
    from, all where it is None."""
    while more():
        index = random.choice(among or range(len(pool)))
        cut = {}
        if random.random() < cancels:
            cut = {"cancel_after": random.randint(1, 8)}
            if random.random() < 0.5:
                cut = {"cancel_seconds": random.uniform(0.001, 1.0)}
        exchange = await ask(address, "POST", drive.CHAT, pool[index].body, **cut)
        tally.add(index, pool[index], read_answer(exchange))
        await asyncio.sleep(random.choice((0.0, 0.0, random.uniform(0, 0.2))))


async def compare_alone(address, pool, tally):
    """Asks for every request that has finished once more, alone. (answers compared, differences as text)"""
    compared, differences = 0, []
    for index, signatures in sorted(tally.seen.items()):
        answer = read_answer(await ask(address, "POST", drive.CHAT, alone(pool[index]).body))
        if not answer.finished():
            differences.append(f"request {index} fails alone: {answer.error}")
            continue
        for found, count in signatures.items():
            compared += count
            if found != signature(answer):
                differences.append(f"request {index}, {count} times: {found!r}, alone {signature(answer)!r}: {pool[index].body}")
    return compared, differences
