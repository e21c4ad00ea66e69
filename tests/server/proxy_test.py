"""deploy/haproxy.cfg and deploy/nginx.conf before three replicas: sessions keep their replica, a replica that is killed takes
only its own running answers with it, one that drains takes none.

Usage: proxy_test.py BINARY SOURCE_ROOT [unittest arguments]."""

import collections
import concurrent.futures
import http.client
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import serving

BINARY = sys.argv[1]
ROOT = pathlib.Path(sys.argv[2]).resolve()
SESSIONS = 30  # so many that hardly ever one of three replicas gets none of them; nginx hashes ports, which are chance here
PORTS = ("8081", "8082", "8083")  # of the replicas in the configurations
os.environ["PATH"] += ":/usr/sbin:/sbin"


class Answer:
    """A streamed chat: sent at once, then read."""

    def __init__(self, port, messages, tokens=8, session=None, **more):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        body = {"messages": messages, "max_tokens": tokens, "stream": True, **more}
        headers = {"Content-Type": "application/json", **({"x-session-id": session} if session else {})}
        self.connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
        self.response = self.connection.getresponse()
        self.status = self.response.status
        line = self.response.readline() if self.status == 200 else b""
        self.replica = json.loads(line.removeprefix(b"data: "))["model"] if line else None

    def leave(self):
        self.response.close()
        self.connection.close()

    def whole(self):
        """Whether the stream comes to its proper end."""
        try:
            return b"data: [DONE]" in self.response.read()
        except (http.client.HTTPException, OSError):
            return False
        finally:
            self.leave()


def said(*texts):
    """A conversation of these turns."""
    return [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)]


class Proxy:
    """What both proxies must do. `start(folder, text)` starts the proxy with its configuration and gives the process."""

    def setUp(self):
        self.replicas = {}
        text = (ROOT / "deploy" / self.configuration).read_text()
        for i, port in enumerate(PORTS):
            replica = serving.server(BINARY, ROOT, "-t", "1", "--forwarded-allow-ips", "127.0.0.1", alias=f"replica{i + 1}")
            self.addCleanup(replica.stop)
            self.replicas[f"replica{i + 1}"] = replica
            text = self.replace(text, f"127.0.0.1:{port}", replica.url.removeprefix("http://"))
        self.port = serving.free_port()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        process = self.start(text)
        self.addCleanup(process.wait, 30)
        self.addCleanup(process.terminate)
        deadline = time.monotonic() + 30
        while self.status("/health") != 200:
            self.assertIsNone(process.poll())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)

    def replace(self, text, old, new):
        self.assertIn(old, text)
        return text.replace(old, new)

    def status(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except OSError:
            return None
        finally:
            connection.close()

    def ask(self, *messages, **more):
        answer = Answer(self.port, list(messages) or said("Hello"), **more)
        self.assertTrue(answer.whole())
        return answer.replica

    def test_a_conversation_keeps_its_replica(self):
        for system in ([], [{"role": "system", "content": "The same for all. " * 30}]):
            used = collections.Counter()
            for i in range(SESSIONS):
                first = f"Question {i}, \"quoted\" \u00e9: " + "why? " * (i % 3 * 40)
                turns = [said(first), said(first, "Because."), said(first, "Because.", "Indeed?", "Yes.", "And then?")]
                replicas = {self.ask(*system, *turn) for turn in turns}
                self.assertEqual(len(replicas), 1, first)
                used.update(replicas)
            self.assertEqual(len(used), 3, used)
            self.assertLessEqual(max(used.values()), SESSIONS * 3 // 4, used)

    def test_content_in_parts_has_a_session_too(self):
        used = set()
        for i in range(SESSIONS):
            first = {"role": "user", "content": [{"type": "text", "text": f"Question {i}"}]}
            replicas = {self.ask(first), self.ask(first, *said("x", "Because.", "Indeed?")[1:])}
            self.assertEqual(len(replicas), 1)
            used |= replicas
        self.assertEqual(len(used), 3)

    def test_a_session_id_decides_alone(self):
        used = set()
        for i in range(SESSIONS):
            replicas = {self.ask(*said(f"Something else {j} of {i}"), session=f"session-{i}") for j in range(2)}
            self.assertEqual(len(replicas), 1)
            used |= replicas
        self.assertEqual(len(used), 3)

    def test_tokens_come_one_by_one(self):
        answer, = self.running(1)
        pieces = 1
        while line := answer.response.readline():
            pieces += line.startswith(b"data: ")
            if pieces == 3:
                third = time.monotonic()
        self.assertGreater(pieces, 10)
        answer.leave()
        self.assertGreater(time.monotonic() - third, 0.1)  # of several tenths that all of it takes

    def running(self, count):
        """Answers that run for a while, of as many sessions."""
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            return list(pool.map(lambda i: Answer(self.port, said(f"slow answer {i}"), tokens=900, n=6, ignore_eos=True), range(count)))

    def test_a_killed_replica_takes_only_its_own_answers(self):
        answers = self.running(18)
        self.assertEqual({answer.status for answer in answers}, {200})
        by_replica = collections.Counter(answer.replica for answer in answers)
        self.assertGreater(len(by_replica), 1, by_replica)
        victim = by_replica.most_common(1)[0][0]
        self.replicas[victim].process.kill()
        with concurrent.futures.ThreadPoolExecutor(18) as pool:
            # Their clients ask again at once, before the proxy can have looked at anyone's health.
            again = list(pool.map(lambda i: self.ask(*said(f"slow answer {i}")),
                                  [i for i, answer in enumerate(answers) if answer.replica == victim]))
            whole = list(pool.map(Answer.whole, answers))
        self.assertEqual(whole, [answer.replica != victim for answer in answers])
        self.assertEqual(len(again), by_replica[victim])
        self.assertNotIn(victim, again)

    def test_a_draining_replica_loses_no_answer(self):
        answers = self.running(12)
        victim = answers[0].replica
        self.replicas[victim].process.send_signal(signal.SIGTERM)
        while serving.fetch(f"{self.replicas[victim].url}/health")[0] == 200:  # the signal is on its way
            time.sleep(0.01)
        for i in range(12):
            self.assertNotEqual(self.ask(*said(f"slow answer {i}")), victim)
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            self.assertEqual(list(pool.map(Answer.whole, answers)), [True] * 12)

    def test_a_replica_knows_whose_request_it_is(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60, source_address=("127.0.0.2", 0))
        try:
            connection.request("GET", "/v1/models", headers={"X-Request-Id": "who-asks", "X-Forwarded-For": "192.0.2.1"})
            self.assertEqual(connection.getresponse().status, 200)
        finally:
            connection.close()
        lines = []
        deadline = time.monotonic() + 10
        while not lines and time.monotonic() < deadline:
            time.sleep(0.01)
            lines = [line for replica in self.replicas.values() for line in list(replica.lines) if "who-asks" in line]
        self.assertRegex("".join(lines), r"who-asks 127\.0\.0\.2 GET /v1/models 200")

    def test_metrics_are_not_for_everyone(self):
        self.assertEqual(self.status("/metrics"), 404)
        self.assertEqual(self.status("/v1/models"), 200)
        self.assertEqual(self.status("/"), 200)


class HAProxy(Proxy, unittest.TestCase):
    configuration = "haproxy.cfg"

    def start(self, text):
        file = self.folder / "haproxy.cfg"
        file.write_text(self.replace(text, "bind :8080", f"bind 127.0.0.1:{self.port}"))
        checked = subprocess.run(["haproxy", "-c", "-f", file], capture_output=True, text=True)
        self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, "Configuration file is valid\n"))
        return subprocess.Popen(["haproxy", "-q", "-db", "-f", file], stdout=subprocess.DEVNULL)

    def test_the_session_is_found_in_a_long_conversation(self):
        # More than the model reads: the replica refuses it, and says which one it is in its log alone.
        body = {"messages": said("Tell me about it.", *["word " * 5000] * 6, "And then?"), "max_tokens": 8}
        status, _, answer = serving.fetch(f"http://127.0.0.1:{self.port}/v1/chat/completions", body, {"X-Request-Id": "the-long-one"})
        self.assertEqual((status, answer["error"]["code"]), (400, "context_length_exceeded"))
        self.replicas[self.ask(*said("Tell me about it."))].wait_for("the-long-one", 5)


class Nginx(Proxy, unittest.TestCase):
    configuration = "nginx.conf"

    def start(self, text):
        (self.folder / "orthrus.conf").write_text(self.replace(text, "listen 8080", f"listen 127.0.0.1:{self.port}"))
        paths = "".join(f"{kind}_temp_path {self.folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        file = self.folder / "nginx.conf"
        file.write_text(f"daemon off; pid {self.folder}/pid; error_log stderr; events {{}}\n"
                        f"http {{ access_log off; {paths} include {self.folder}/orthrus.conf; }}\n")
        checked = subprocess.run(["nginx", "-t", "-q", "-c", file, "-p", self.folder], capture_output=True, text=True)
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))
        return subprocess.Popen(["nginx", "-c", file, "-p", self.folder], stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
