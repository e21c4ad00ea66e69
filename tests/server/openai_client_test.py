"""The server as the `openai` package and LangChain's ChatOpenAI use it, unchanged but for the address.

Usage: openai_client_test.py BINARY SOURCE_ROOT [unittest arguments], with the Python of .venv. The demo model must have been
pulled (`make test` does both)."""

import asyncio
import concurrent.futures
import contextlib
import io
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import time
import unittest

os.environ["LANGSMITH_TRACING"] = "false"
import jsonschema
import langchain_openai
import openai
import pydantic

import serving

BINARY, ROOT = sys.argv[1:3]
QUESTION = [{"role": "user", "content": "Tom has 3 apples and buys 4 more. How many?"}]
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 150},
                   "pets": {"type": "array", "items": {"enum": ["cat", "dog"]}, "maxItems": 3}},
    "required": ["name", "age", "pets"], "additionalProperties": False}
TOOLS = [{"type": "function", "function": {
    "name": name, "description": "Finds it.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 12}}, "required": ["city"],
                   "additionalProperties": False}}}
    for name in ("get_weather", "get_time")]
# One that tells the model of tools, as the small checkpoint's own does not.
TEMPLATE = """{% if tools %}<|im_start|>system
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<|im_end|>
{% endif %}{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}{% for call in message.tool_calls %}<tool_call>{{ call.function | tojson }}</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def client_of(server, **more):
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="unused", max_retries=0, timeout=120, **more)


def setUpModule():
    global SMALL, CLIENT
    folder = pathlib.Path(unittest.enterModuleContext(tempfile.TemporaryDirectory()))
    checkpoint = folder / "small"
    shutil.copytree(serving.tiny(ROOT), checkpoint)
    (checkpoint / "chat_template.jinja").write_text(TEMPLATE)
    SMALL = unittest.enterModuleContext(serving.server(BINARY, ROOT, model=checkpoint))
    CLIENT = client_of(SMALL)


def chat(messages=QUESTION, **more):
    return CLIENT.chat.completions.create(model="small", messages=messages, **{"max_tokens": 24, "temperature": 0, **more})


def complete(prompt="Tom has 3 apples", **more):
    return CLIENT.completions.create(model="small", prompt=prompt, **{"max_tokens": 24, "temperature": 0, **more})


def text_of(stream, index=0):
    return "".join(choice.delta.content or "" for chunk in stream for choice in chunk.choices if choice.index == index)


class Chat(unittest.TestCase):
    def test_models(self):
        self.assertEqual([model.id for model in CLIENT.models.list()], ["small"])
        self.assertEqual(CLIENT.models.retrieve("small").id, "small")

    def test_an_answer_and_its_usage(self):
        answer = chat(extra_body={"draft_max": 7})
        choice, usage = answer.choices[0], answer.usage
        self.assertEqual((answer.object, answer.model, choice.message.role), ("chat.completion", "small", "assistant"))
        self.assertTrue(choice.message.content)
        self.assertEqual(choice.finish_reason, "length")
        self.assertEqual((usage.completion_tokens, usage.total_tokens), (24, usage.prompt_tokens + 24))
        self.assertGreater(usage.completion_tokens_details.accepted_prediction_tokens, 0)
        self.assertGreater(usage.completion_tokens_details.rejected_prediction_tokens, 0)
        self.assertTrue(answer._request_id.startswith("req-"))
        self.assertAlmostEqual(answer.created, time.time(), delta=60)
        self.assertEqual(chat(max_tokens=openai.omit, max_completion_tokens=5).usage.completion_tokens, 5)

    def test_a_stream_is_the_answer_in_pieces(self):
        for n in (1, 3):
            whole = chat(n=n, seed=5, temperature=1, extra_body={"draft_max": 7})
            chunks = list(chat(n=n, seed=5, temperature=1, stream=True, stream_options={"include_usage": True},
                               extra_body={"draft_max": 7}))
            self.assertEqual(chunks[-1].choices, [])
            self.assertEqual(chunks[-1].usage.completion_tokens, whole.usage.completion_tokens)
            self.assertTrue(all(chunk.usage is None for chunk in chunks[:-1]))
            self.assertEqual(len({chunk.id for chunk in chunks}), 1)
            for i in range(n):
                self.assertEqual(text_of(chunks, i), whole.choices[i].message.content)
                ends = [c.finish_reason for chunk in chunks for c in chunk.choices if c.index == i and c.finish_reason]
                self.assertEqual(ends, [whole.choices[i].finish_reason])
            self.assertEqual(len({choice.message.content for choice in whole.choices}), n)
        self.assertTrue(all(chunk.usage is None for chunk in chat(stream=True)))

    def test_the_view_does_not_change_the_text(self):
        for sampling in ({"temperature": 0}, {"temperature": 0.9, "seed": 11, "top_p": 0.9, "presence_penalty": 0.5}):
            texts = {chat(**sampling, max_tokens=60, extra_body=extra).choices[0].message.content
                     for extra in ({"use_diffusion_mode": False}, {"draft_max": 7}, {"draft_max": 2}, {})}
            self.assertEqual(len(texts), 1)
        plain = chat(extra_body={"use_diffusion_mode": False}).usage.completion_tokens_details
        self.assertEqual((plain.accepted_prediction_tokens, plain.rejected_prediction_tokens), (0, 0))

    def test_seeds(self):
        def drawn(seed):
            return chat(temperature=1, seed=seed).choices[0].message.content
        self.assertEqual(drawn(1), drawn(1))
        self.assertEqual(len({drawn(seed) for seed in range(1, 6)}), 5)
        self.assertGreater(len({chat(temperature=1).choices[0].message.content for _ in range(5)}), 1)

    def test_stops_across_the_borders_of_tokens_and_chunks(self):
        text = chat().choices[0].message.content
        for begin in range(3, 20, 4):
            stop = text[begin:begin + 5]
            expected = text[:text.find(stop)]
            for extra in ({"draft_max": 7}, {"use_diffusion_mode": False}):
                answer = chat(stop=["never", stop], extra_body=extra).choices[0]
                self.assertEqual((answer.message.content, answer.finish_reason), (expected, "stop"))
                self.assertEqual(text_of(chat(stop=stop, stream=True, extra_body=extra)), expected)

    def test_logprobs(self):
        answer = chat(logprobs=True, top_logprobs=3, extra_body={"draft_max": 7})
        tokens = answer.choices[0].logprobs.content
        self.assertEqual("".join(token.token for token in tokens), answer.choices[0].message.content)
        self.assertEqual(b"".join(bytes(token.bytes) for token in tokens).decode(), answer.choices[0].message.content)
        for token in tokens:  # greedy: the chosen one is the best one
            self.assertEqual(len(token.top_logprobs), 3)
            self.assertEqual((token.top_logprobs[0].token, token.top_logprobs[0].logprob), (token.token, token.logprob))
            self.assertGreaterEqual(token.top_logprobs[0].logprob, token.top_logprobs[1].logprob)
        plain = chat(logprobs=True, extra_body={"use_diffusion_mode": False}).choices[0].logprobs.content
        for drafted, stepped in zip(tokens, plain, strict=True):
            self.assertAlmostEqual(drafted.logprob, stepped.logprob, places=5)
        streamed = [token for chunk in chat(logprobs=True, stream=True, extra_body={"draft_max": 7})
                    for choice in chunk.choices if choice.logprobs for token in choice.logprobs.content]
        self.assertEqual([token.logprob for token in streamed], [token.logprob for token in tokens])

    def test_logit_bias(self):
        first = serving.fetch(f"{SMALL.url}/tokenize", {"content": "Z"})[2]["tokens"][0]
        self.assertEqual(chat(logit_bias={str(first): 100}, max_tokens=3).choices[0].message.content, "ZZZ")
        text = chat(logprobs=True, max_tokens=1)
        token = serving.fetch(f"{SMALL.url}/tokenize", {"content": text.choices[0].message.content})[2]["tokens"][0]
        self.assertNotEqual(chat(logit_bias={token: -100}, max_tokens=1).choices[0].message.content,
                            text.choices[0].message.content)

    def test_parts_roles_and_names(self):
        parts = [{"type": "text", "text": "Tom has 3 apples"}, {"type": "text", "text": "and buys 4 more."}]
        messages = [{"role": "developer", "content": "Count."}, {"role": "user", "content": parts, "name": "Ann"}]
        plain = [{"role": "system", "content": "Count."}, {"role": "user", "content": "Tom has 3 apples\nand buys 4 more."}]
        self.assertEqual(chat(messages).choices[0].message.content, chat(plain).choices[0].message.content)

    def test_the_second_turn_reads_only_what_is_new(self):
        messages = [{"role": "user", "content": "Tom has 3 apples. " * 30}]
        first = chat(messages)
        before = serving.metrics(SMALL.url)
        messages += [{"role": "assistant", "content": first.choices[0].message.content}, {"role": "user", "content": "And then?"}]
        usage = chat(messages).usage
        now = serving.metrics(SMALL.url)
        cached = usage.prompt_tokens_details.cached_tokens
        # All but the last, unfinished block (64 tokens) of the first turn.
        self.assertGreater(cached, first.usage.prompt_tokens + first.usage.completion_tokens - 64)
        self.assertEqual(now["orthrus_cached_prompt_tokens_total"] - before["orthrus_cached_prompt_tokens_total"], cached)
        self.assertEqual(now["orthrus_prompt_tokens_total"] - before["orthrus_prompt_tokens_total"], usage.prompt_tokens)
        self.assertEqual(now["orthrus_prefix_hits_total"] - before["orthrus_prefix_hits_total"], 1)

    def test_many_at_once_say_what_each_says_alone(self):
        def ask(i):
            return chat([{"role": "user", "content": f"Tom has {i} apples."}], temperature=i % 2, seed=i).choices[0].message.content
        alone = [ask(i) for i in range(12)]
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            self.assertEqual(list(pool.map(ask, range(12))), alone)

    def test_the_asynchronous_client_can_leave_a_stream(self):
        async def leave():
            async with openai.AsyncOpenAI(base_url=f"{SMALL.url}/v1", api_key="unused") as client:
                stream = await client.chat.completions.create(
                    model="small", messages=QUESTION, stream=True, n=16, max_tokens=900, extra_body={"ignore_eos": True})
                async for _ in stream:
                    break
                await stream.close()
        asyncio.run(leave())
        end = time.monotonic() + 5
        cancelled = 'orthrus_requests_total{endpoint="/v1/chat/completions",outcome="cancelled"}'
        while serving.metrics(SMALL.url).get(cancelled) != 16:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)


class Forms(unittest.TestCase):
    """Answers of a given form."""

    def test_json_schema(self):
        format = {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": PERSON}}
        for seed in range(4):
            for extra in ({"draft_max": 7}, {"use_diffusion_mode": False}):
                answer = chat(response_format=format, temperature=seed / 2, seed=seed, max_tokens=300, extra_body=extra)
                self.assertEqual(answer.choices[0].finish_reason, "stop")
                jsonschema.validate(json.loads(answer.choices[0].message.content), PERSON)
        streamed = text_of(chat(response_format=format, temperature=1.5, seed=3, max_tokens=300, stream=True))
        self.assertEqual(streamed, answer.choices[0].message.content)

    def test_a_pydantic_class(self):
        class Person(pydantic.BaseModel):
            age: int
            likes_cats: bool
        parsed = CLIENT.chat.completions.parse(model="small", messages=QUESTION, response_format=Person, temperature=0, max_tokens=300)
        self.assertIsInstance(parsed.choices[0].message.parsed, Person)

    def test_json_object(self):
        stop = {"type": "json_object"}
        answer = chat(response_format=stop, max_tokens=400, logit_bias={self.token("}"): 20})
        self.assertEqual(answer.choices[0].finish_reason, "stop")
        self.assertIsInstance(json.loads(answer.choices[0].message.content), dict)

    def token(self, text):
        return serving.fetch(f"{SMALL.url}/tokenize", {"content": text})[2]["tokens"][0]

    def test_gbnf(self):
        answer = chat(extra_body={"grammar": 'root ::= ("yes" | "no") " "? [0-9]{3}', "draft_max": 7})
        self.assertRegex(answer.choices[0].message.content, r"^(yes|no) ?\d{3}$")

    def test_schemas_that_cannot_be_kept_are_refused_by_keyword(self):
        for schema, keyword in (({"type": "string", "format": "idn-email"}, "idn-email"), ({"not": {}}, "not"),
                                ({"type": "thing"}, "#/properties/a")):
            with self.assertRaises(openai.BadRequestError) as caught:
                chat(response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": {
                    "type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False}}})
            self.assertIn(keyword, caught.exception.message)


class Tools(unittest.TestCase):
    def ask(self, **more):
        return chat(tools=TOOLS, max_tokens=400, **more)

    def test_a_call_that_is_required(self):
        for choice, names in (("required", {"get_weather", "get_time"}),
                              ({"type": "function", "function": {"name": "get_time"}}, {"get_time"})):
            answer = self.ask(tool_choice=choice, parallel_tool_calls=False).choices[0]
            self.assertEqual((answer.finish_reason, answer.message.content), ("tool_calls", None))
            call, = answer.message.tool_calls
            self.assertIn(call.function.name, names)
            self.assertIsInstance(json.loads(call.function.arguments), dict)
            name, arguments, ids, ends = "", "", [], []
            for chunk in self.ask(tool_choice=choice, parallel_tool_calls=False, stream=True):
                for piece in chunk.choices[0].delta.tool_calls or []:
                    self.assertEqual(piece.index, 0)
                    name += piece.function.name or ""
                    arguments += piece.function.arguments or ""
                    ids += [piece.id] if piece.id else []
                ends += [chunk.choices[0].finish_reason] if chunk.choices[0].finish_reason else []
            self.assertEqual((name, arguments, ends), (call.function.name, call.function.arguments, ["tool_calls"]))
            self.assertEqual(len(ids), 1)

    def test_the_model_hears_of_tools_unless_told_not_to(self):
        self.assertGreater(self.ask().usage.prompt_tokens, chat().usage.prompt_tokens + 50)
        self.assertEqual(self.ask(tool_choice="none").usage.prompt_tokens, chat().usage.prompt_tokens)
        self.assertIsNone(self.ask(tool_choice="auto").choices[0].message.tool_calls)

    def test_calls_and_their_results_go_back(self):
        call = self.ask(tool_choice="required", parallel_tool_calls=False).choices[0].message
        messages = [*QUESTION, call, {"role": "tool", "tool_call_id": call.tool_calls[0].id, "content": "7"}]
        self.assertTrue(chat(messages, tools=TOOLS).choices[0].message.content)


class Completions(unittest.TestCase):
    def test_prompts_of_every_kind(self):
        ids = serving.fetch(f"{SMALL.url}/tokenize", {"content": "Tom has 3 apples"})[2]["tokens"]
        text = complete().choices[0].text
        self.assertEqual(complete(ids).choices[0].text, text)
        many = complete(["Tom has 3 apples", "Ann has"], n=2)
        self.assertEqual([choice.index for choice in many.choices], [0, 1, 2, 3])
        self.assertEqual(many.choices[0].text, text)
        self.assertEqual(complete([ids, ids[:2]]).choices[0].text, text)
        self.assertEqual("".join(chunk.choices[0].text for chunk in complete(stream=True)), text)
        self.assertEqual(complete(max_tokens=openai.omit, extra_body={"ignore_eos": True}).usage.completion_tokens, 16)

    def test_scores_of_a_prompt_as_lm_eval_asks_for_them(self):
        ids = serving.fetch(f"{SMALL.url}/tokenize", {"content": "Tom has 3 apples and buys 4 more."})[2]["tokens"]
        for most in (0, 1):
            answer = complete([ids, ids[:5]], echo=True, logprobs=1, max_tokens=most)
            for choice, prompt in zip(answer.choices, (ids, ids[:5]), strict=True):
                scores = choice.logprobs
                self.assertEqual(len(scores.tokens), len(prompt) + most)
                self.assertIsNone(scores.token_logprobs[0])
                self.assertEqual("".join(scores.tokens), choice.text)
                self.assertEqual([choice.text[a:].startswith(t) for a, t in zip(scores.text_offset, scores.tokens)],
                                 [True] * len(scores.tokens))
                for token, score, top in list(zip(scores.tokens, scores.token_logprobs, scores.top_logprobs))[1:]:
                    self.assertLessEqual(score, max(top.values()))
                    self.assertEqual(top[token], score)
            self.assertEqual(answer.usage.completion_tokens, most * 2)
        # What follows a text scores as it does when it is generated.
        text = complete(ids, logprobs=0, max_tokens=6)
        more = complete(ids + serving.fetch(f"{SMALL.url}/tokenize", {"content": text.choices[0].text})[2]["tokens"],
                        echo=True, logprobs=0, max_tokens=0).choices[0].logprobs
        self.assertEqual(more.tokens[len(ids):], text.choices[0].logprobs.tokens)
        for scored, generated in zip(more.token_logprobs[len(ids):], text.choices[0].logprobs.token_logprobs, strict=True):
            self.assertAlmostEqual(scored, generated, places=4)


class Errors(unittest.TestCase):
    def raises(self, kind, call, code=None):
        with self.assertRaises(kind) as caught:
            call()
        self.assertEqual(caught.exception.code, code)
        return caught.exception

    def test_wrong_requests(self):
        error = self.raises(openai.BadRequestError, lambda: chat(extra_body={"max_length": 3}), "unknown_parameter")
        self.assertEqual((error.param, error.type), ("max_length", "invalid_request_error"))
        self.assertEqual(self.raises(openai.BadRequestError, lambda: chat(temperature=-1), "invalid_value").param, "temperature")
        self.raises(openai.BadRequestError, lambda: chat([{"role": "user", "content": "x " * 3000}]), "context_length_exceeded")
        self.raises(openai.NotFoundError, lambda: CLIENT.models.retrieve("gpt-4o"), "model_not_found")
        self.raises(openai.NotFoundError, lambda: CLIENT.chat.completions.create(model="gpt-4o", messages=QUESTION), "model_not_found")
        self.raises(openai.NotFoundError, lambda: CLIENT.embeddings.create(model="small", input="x"), "unsupported_endpoint")
        self.raises(openai.NotFoundError, lambda: CLIENT.responses.create(model="small", input="x"), "unsupported_endpoint")

    def test_keys_the_queue_and_the_time(self):
        with serving.server(BINARY, ROOT, "--api-key", "right", "-np", "1", "--max-queue", "255", "--request-timeout", "1",
                            alias="small") as server:
            right, wrong = (openai.OpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0) for key in ("right", "wrong"))
            self.raises(openai.AuthenticationError, wrong.models.list, "invalid_api_key")
            self.assertEqual(right.models.list().data[0].id, "small")
            # As many answers as there are places, and many seconds of work.
            long = {"model": "small", "prompt": ["Tom has 3 apples."] * 16, "n": 16, "max_tokens": 900,
                    "extra_body": {"ignore_eos": True}}
            with right.completions.create(**long, stream=True):
                error = self.raises(openai.RateLimitError, lambda: right.chat.completions.create(model="small", messages=QUESTION),
                                    "queue_full")
                self.assertGreaterEqual(int(error.response.headers["retry-after"]), 1)
            # A client that may try again comes through.
            again = right.with_options(max_retries=5).chat.completions.create(model="small", messages=QUESTION, max_tokens=3)
            self.assertEqual(again.usage.completion_tokens, 3)
            self.assertEqual(self.raises(openai.InternalServerError, lambda: right.completions.create(**long), "timeout")
                             .status_code, 504)
            with self.assertRaises(openai.APIError):
                list(right.completions.create(**long, stream=True))


class LangChain(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = langchain_openai.ChatOpenAI(base_url=f"{SMALL.url}/v1", api_key="unused", model="small", temperature=0,
                                                max_tokens=300, max_retries=0)

    def test_invoke_and_stream(self):
        answer = self.model.invoke([("system", "Count."), ("human", QUESTION[0]["content"])], max_tokens=24)
        self.assertTrue(answer.content)
        self.assertEqual(answer.usage_metadata["output_tokens"], 24)
        pieces = list(self.model.stream([("system", "Count."), ("human", QUESTION[0]["content"])], max_tokens=24))
        self.assertGreater(len(pieces), 3)
        self.assertEqual("".join(piece.content for piece in pieces), answer.content)

    def test_structured_output(self):
        class Person(pydantic.BaseModel):
            """A person."""
            age: int
            likes_cats: bool
        self.assertIsInstance(self.model.with_structured_output(Person).invoke("Describe Tom."), Person)

    def test_tools(self):
        bound = self.model.bind_tools([tool["function"] for tool in TOOLS], tool_choice="get_time")
        answer = bound.invoke("What time is it?")
        self.assertEqual([call["name"] for call in answer.tool_calls + answer.invalid_tool_calls], ["get_time"])
        gathered = None
        for piece in bound.stream("What time is it?"):
            gathered = piece if gathered is None else gathered + piece
        self.assertEqual([(call["name"], call["args"]) for call in gathered.tool_calls],
                         [(call["name"], call["args"]) for call in answer.tool_calls])


class DemoModel(unittest.TestCase):
    """The model that the README's reader has."""

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(serving.server(BINARY, ROOT, model=serving.DEMO))
        cls.client = client_of(cls.server)

    def ask(self, messages, **more):
        return self.client.chat.completions.create(model=serving.DEMO, messages=messages, temperature=0, **more)

    def test_a_conversation(self):
        messages = [{"role": "user", "content": "Why is the sky blue? " * 12}]
        first = self.ask(messages, max_tokens=20, extra_body={"draft_max": 7})
        plain = self.ask(messages, max_tokens=20, extra_body={"use_diffusion_mode": False})
        self.assertEqual(first.choices[0].message.content, plain.choices[0].message.content)
        self.assertGreater(first.usage.completion_tokens_details.accepted_prediction_tokens, 0)
        self.assertGreaterEqual(plain.usage.prompt_tokens_details.cached_tokens, 64)
        messages += [first.choices[0].message.model_dump(include={"role", "content"}), {"role": "user", "content": "Go on."}]
        usage = self.ask(messages, max_tokens=3).usage
        self.assertGreater(usage.prompt_tokens_details.cached_tokens, first.usage.total_tokens - 64)

    def test_the_programs_of_the_documentation(self):
        text = (pathlib.Path(ROOT) / "docs/serving.md").read_text()
        programs = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
        self.assertEqual(len(programs), 2)
        for program in programs:
            self.assertIn("http://localhost:8080", program)
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                exec(program.replace("http://localhost:8080", self.server.url), {"__name__": "documentation"})
            self.assertGreater(len(said.getvalue()), 40)

    def test_a_schema(self):
        format = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}
        answer = self.ask([{"role": "user", "content": "Describe a man called Bob."}], max_tokens=100, response_format=format)
        jsonschema.validate(json.loads(answer.choices[0].message.content), PERSON)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
