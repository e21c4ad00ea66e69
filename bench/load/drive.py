"""Sends requests, as a fixed number of clients or at random moments."""

import asyncio
import dataclasses

from answers import read_answer
from http_client import ask, now

CHAT = "/v1/chat/completions"


@dataclasses.dataclass
class Run:
    """Exchanges in the order of their requests; times in seconds of now()."""

    began: float
    ended: float
    busy_until: float  # when the first client had nothing left to ask
    answers: list

    def seconds(self):
        return self.ended - self.began

    def busy_tokens_per_second(self):
        """Tokens that came while every client was busy, a second."""
        tokens = sum(step[1] for answer in self.answers for step in answer.steps if step[0] <= self.busy_until)
        return tokens / (self.busy_until - self.began)


def _run(began, busy_until, requests, exchanges):
    ended = max((exchange.ended for exchange in exchanges), default=began)
    return Run(began, ended, busy_until,
               [read_answer(exchange, request.kind) for request, exchange in zip(requests, exchanges)])


async def closed_loop(address, requests, clients):
    """`clients` at once: each asks for the next one when its answer has ended."""
    exchanges = [None] * len(requests)
    left = iter(range(len(requests)))
    began, busy_until = now(), []

    async def client():
        for index in left:
            exchanges[index] = await ask(address, "POST", CHAT, requests[index].body)
        busy_until.append(now())

    await asyncio.gather(*(client() for _ in range(clients)))
    return _run(began, min(busy_until), requests, exchanges)


async def open_loop(address, requests, rate, random):
    """Poisson arrivals, `rate` a second, whatever became of those before."""
    began = now()
    tasks, due = [], began
    for request in requests:
        due += random.expovariate(rate)
        await asyncio.sleep(max(0.0, due - now()))
        tasks.append(asyncio.ensure_future(ask(address, "POST", CHAT, request.body)))
    last_arrival = now()
    exchanges = await asyncio.gather(*tasks)
    return _run(began, last_arrival, requests, exchanges)


async def all_at_once(address, requests):
    return await closed_loop(address, requests, len(requests))
