"""`orthrus serve` as a process: its states, its end, its limits, and what clients do to it.

Usage: serve_test.py BINARY SOURCE_ROOT [unittest arguments]. The demo model must have been pulled (`make test` does)."""

import contextlib
import http.client
import json
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import serving
from serving import fetch, metrics

BINARY, ROOT = sys.argv[1:3]
CHAT = {"messages": [{"role": "user", "content": "Tom has 3 apples."}], "max_tokens": 8}
# Seconds of work for the small checkpoint, so that something happens in the middle of it.
LONG = {"prompt": ["Tom has 3 apples."] * 48, "max_tokens": 900, "ignore_eos": True}
STATES = [f'orthrus_requests{{state="{state}"}}' for state in ("waiting", "prefilling", "decoding")]


def serve(*flags, **more):
    return serving.server(BINARY, ROOT, *flags, **more)


def under_way(url, **more):
    now = metrics(url, **more)
    return sum(now[state] for state in STATES)


def ended(url, outcome, endpoint="/v1/completions", **more):
    return metrics(url, **more).get(f'orthrus_requests_total{{endpoint="{endpoint}",outcome="{outcome}"}}', 0)


def eventually(condition, what, seconds=30):
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.01)
    return value


class Stream:
    """A streamed answer that has begun."""

    def __init__(self, url, body=LONG, headers=None):
        self.connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=120)
        self.connection.request("POST", "/v1/completions", json.dumps({**body, "stream": True}),
                                {"Content-Type": "application/json", **(headers or {})})
        self.answer = self.connection.getresponse()
        self.first = self.answer.readline()

    def rest(self):
        try:
            return self.answer.read().decode()
        finally:
            self.leave()

    def leave(self):
        self.answer.close()
        self.connection.close()


class Ready(unittest.TestCase):
    """What can be asked of one server."""

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(serve("--alias", "small", "--served-model-name", "tiny-model"))
        cls.url = cls.server.url

    def refused(self, status, param, body, path="/v1/chat/completions", **more):
        found, headers, answer = fetch(self.url + path, body, **more)
        self.assertEqual(found, status, answer)
        error = answer["error"]
        self.assertEqual(set(error), {"message", "type", "param", "code"})
        self.assertEqual(error["param"], param, error)
        self.assertRegex(headers["x-request-id"], r"^req-[0-9a-f]{16}$")
        return error

    def test_health_and_the_names_of_the_model(self):
        for path in ("/health", "/v1/health"):
            self.assertEqual(fetch(f"{self.url}{path}")[::2], (200, {"status": "ok"}))
        version = subprocess.run([BINARY, "version"], capture_output=True, text=True).stdout
        self.assertIn(fetch(f"{self.url}/version")[2]["version"], version)
        models = fetch(f"{self.url}/v1/models")[2]
        self.assertEqual([model["id"] for model in models["data"]], ["small", "tiny-model"])
        self.assertEqual(fetch(f"{self.url}/v1/models/tiny-model")[2], models["data"][1])
        for name in ({}, {"model": "small"}, {"model": "tiny-model"}):
            self.assertEqual(fetch(f"{self.url}/v1/chat/completions", {**CHAT, **name})[2]["model"], "small")
        self.assertEqual(self.refused(404, "model", {**CHAT, "model": "gpt-4o"})["code"], "model_not_found")
        self.assertEqual(fetch(f"{self.url}/v1/models/gpt-4o")[0], 404)

    def test_a_request_has_an_id_in_answer_and_log(self):
        for sent, pattern in ((None, r"req-[0-9a-f]{16}"), ("my-own.id_7", r"my-own\.id_7"), ("not an id", r"req-[0-9a-f]{16}")):
            status, headers, answer = fetch(f"{self.url}/v1/chat/completions", CHAT, {"X-Request-Id": sent} if sent else {})
            self.assertEqual(status, 200)
            own = headers["x-request-id"]
            self.assertRegex(own, f"^{pattern}$")
            self.assertEqual(answer["id"], f"chatcmpl-{own}")
            line = self.server.wait_for(re.escape(own) + " .*", 5)[0]
            self.assertRegex(line, r" 127\.0\.0\.1 POST /v1/chat/completions 200 \d+ B [\d.]+ ms$")

    def test_probes_leave_no_line_in_the_log(self):
        for path in ("/health", "/v1/health", "/metrics"):
            self.assertEqual(fetch(f"{self.url}{path}", headers={"X-Request-Id": "probe-fine"})[0], 200)
            self.assertEqual(fetch(f"{self.url}{path}", {}, headers={"X-Request-Id": "probe-wrong"})[0], 405)
            self.server.wait_for(f"probe-wrong 127.0.0.1 POST {path} 405", 5)
        self.assertEqual([line for line in self.server.lines if "probe-fine" in line], [])

    def test_an_answer_ends_where_it_is_told_to(self):
        def ask(**more):
            answer = fetch(f"{self.url}/v1/completions", {"prompt": "The end", "temperature": 0, "ignore_eos": True, **more})
            self.assertEqual(answer[0], 200, answer)
            return answer[2]["choices"][0]["finish_reason"], answer[2]["usage"]["completion_tokens"], answer[2]["choices"][0]["text"]
        bias = {"7": 100}  # whatever the model thinks
        self.assertEqual(ask(max_tokens=20, logit_bias=bias, stop_token_ids=[7]), ("stop", 1, ""))
        for draft_max in (-1, 0, 7):
            self.assertEqual(ask(max_tokens=20, logit_bias=bias, stop_token_ids=[7], min_tokens=9, draft_max=draft_max)[:2], ("stop", 10))

    def test_forms_by_the_names_of_others(self):
        word = {"type": "string", "enum": ["tea"]}
        for form in ({"response_format": {"type": "json_object", "schema": word}}, {"guided_json": word},
                     {"guided_json": json.dumps(word)}, {"guided_grammar": r'root ::= "\"tea\""'}, {"guided_choice": ['"tea"']},
                     {"structured_outputs": {"choice": ['"tea"']}}):
            answer = fetch(f"{self.url}/v1/chat/completions", {**CHAT, "max_tokens": 40, **form})[2]
            self.assertEqual(answer["choices"][0]["message"]["content"], '"tea"', form)
        self.refused(400, "guided_json", {**CHAT, "guided_json": {"not": {}}})
        self.refused(400, "guided_choice", {**CHAT, "guided_choice": ["a"], "guided_json": {}})

    def test_a_form_that_fails_while_it_is_written_is_named(self):
        grammar = 'root ::= a{200}\na ::= (b{100})\nb ::= [a-z]? [A-Z]? " "?'
        body = {"prompt": "Say anything.", "max_tokens": 8}
        for name in ("grammar", "guided_grammar"):
            error = self.refused(400, name, {**body, name: grammar}, "/v1/completions")
            self.assertIn("too expensive", error["message"])
            events = fetch(f"{self.url}/v1/completions", {**body, name: grammar, "stream": True})[2]
            last = json.loads(events.strip().split("\n\n")[-2].removeprefix("data: "))
            self.assertEqual(last["error"], error)

    def test_wrong_requests_are_told_what_is_wrong(self):
        self.assertIn("max_tokens", self.refused(400, "max_token", {**CHAT, "max_token": 3})["message"])
        for param, value in (("temperature", "hot"), ("temperature", -1), ("top_p", 0), ("n", 0), ("n", 17), ("max_tokens", 0),
                             ("seed", 1.5), ("stop", [""]), ("stop", 3), ("logit_bias", {"a": 1}), ("logit_bias", {"5": 101}),
                             ("messages", []), ("tools", {}), ("response_format", "json"), ("use_diffusion_mode", 1),
                             ("draft_max", -2), ("consensus", "maybe"), ("top_logprobs", 3), ("functions", []),
                             ("priority", -1), ("priority", 1001), ("reasoning_effort", "low"), ("verbosity", "low"),
                             ("modalities", ["audio"]), ("prediction", {}), ("audio", {}), ("web_search_options", {}),
                             ("function_call", "auto"), ("store", True), ("stream_options", {"include_usage": True})):
            with self.subTest(param=param, value=value):
                self.refused(400, param, {**CHAT, param: value})
        large = 'root ::= (' + '"" ' * 60_000 + '"a"){32768}'
        self.assertIn("too large", self.refused(400, "grammar", {**CHAT, "grammar": large})["message"])
        self.refused(400, "grammar", {"prompt": "x", "grammar": "root ::= root"}, "/v1/completions")
        schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"not": {}}}}
        self.refused(400, "response_format", {**CHAT, "response_format": schema})
        self.refused(400, "messages[1].role", {"messages": [*CHAT["messages"], {"role": "robot", "content": "x"}]})
        self.refused(400, "messages[0].content[1].type", {"messages": [{"role": "user", "content": [
            {"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": "http://x/y.png"}}]}]})
        self.refused(400, None, {"messages": [{"role": "user", "content": "word " * 2000}]})
        for path in ("/v1/embeddings", "/v1/responses", "/v2"):
            self.refused(404, None, {"input": "x"}, path)
        self.assertEqual(fetch(f"{self.url}/v1/chat/completions")[0], 405)

    def test_bodies_that_are_no_requests(self):
        deep = b'{"messages": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
        for body in (b"", b"{", b"[]", b'"text"', deep, b'{"a": 1}' * 2, b'{"model": NaN}', b'{"messages": [], "messages": []}',
                     b'{"messages": [{"role": "user", "content": "\xff\xfe"}]}',
                     b'{"messages": [{"role": "user", "content": "\xed\xa0\x80"}]}', b"\x00" * 100,
                     b'{"messages": [{"role": "user", "content": "x"}], "seed": 1e999}'):
            with self.subTest(body=body[:60]):
                found, _, answer = fetch(f"{self.url}/v1/chat/completions", body)
                self.assertEqual(found, 400, answer)
                self.assertEqual(answer["error"]["type"], "invalid_request_error")
                self.assertLess(len(answer["error"]["message"]), 300)

    def test_large_bodies_are_refused_without_being_kept(self):
        before = self.memory()
        host, port = self.url.removeprefix("http://").split(":")
        for head, chunk in (("Content-Length: 104857600\r\n\r\n", b""), ("Transfer-Encoding: chunked\r\n\r\n", b"100000\r\n")):
            with socket.create_connection((host, int(port)), timeout=60) as client:
                client.sendall(f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n{head}".encode())
                with contextlib.suppress(ConnectionError):  # who does not stop sending is cut off
                    for _ in range(100):
                        client.sendall(chunk + b" " * (1 << 20) + (b"\r\n" if chunk else b""))
                self.assertTrue(client.recv(100).startswith(b"HTTP/1.1 413 "))
        self.assertLess(self.memory() - before, 64 << 20)
        self.assertEqual(fetch(f"{self.url}/v1/chat/completions", CHAT)[0], 200)

    def memory(self):
        status = pathlib.Path(f"/proc/{self.server.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) << 10

    def test_tokens_of_a_text_and_back(self):
        text = "Tom has 3 apples. \u00e9\U0001f34e"
        found = fetch(f"{self.url}/tokenize", {"content": text, "with_pieces": True})[2]
        ids = [token["id"] for token in found["tokens"]]
        self.assertEqual(found["count"], len(ids))
        self.assertEqual(found["max_model_len"], 1024)
        self.assertEqual(fetch(f"{self.url}/detokenize", {"tokens": ids})[2]["content"], text)
        chat = fetch(f"{self.url}/tokenize", {"messages": CHAT["messages"]})[2]["tokens"]
        self.assertEqual(fetch(f"{self.url}/v1/chat/completions", CHAT)[2]["usage"]["prompt_tokens"], len(chat))
        self.assertIn("<|im_start|>user\nTom has 3 apples.", fetch(f"{self.url}/detokenize", {"tokens": chat})[2]["content"])
        self.refused(400, "tokens", {"tokens": [5, 99999]}, "/detokenize")

    def test_metrics_are_prometheus_text(self):
        fetch(f"{self.url}/v1/chat/completions", CHAT)
        status, headers, text = fetch(f"{self.url}/metrics")
        self.assertEqual((status, headers["content-type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))
        types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M))
        helps = dict(re.findall(r"^# HELP (\w+) (.+)$", text, re.M))
        self.assertEqual(set(types), set(helps))
        samples = [line for line in text.splitlines() if not line.startswith("#")]
        self.assertGreater(len(samples), 80)
        for sample in samples:
            name = re.fullmatch(r'(\w+)(?:\{\w+="[^"\n]*"(?:,\w+="[^"\n]*")*\})? (?:[-+.e\d]+|\+Inf|Nan)', sample)
            self.assertTrue(name, sample)
            self.assertTrue(name[1].startswith("orthrus_"), sample)
            family = name[1] if name[1] in types else re.sub(r"_(bucket|sum|count)$", "", name[1])
            self.assertEqual(types[family] == "histogram", family != name[1], sample)
            self.assertEqual(types[family] == "counter", name[1].endswith("_total"), sample)

    def test_counters_say_what_an_answer_was(self):
        before = metrics(self.url)
        answer = fetch(f"{self.url}/v1/completions", {"prompt": "Tom has 3 apples", "max_tokens": 40, "draft_max": 7,
                                                         "ignore_eos": True})[2]
        after = metrics(self.url)
        details = answer["usage"]["completion_tokens_details"]
        accepted, rejected = details["accepted_prediction_tokens"], details["rejected_prediction_tokens"]
        self.assertGreater(accepted, 0)
        for name, amount in (("prompt_tokens", answer["usage"]["prompt_tokens"]), ("generated_tokens", 40),
                             ("cycles", answer["timings"]["cycles"]), ("forward_passes", answer["timings"]["forward_passes"]),
                             ("draft_tokens", accepted + rejected), ("accepted_tokens", accepted)):
            self.assertEqual(after[f"orthrus_{name}_total"] - before[f"orthrus_{name}_total"], amount, name)
        self.assertEqual(after["orthrus_request_seconds_count"] - before["orthrus_request_seconds_count"], 1)

    def test_counters_rise_while_answers_are_written(self):
        names = [f"orthrus_{name}_total" for name in ("generated_tokens", "cycles", "forward_passes")]
        before = metrics(self.url)
        stream = Stream(self.url)
        now = eventually(lambda: all((found := metrics(self.url))[name] > before[name] for name in names) and found, "tokens")
        self.assertEqual(sum(now[state] for state in STATES), 48)  # none has ended yet
        stream.leave()
        eventually(lambda: under_way(self.url) == 0, "the end of them")

    def test_a_prompt_beyond_the_context_is_refused_by_its_length(self):
        begun = time.monotonic()
        for path, body in (("completions", {"prompt": "word " * 2_000_000}),
                           ("chat/completions", {"messages": [{"role": "user", "content": "word " * 2_000_000}]})):
            error = self.refused(400, None, body, f"/v1/{path}")
            self.assertEqual(error["code"], "context_length_exceeded")
            self.assertRegex(error["message"], r"^The prompt has 100\d{5} bytes, but the context holds 1024 tokens, ")
        self.assertLess(time.monotonic() - begun, 10)

    def test_a_client_that_leaves_frees_its_answers(self):
        for stream in (True, False):
            cancelled = ended(self.url, "cancelled")
            if stream:
                client = Stream(self.url)
            else:
                client = http.client.HTTPConnection(self.url.removeprefix("http://"))
                client.request("POST", "/v1/completions", json.dumps(LONG), {"Content-Type": "application/json"})
                eventually(lambda: metrics(self.url)['orthrus_requests{state="decoding"}'] > 0, "answers that are written")
            self.assertGreater(under_way(self.url), 0)
            client.leave() if stream else client.close()
            # All of it would take seconds.
            eventually(lambda: under_way(self.url) == 0, "the end of them", 1)
            self.assertGreater(ended(self.url, "cancelled") - cancelled, 40)

    def test_pages_of_other_origins_are_kept_out(self):
        for origin in ("http://evil.example", "null"):
            headers = {"Origin": origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
            _, answered, _ = fetch(f"{self.url}/v1/chat/completions", headers=headers, method="OPTIONS")
            self.assertIsNone(answered["access-control-allow-origin"])
        cross = {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}
        self.assertEqual(fetch(f"{self.url}/v1/chat/completions", CHAT, cross)[0], 403)

    def test_curl(self):
        def curl(*arguments):
            done = subprocess.run(["curl", "-sS", "--fail-with-body", "--max-time", "60", *arguments], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            return done.stdout
        chat = f"{self.url}/v1/chat/completions"
        # Without a content type of JSON too, which curl does not send by itself.
        answer = json.loads(curl(chat, "-d", json.dumps({**CHAT, "temperature": 0})))
        lines = curl("-N", chat, "-d", json.dumps({**CHAT, "temperature": 0, "stream": True})).split("\n\n")
        self.assertEqual(lines[-2:], ["data: [DONE]", ""])
        chunks = [json.loads(line.removeprefix("data: ")) for line in lines[:-2]]
        self.assertEqual("".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks),
                         answer["choices"][0]["message"]["content"])
        # A body that curl announces with "Expect: 100-continue".
        with tempfile.NamedTemporaryFile() as file:
            file.write(json.dumps({**CHAT, "metadata": {"padding": "x" * 2_000_000}}).encode())
            file.flush()
            self.assertIn('"choices"', curl(chat, "-H", "Expect: 100-continue", "--data-binary", f"@{file.name}"))

    def test_the_examples_of_the_grammars(self):
        """docs/grammar.md: each curl, and what it says comes back."""
        text = (pathlib.Path(ROOT) / "docs/grammar.md").read_text()
        examples = re.findall(r"^```sh\n(curl .*?)^```\n\n.*?`/(.+?)/`", text, re.M | re.S)
        self.assertEqual(len(examples), 2)
        for command, pattern in examples:
            command = command.replace("http://localhost:8080", self.url)
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", command], capture_output=True, text=True, timeout=60)
            content = json.loads(done.stdout)["choices"][0]["message"]["content"]
            self.assertRegex(content, f"^{pattern}$")

    def test_the_page_and_its_parts(self):
        status, headers, page = fetch(f"{self.url}/")
        self.assertEqual((status, headers.get_content_type()), (200, "text/html"))
        self.assertIn("default-src 'none'", headers["content-security-policy"])
        for path in re.findall(r'(?:src|href)="([^"]+)"', page):
            self.assertEqual(fetch(f"{self.url}/{path}")[0], 200, path)
        self.assertEqual(fetch(f"{self.url}/", headers={"If-None-Match": headers["etag"]})[0], 304)


    def test_the_documentation_names_everything(self):
        """docs/serving.md: flags, metrics, parameters and endpoints."""
        text = (pathlib.Path(ROOT) / "docs/serving.md").read_text()
        shown = subprocess.run([BINARY, "serve", "--help"], capture_output=True, text=True).stdout
        names = set(re.findall(r"(?<![\w-])--[a-z][\w-]+", shown)) - {"--help"}
        names |= set(re.findall(r"^# TYPE (\w+)", fetch(f"{self.url}/metrics")[2], re.M))
        api = fetch(f"{self.url}/openapi.json")[2]
        names |= {path.replace("{model}", "NAME") for path in api["paths"]}
        for schema in ("ChatRequest", "CompletionRequest"):
            names |= set(api["components"]["schemas"][schema]["properties"])
        self.assertGreater(len(names), 90)
        self.assertEqual([name for name in sorted(names) if not re.search(re.escape(name) + r"(?![\w-])", text)], [])


class Limited(unittest.TestCase):
    """A server with keys, one place, a short queue, and no patience."""

    KEY = {"Authorization": "Bearer second"}
    ORIGIN = "http://localhost:3000"

    @classmethod
    def setUpClass(cls):
        keys = cls.enterClassContext(tempfile.NamedTemporaryFile("w", suffix=".keys"))
        keys.write("# friends\nfirst\r\n\n  \n  second \n")
        keys.flush()
        cls.server = cls.enterClassContext(serve("--api-key-file", keys.name, "-np", "1", "--max-queue", "20", "--request-timeout",
                                                 "1", "--cors-origin", cls.ORIGIN, "--max-body-mb", "1", "--no-page"))
        cls.url = cls.server.url

    def tearDown(self):
        self.wait_until_idle()

    def wait_until_idle(self):
        eventually(lambda: under_way(self.url, headers=self.KEY) == 0, "the end of all answers")

    def ask(self, body, path="/v1/completions"):
        return fetch(self.url + path, body, self.KEY)

    def test_keys_are_asked_for(self):
        chat = f"{self.url}/v1/chat/completions"
        for headers, status in (({}, 401), ({"Authorization": "Bearer wrong"}, 401), ({"Authorization": "first"}, 401),
                                ({"Authorization": "Bearer "}, 401), ({"Authorization": "Bearer # friends"}, 401), ({"Authorization": "Bearer first"}, 200),
                                ({"X-Api-Key": "second"}, 200)):
            found, _, answer = fetch(chat, CHAT, headers)
            self.assertEqual(found, status, headers)
            if status == 401:
                self.assertEqual(answer["error"]["code"], "invalid_api_key")
        for path, status in (("/health", 200), ("/openapi.json", 200), ("/metrics", 401), ("/v1/models", 401), ("/tokenize", 401)):
            self.assertEqual(fetch(self.url + path, {} if path == "/tokenize" else None)[0], status, path)
        said = "".join(self.server.lines)
        self.assertNotIn("second", said)

    def test_the_queue_has_an_end(self):
        self.assertEqual(self.ask({**LONG, "prompt": ["x"] * 21, "max_tokens": 1})[0], 200)
        rejected = ended(self.url, "rejected", headers=self.KEY)
        for _ in range(10):  # on a busy machine the second that the 21 have may be over before the next one comes
            more = Stream(self.url, {**LONG, "prompt": ["x"] * 21}, self.KEY)
            status, headers, answer = self.ask({"prompt": "Tom"})
            if status != 200:
                break
            more.leave()
        self.assertEqual((status, answer["error"]["type"], answer["error"]["code"]), (429, "rate_limit_error", "queue_full"))
        self.assertGreaterEqual(int(headers["retry-after"]), 1)
        more.leave()
        eventually(lambda: self.ask({"prompt": "Tom"})[0] == 200, "a free place")
        self.assertGreaterEqual(ended(self.url, "rejected", headers=self.KEY) - rejected, 1)
        # What never fits is no question of time.
        status, _, answer = self.ask({"prompt": ["Tom"] * 22})
        self.assertEqual((status, answer["error"]["code"]), (400, "too_many_answers"))

    def test_a_flood_does_not_get_past_the_queue(self):
        found = []
        body = {**LONG, "prompt": ["Tom"] * 6}
        flood = [threading.Thread(target=lambda: found.append(self.ask(body)[0])) for _ in range(40)]
        for thread in flood:
            thread.start()
        for thread in flood:
            thread.join()
        self.assertEqual(len(found), 40)
        self.assertLessEqual(set(found), {200, 429, 504})
        self.assertGreaterEqual(found.count(429), 30)  # 3 of them fill the 21 places

    def test_answers_have_a_time_limit(self):
        with serve("-np", "1", "--max-queue", "255", "--request-timeout", "1") as server:
            body = {**LONG, "prompt": ["x"] * 256}  # many seconds of work on the fastest machine
            begun = time.monotonic()
            status, _, answer = fetch(f"{server.url}/v1/completions", body)
            self.assertEqual((status, answer["error"]["code"]), (504, "timeout"))
            self.assertIn("--request-timeout", answer["error"]["message"])
            self.assertLess(time.monotonic() - begun, 10)
            eventually(lambda: under_way(server.url) == 0, "the end of its answers")
            rest = Stream(server.url, body).rest()
            error, done = rest.split("\n\n")[-3:-1]
            self.assertEqual(json.loads(error.removeprefix("data: "))["error"]["code"], "timeout")
            self.assertEqual(done, "data: [DONE]")

    def test_pages_of_the_origin_may_ask(self):
        headers = {"Origin": self.ORIGIN, "Access-Control-Request-Method": "POST",
                   "Access-Control-Request-Headers": "authorization, content-type"}
        status, allowed, _ = fetch(f"{self.url}/v1/chat/completions", headers=headers, method="OPTIONS")
        self.assertEqual(status, 204)
        self.assertEqual(allowed["access-control-allow-origin"], self.ORIGIN)
        self.assertEqual(allowed["access-control-allow-headers"], "authorization, content-type")
        status, answered, _ = fetch(f"{self.url}/v1/chat/completions", CHAT,
                                    {**self.KEY, "Origin": self.ORIGIN, "Sec-Fetch-Site": "same-site"})
        self.assertEqual((status, answered["access-control-allow-origin"]), (200, self.ORIGIN))
        headers["Origin"] = "http://localhost:3001"
        _, refused, _ = fetch(f"{self.url}/v1/chat/completions", headers=headers, method="OPTIONS")
        self.assertIsNone(refused["access-control-allow-origin"])

    def test_there_is_no_page_and_bodies_are_small(self):
        self.assertEqual(fetch(f"{self.url}/")[0], 404)
        self.assertEqual(self.ask({**CHAT, "user": "x" * (1 << 20)}, "/v1/chat/completions")[0], 413)


class Ends(unittest.TestCase):
    def test_a_signal_drains(self):
        with serve("--drain-timeout", "600") as server:  # however busy the machine is
            streams = [Stream(server.url), Stream(server.url)]
            server.process.send_signal(signal.SIGTERM)
            server.wait_for("stopping: ")
            self.assertEqual(fetch(f"{server.url}/health")[::2], (503, {"status": "draining"}))
            status, headers, answer = fetch(f"{server.url}/v1/chat/completions", CHAT)
            self.assertEqual((status, answer["error"]["message"]), (503, "The server is going down."))
            self.assertGreaterEqual(int(headers["retry-after"]), 1)
            self.assertGreater(under_way(server.url), 0)
            for stream in streams:
                rest = stream.rest()
                self.assertTrue(rest.endswith("data: [DONE]\n\n"))
                self.assertEqual(rest.count('"finish_reason":"length"'), 48)
            self.assertEqual(server.process.wait(timeout=10), 0)

    def test_a_second_signal_ends_at_once(self):
        for first, second in ((signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGTERM)):
            with serve() as server:
                stream = Stream(server.url, {**LONG, "prompt": LONG["prompt"] * 2})
                server.process.send_signal(first)
                server.wait_for("stopping: ")
                begun = time.monotonic()
                server.process.send_signal(second)
                self.assertEqual(server.process.wait(timeout=10), 0)
                self.assertLess(time.monotonic() - begun, 2)
                self.assertIn('"message":"The server is going down."', stream.rest())
                server.wait_for("answers cut off: 1")

    def test_draining_has_a_time_limit(self):
        with serve("--drain-timeout", "0") as server:
            stream = Stream(server.url)
            begun = time.monotonic()
            self.assertEqual(server.stop(signal.SIGINT), 0)
            self.assertLess(time.monotonic() - begun, 2)
            self.assertIn('"message":"The server is going down."', stream.rest())

    def test_a_server_that_loads_says_so_and_can_be_ended(self):
        with serve(model=serving.DEMO, ready=r"loading .*; (http://\S+)/health") as server:
            self.assertEqual(fetch(f"{server.url}/health")[::2], (503, {"status": "loading"}))
            status, headers, answer = fetch(f"{server.url}/v1/chat/completions", CHAT)
            self.assertEqual((status, answer["error"]["message"]), (503, "The model is being loaded."))
            self.assertGreaterEqual(int(headers["retry-after"]), 1)
            self.assertEqual(fetch(f"{server.url}/v1/models")[0], 503)
            self.assertIn("orthrus_build_info", fetch(f"{server.url}/metrics")[2])
            self.assertEqual(fetch(f"{server.url}/")[0], 200)
            self.assertEqual(server.stop(), 128 + signal.SIGTERM)


class Begins(unittest.TestCase):
    def refused(self, code, pattern, *flags, model=None):
        command = [BINARY, "serve", "-m", str(model or serving.tiny(ROOT)), *flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        last = done.stderr.splitlines()[-1]
        self.assertRegex(last, pattern)
        self.assertTrue(last.startswith("orthrus: error: "), last)
        self.assertEqual(len(re.findall("error", done.stderr)), 1)

    def test_what_cannot_be_is_one_line(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.refused(1, f"cannot listen on 127.0.0.1, port {port}: Address already in use$", "--port", str(port))
        self.refused(2, "host \"nowhere.invalid\"", "--port", "0", "--host", "nowhere.invalid")
        self.refused(2, "--port", "--port", "65536")
        self.refused(1, "no-such-keys", "--port", "0", "--api-key-file", "/no-such-keys")
        self.refused(2, "--parallel|--decode-batch-size", "--port", "0", "-np", "0")
        self.refused(1, "no-such-model", "--port", "0", model="/no-such-model")
        self.refused(2, "grammar: line 1", "--port", "0", "--grammar", "root ::= [")
        self.refused(2, "-n 0", "--port", "0", "-n", "0")

    def test_places_are_as_many_as_asked_for(self):
        for flag in ("-np", "--parallel", "--decode-batch-size", "--max-num-seqs"):
            with serve(flag, "2") as server:
                stream = Stream(server.url)
                eventually(lambda: metrics(server.url)["orthrus_batch_size"] > 0, "a step")
                self.assertEqual(metrics(server.url)["orthrus_batch_size"], 2)
                stream.leave()

    def test_the_article_s_keys(self):
        article = {"max_seq_len": 512, "max_new_tokens": 64, "use_diffusion_mode": True, "consensus_threshold": 0.01,
                   "prefill_batch_size": 16, "decode_batch_size": 3, "kv_cache_memory_budget_gb": 0.125,
                   "memory_utilization_target": 0.75, "dynamic_adjust_interval_ms": 500, "prefill_mode": "separate"}
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("article.json", json.dumps(article)),
                               ("article.yaml", "".join(f"{key}: {json.dumps(value)}\n" for key, value in article.items()))):
                file = pathlib.Path(folder) / name
                file.write_text(text)
                with serve("--config", file) as server:
                    self.assertEqual(fetch(f"{server.url}/v1/models")[2]["data"][0]["max_model_len"], 512)
                    stream = Stream(server.url)
                    now = eventually(lambda: (found := metrics(server.url))["orthrus_batch_size"] > 0 and found, "a step")
                    self.assertEqual(now["orthrus_batch_size"], 3)
                    blocks = sum(now[f'orthrus_kv_blocks{{state="{state}"}}'] for state in ("in_use", "idle", "free"))
                    tokens = 2 * 2 * 64 * 4 * 2  # bytes of a token: keys and values, heads, their size, layers, bf16
                    self.assertAlmostEqual(blocks * 64 * tokens / 2 ** 30, 0.125, delta=0.001)
                    stream.leave()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
