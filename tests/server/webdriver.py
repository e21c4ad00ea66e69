"""Headless Chromium by the WebDriver protocol (W3C), with nothing but the standard library."""

import json
import re
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"Enter": "\ue007", "Tab": "\ue004", "Shift": "\ue008", "Escape": "\ue00c", "Space": " ", "Control": "\ue009",
        "End": "\ue010", "Home": "\ue011"}


class WebDriverError(Exception):
    pass


class Browser:
    """One browser with a profile of its own. A context manager."""

    def __init__(self, width=1100, height=800):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                       text=True)
        for line in self.driver.stdout:
            if match := re.search(r"started successfully on port (\d+)", line):
                self.base = f"http://127.0.0.1:{match[1]}"
                break
        else:
            raise WebDriverError("chromedriver did not start")
        arguments = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run",
                     "--disable-background-networking", f"--window-size={width},{height}", f"--user-data-dir={self.profile.name}"]
        self.session = ""
        started = self.call("POST", "", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:loggingPrefs": {"browser": "ALL"}, "goog:chromeOptions": {"args": arguments}}}})
        self.session = f"/{started['sessionId']}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait(timeout=30)
            self.driver.stdout.close()
            self.profile.cleanup()

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.base}/session{self.session}{path}", data, {"Content-Type": "application/json"},
                                         method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error)["value"]
            raise WebDriverError(f"{value['error']}: {value['message'].splitlines()[0]}") from None

    def open(self, url):
        self.call("POST", "/url", {"url": url})

    def script(self, source, *arguments):
        """Runs the body of an async function with `arguments`, gives what it returns."""
        wrapped = "const done = arguments[arguments.length - 1]; const given = [...arguments].slice(0, -1);" \
                  f"(async (...args) => {{ {source} }})(...given)" \
                  ".then((value) => done({value}), (error) => done({error: String(error)}));"
        result = self.call("POST", "/execute/async", {"script": wrapped, "args": list(arguments)})
        if "error" in result:
            raise WebDriverError(result["error"])
        return result.get("value")

    def find(self, selector):
        return self.call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self.call("POST", f"/element/{self.find(selector)}/click", {})

    def fill(self, selector, text):
        element = self.find(selector)
        self.call("POST", f"/element/{element}/clear", {})
        self.call("POST", f"/element/{element}/value", {"text": text})

    def press(self, *keys, held=()):
        """Types keys (names of KEYS, or text) to whatever has the focus, `held` ones held down."""
        strokes = [KEYS.get(key, key) for key in keys]
        characters = [c for stroke in strokes for c in stroke]
        actions = [{"type": "keyDown", "value": KEYS[key]} for key in held]
        for character in characters:
            actions += [{"type": "keyDown", "value": character}, {"type": "keyUp", "value": character}]
        actions += [{"type": "keyUp", "value": KEYS[key]} for key in reversed(held)]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def devtools(self, command, **parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def complaints(self):
        """What the page has written to the console as errors since the last call: refused content, exceptions."""
        return [entry["message"] for entry in self.call("POST", "/se/log", {"type": "browser"}) if entry["level"] == "SEVERE"]

    def wait(self, condition, what, seconds=30):
        """Waits until the expression `condition` is true in the page, and gives its value."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if value := self.script(f"return {condition};"):
                return value
            time.sleep(0.05)
        raise AssertionError(f"waited {seconds} s for {what}; the page says: "
                             + self.script("return document.body.innerText;")[-1500:])
