"""The server's /metrics: its values, and their course over time."""

import asyncio

from http_client import fetch, now


def parse(text):
    """{name with its labels as printed: value}"""
    values = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            values[name] = float(value)
    return values


def total(values, name, **labels):
    """The sum of a metric's values, of those with these labels."""
    wanted = [f'{key}="{value}"' for key, value in labels.items()]
    return sum(value for key, value in values.items()
               if key.partition("{")[0] == name and all(label in key for label in wanted))


async def read(address):
    return parse(await fetch(address, "/metrics"))


def held(values):
    """What the server holds according to /metrics; [] when nobody asks for anything, as it should be."""
    found = [f"{state} requests: {n:.0f}" for state in ("waiting", "prefilling", "decoding")
             if (n := total(values, "orthrus_requests", state=state))]
    if blocks := total(values, "orthrus_kv_blocks", state="in_use"):
        found.append(f"KV blocks in use: {blocks:.0f}")
    if (connections := values["orthrus_http_connections"]) > 1:  # that of this question
        found.append(f"connections: {connections:.0f}")
    return found


async def at_rest(address, seconds=15):
    """/metrics as soon as nothing is held any more, or after this time."""
    end = now() + seconds
    while held(values := await read(address)) and now() < end:
        await asyncio.sleep(0.2)
    return values


class Course:
    """Samples in the background, as an async context manager: `samples` has (seconds since its begin, what `take` said), but for None."""

    def __init__(self, interval, take):
        self.interval, self.take, self.samples = interval, take, []

    async def _sample(self):
        while True:
            time, sample = now() - self.began, await self.take()
            if sample is not None:
                self.samples.append((time, sample))
            await asyncio.sleep(self.interval)

    async def __aenter__(self):
        self.began = now()
        self.task = asyncio.ensure_future(self._sample())
        return self

    async def __aexit__(self, *_):
        self.task.cancel()
        try:
            await self.task
        except asyncio.CancelledError:
            pass


def scheduler_course(address, interval):
    """What the scheduler does: requests by state, batch, share of the KV budget in use."""

    async def take():
        values = await read(address)
        states = {state: int(total(values, "orthrus_requests", state=state)) for state in ("waiting", "prefilling", "decoding")}
        return {**states, "batch": int(values.get("orthrus_batch_size", 0)),
                "kv_utilization": values.get("orthrus_kv_utilization", 0.0),
                "preemptions": int(values.get("orthrus_preemptions_total", 0))}

    return Course(interval, take)
