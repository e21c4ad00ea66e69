"""What the exchanges with the server mean."""

import bisect
import dataclasses
import json


class Malformed(ValueError):
    """A reply that no server should send."""


@dataclasses.dataclass
class Answer:
    """The answer to one request; times in seconds of http_client.now()."""

    kind: str = ""  # of its prompt
    status: int = 0
    error: str = ""  # "" where it finished, or where we cancelled it
    cancelled: bool = False
    began: float = 0.0
    ended: float = 0.0
    text: str = ""
    token_ids: list = dataclasses.field(default_factory=list)  # where "logprobs" were asked for: (token, logprob)
    finish_reason: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    tokens: int = 0
    cycles: int = 0
    drafted: int = 0
    accepted: int = 0
    steps: list = dataclasses.field(default_factory=list)  # (time, tokens, cycles) of events that brought text

    def finished(self):
        return not self.error and not self.cancelled

    def first_token_seconds(self):
        """None where none came."""
        return self.steps[0][0] - self.began if self.steps else None

    def token_gaps(self):
        """Seconds between two events over the tokens of the later one, once a token."""
        gaps = []
        for (before, _, _), (time, tokens, _) in zip(self.steps, self.steps[1:]):
            gaps += [(time - before) / max(1, tokens)] * tokens
        return gaps

    def step_gaps(self):
        """(time, seconds a cycle) of each event but the first."""
        return [(time, (time - before) / max(1, cycles))
                for (before, _, _), (time, _, cycles) in zip(self.steps, self.steps[1:])]

    def mean_token_seconds(self):
        """Between the first token and the last; None where there are not two."""
        tokens = sum(step[1] for step in self.steps[1:])
        return (self.steps[-1][0] - self.steps[0][0]) / tokens if tokens else None


def payload(exchange):
    """(time, bytes) of the parts of a reply's body. Malformed where a chunked one is not whole."""
    raw = exchange.raw()
    end = raw.find(b"\r\n\r\n")
    if end < 0:
        return []
    arrivals, offset = [], 0
    for time, data in exchange.reads:
        offset += len(data)
        arrivals.append((offset, time))

    def when(position):
        return arrivals[bisect.bisect_left(arrivals, (position, 0.0))][1]

    if b"transfer-encoding: chunked" not in raw[:end].lower():
        return [(exchange.reads[-1][0], raw[end + 4:])] if len(raw) > end + 4 else []
    parts, at = [], end + 4
    while at < len(raw):
        line = raw.find(b"\r\n", at)
        if line < 0:
            break
        size = int(raw[at:line], 16)
        if size == 0:
            return parts
        if line + 2 + size > len(raw):
            break
        parts.append((when(line + 2 + size), raw[line + 2:line + 2 + size]))
        at = line + 4 + size
    if exchange.cancelled:
        return parts
    raise Malformed("the reply ends within its chunks")


def events(exchange):
    """(time, data) of the events of a stream."""
    pending = b""
    for time, part in payload(exchange):
        pending += part
        *whole, pending = pending.split(b"\n\n")
        for event in whole:
            if event.startswith(b"data: "):
                yield time, event[6:].decode()
    if pending and not exchange.cancelled:
        raise Malformed("the stream ends within an event")


def error_text(body):
    try:
        error = json.loads(body)["error"]
        return f"{error['type']}: {error['message']}"
    except (ValueError, KeyError, TypeError):
        return f"not an error of OpenAI's form: {body[:200]!r}"


def _read_usage(answer, usage):
    answer.prompt_tokens = usage["prompt_tokens"]
    answer.cached_tokens = usage["prompt_tokens_details"]["cached_tokens"]
    answer.tokens = usage["completion_tokens"]
    details = usage["completion_tokens_details"]
    answer.accepted = details["accepted_prediction_tokens"]
    answer.drafted = details["rejected_prediction_tokens"] + answer.accepted


def _read_choice(answer, choice):
    said = choice.get("delta") or choice.get("message") or choice
    answer.text += (said.get("reasoning_content") or "") + (said.get("content") or said.get("text") or "")
    logprobs = choice.get("logprobs")
    if logprobs and "content" in logprobs:
        answer.token_ids += [(entry["token"], entry["logprob"]) for entry in logprobs["content"]]
    answer.finish_reason = choice.get("finish_reason") or answer.finish_reason


def _read_stream(answer, exchange):
    done = False
    for time, data in events(exchange):
        if data == "[DONE]":
            done = True
            continue
        event = json.loads(data)
        if "error" in event:
            answer.error = error_text(data)
            continue
        for choice in event["choices"]:
            _read_choice(answer, choice)
        cycles = event.get("orthrus", {}).get("cycles", [])
        if cycles:
            answer.steps.append((time, sum(cycles), len(cycles)))
        answer.cycles = event.get("timings", {}).get("cycles", answer.cycles)
        if event.get("usage"):
            _read_usage(answer, event["usage"])
    if not done and not answer.error and not exchange.cancelled:
        answer.error = "the stream ended without [DONE]"


def read_answer(exchange, kind=""):
    """The answer to a chat or completion with one choice."""
    answer = Answer(kind, exchange.status(), exchange.failure, exchange.cancelled, exchange.began, exchange.ended)
    if answer.error or (answer.cancelled and not exchange.reads):
        return answer
    if not exchange.reads:
        answer.error = "closed without a reply"
        return answer
    try:
        if answer.status == 200 and b"text/event-stream" in exchange.raw()[:1024]:
            _read_stream(answer, exchange)
        elif not exchange.cancelled:
            body = b"".join(part for _, part in payload(exchange))
            if answer.status != 200:
                answer.error = f"status {answer.status}: {error_text(body)}"
            else:
                whole = json.loads(body)
                _read_choice(answer, whole["choices"][0])
                _read_usage(answer, whole["usage"])
                answer.cycles = whole["timings"]["cycles"]
    except (ValueError, KeyError, IndexError, TypeError) as error:
        answer.error = f"malformed reply: {type(error).__name__}: {error}"
    return answer
