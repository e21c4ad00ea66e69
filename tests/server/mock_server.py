"""A server that answers like `orthrus serve` with canned streams: for work on the page, and for tests of the page that need a
certain answer.

Usage: mock_server.py [PORT [ALIAS]]; prints its address. The first word of the last message decides on the answer: see
ANSWERS. A model with the alias "plain" has no second view."""

import http.server
import itertools
import json
import pathlib
import sys
import time
import uuid

PAGE = pathlib.Path(__file__).resolve().parents[2] / "src/server/page"
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
# As in src/server/page.h.
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
          "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'")

XSS = ('<img src=x onerror="window.hacked=1"> <script>window.hacked=2</script> **<b onclick=window.hacked=3>bold</b>**\n\n'
       '```"><script>window.hacked=4</script>\n</code></pre><script>window.hacked=5</script>\n```\n'
       "- <svg/onload=window.hacked=6>\n[link](javascript:window.hacked=7) &lt;i&gt; `<iframe srcdoc=x>`\n")
CODE = ("Here is `add`:\n\n```python\ndef add(a, b):\n    return a + b  # <sum>\n```\n\nIt has **two** arguments:\n\n"
        "1. the first\n2. the second\n   - nested\n\n### Done\nA very long word: " + "x" * 300 + "\n")
ANSWERS = {
    "xss": (XSS, 0.0),
    "code": (CODE, 0.0),
    "long": ("".join(f"Word {i} of an answer that is long, " + ("and ends a paragraph.\n\n" if i % 40 == 39 else "")
                     for i in range(1250)), 0.0),
    "line": ("one line without an end and " * 900, 0.0),
    "slow": ("slowly " * 400, 0.03),
    "think": ("Four.", 0.0),
}
USUAL = ("An answer in **two** paragraphs, the first of which is this one.\n\n"
         "And this is the second, with numbers: 1, 2, 3.", 0.004)
RUNS = (1, 3, 5, 2, 1, 4)  # tokens of the cycles, in turn
ALIAS = sys.argv[2] if len(sys.argv) > 2 else "canned"


def words(text):
    """Tokens of about four characters, so that they cross words and marks."""
    return [text[i:i + 4] for i in range(0, len(text), 4)]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send_body(self, status, body, kind="application/json", headers=()):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        self.send_response(status)
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(body))), *headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status, message, headers=()):
        self.send_body(status, {"error": {"message": message, "type": "error", "code": status}}, headers=headers)

    def do_GET(self):
        path = self.path.split("?")[0]
        if path == "/health":
            self.send_body(200, {"status": "ok"})
        elif path == "/v1/models":
            self.send_body(200, {"object": "list", "data": [{"id": ALIAS, "object": "model", "dual_view": ALIAS != "plain"}]})
        else:
            name = "index.html" if path == "/" else path.removeprefix("/page/")
            file = PAGE / name
            if "/" in name or not file.is_file():
                return self.refuse(404, f"no such path: {path}")
            self.send_body(200, file.read_bytes(), TYPES[file.suffix], (("Content-Security-Policy", POLICY),
                           ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer")))

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = json.loads(body)
        prompt = request["messages"][-1]["content"]
        if isinstance(prompt, list):
            prompt = prompt[0]["text"]
        word = prompt.split()[0].lower().strip(".,!?")
        if word == "refuse":
            return self.refuse(429, "too many <b>requests</b> wait", (("Retry-After", "7"),))
        if word == "key" and self.headers.get("Authorization") != "Bearer secret":
            return self.refuse(401, "the API key is missing or wrong")
        if word == "echo":
            answer = (json.dumps(request), 0.0)
        else:
            answer = ANSWERS.get(word, USUAL)
        if not request.get("stream"):
            return self.send_body(200, {"object": "chat.completion", "model": ALIAS, "choices": [
                {"index": 0, "message": {"role": "assistant", "content": answer[0]}, "finish_reason": "stop"}]})
        self.stream(request, word, *answer)

    def chunk(self, data):
        text = data if isinstance(data, str) else json.dumps(data)
        text = f"data: {text}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))

    def stream(self, request, word, text, pause):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        frame = {"id": f"chatcmpl-{uuid.uuid4()}", "object": "chat.completion.chunk", "model": ALIAS,
                 "created": int(time.time())}
        try:
            self.steps(request, word, text, pause, frame)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def steps(self, request, word, text, pause, frame):
        def step(delta, finish=None, **more):
            self.chunk({**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more})

        step({"role": "assistant", "content": ""})
        tokens = words(text)[:request.get("max_tokens", 1 << 30)]
        plain = request.get("use_diffusion_mode") is False
        runs = itertools.repeat(1) if plain else itertools.cycle(RUNS)
        thought = words("The user asks for two and two. ") if word == "think" else []
        done = cycle = passes = 0
        for kind, stream in (("reasoning_content", thought), ("content", tokens)):
            at = 0
            while at < len(stream):
                run = stream[at:at + next(runs)]
                at += len(run)
                done += len(run)
                cycle += 1
                passes += 1 if plain else 2
                step({kind: "".join(run)}, orthrus={"cycles": [len(run)], "forward_passes": 1 if plain else 2})
                if word == "broken" and at > 8:
                    time.sleep(0.3)  # what has been sent is read first
                    self.close_connection = True
                    return self.connection.shutdown(2)
                time.sleep(pause * len(run))
        rate = 310.5 if plain else 402.5
        cut = len(tokens) < len(words(text))
        step({}, "length" if cut else "stop", orthrus={"cycles": []}, timings={"predicted_n": done, "predicted_per_second": rate,
             "tokens_per_cycle": done / max(cycle, 1), "tpf": done / max(passes, 1)})
        self.chunk({**frame, "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": done, "total_tokens": 9 + done,
                                                      "prompt_tokens_details": {"cached_tokens": 4}}})
        self.chunk("[DONE]")
        self.wfile.write(b"0\r\n\r\n")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def main():
    server = Server(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
