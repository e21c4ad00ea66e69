"""The page at / in headless Chromium: clicks through it as a person would.

Usage: page_test.py BINARY SOURCE_ROOT [unittest arguments]. What needs a certain answer is asked of a server with canned ones."""

import json
import math
import sys
import unittest

import serving
from webdriver import Browser

BINARY, ROOT = sys.argv[1:3]
LAST = "document.querySelector('.answer:last-of-type')"
TEXT = f"{LAST}?.querySelector(':scope > .text')"
IDLE = "document.getElementById('send').textContent === 'Send'"
DONE = f"({IDLE} && {LAST} && !{LAST}.querySelector('.actions').hidden)"


def setUpModule():
    global BROWSER, REAL, CANNED
    CANNED = unittest.enterModuleContext(serving.mock_server())
    REAL = unittest.enterModuleContext(serving.server(BINARY, ROOT))
    BROWSER = unittest.enterModuleContext(Browser())


class PageTest(unittest.TestCase):
    """Each test has a page without a past, and ends without a complaint of the browser (refused content, exceptions)."""

    def begin(self, url):
        self.browser = BROWSER
        self.browser.open(url)
        self.browser.script("localStorage.clear(); sessionStorage.clear();")
        self.browser.open(url)
        self.browser.wait("document.getElementById('health').dataset.state === 'ready'", "a server that is ready")
        self.browser.complaints()
        self.addCleanup(self.check_complaints)

    def check_complaints(self):
        self.assertEqual(self.browser.complaints(), [])

    def value(self, expression):
        return self.browser.script(f"return {expression};")

    def text(self):
        return self.value(f"{TEXT}.textContent")

    def source(self):
        """What the model said last, as it came."""
        return self.value("JSON.parse(localStorage['orthrus.chat']).at(-1).content")

    def send(self, text):
        self.browser.fill("#prompt", text)
        self.browser.click("#send")

    def ask(self, text):
        self.send(text)
        self.browser.wait(DONE, "the end of the answer")
        return self.text()

    def set(self, **fields):
        self.browser.click("#open-settings")
        for name, text in fields.items():
            self.browser.fill(f"[name={name}]", text)
        self.browser.click("#settings [type=submit]")

    def button(self, name):
        return self.value(f"[...{LAST}.querySelectorAll('.actions button')].find((b) => b.textContent === {name!r}).click()")


class WithTheRealServer(PageTest):
    def setUp(self):
        self.begin(REAL.url)

    def test_an_answer_has_its_figures(self):
        self.set(max_tokens="48", temperature="0")
        self.ask("Tom has 3 apples and buys 4 more. How many?")
        figures = self.value(f"{LAST}.querySelector('.figures').textContent")
        self.assertRegex(figures, r"^dual view · \d+ tokens? · [\d.]+ tokens/s · [\d.]+ tokens/cycle · TPF [\d.]+")
        self.assertIn("finished: dual view", self.value("document.getElementById('spoken').textContent"))

    def test_runs_of_a_cycle_are_tinted_unless_asked_not_to(self):
        self.set(max_tokens="48", temperature="0", draft_max="7")
        self.ask("Tom has 3 apples and buys 4 more. How many?")
        color = f"getComputedStyle({LAST}.querySelector('.run')).backgroundColor"
        self.assertNotEqual(self.value(color), "rgba(0, 0, 0, 0)")
        self.assertRegex(self.value(f"{LAST}.querySelector('.run').title"), r"^\d+ tokens from one cycle$")
        self.browser.click("#open-settings")
        self.browser.click("[name=tint]")
        self.assertEqual(self.value(color), "rgba(0, 0, 0, 0)")

    def test_the_switch_asks_for_plain_ar_and_the_comparison_for_the_other_view(self):
        self.set(max_tokens="48")
        dual = self.ask("Tom has 3 apples.")
        self.button("Compare with AR")
        verdict = self.browser.wait(f"{IDLE} && {LAST}.querySelector('.verdict')?.textContent", "the comparison")
        self.assertRegex(verdict, r"^The dual view ran at [\d.]+ times the speed of plain AR. Texts identical: yes, all \d+ char")
        rows = self.value(f"[...{LAST}.querySelectorAll('tbody tr')].map((row) => row.innerText.split('\\t'))")
        self.assertEqual([row[0] for row in rows], ["dual view", "plain AR"])
        self.assertEqual(rows[1][2:], ["1.00", "1.00"])
        self.assertEqual(self.text(), dual)
        self.browser.click("#dual")
        self.ask("Tom has 3 apples.")
        self.assertIn("plain AR · ", self.value(f"{LAST}.querySelector('.figures').textContent"))
        self.assertEqual(self.value(f"{LAST}.querySelectorAll('.text .run').length"), 0)
        self.button("Compare with dual view")
        self.assertIn("identical: yes", self.browser.wait(
            f"{IDLE} && {LAST}.querySelector('.verdict')?.textContent", "the comparison"))

    def test_regenerate_writes_the_last_answer_again(self):
        self.set(max_tokens="24", seed="3", temperature="1")
        first = self.ask("Tom has 3 apples.")
        self.button("Regenerate")
        self.assertEqual(self.value("document.activeElement.id"), "send")
        self.browser.wait(DONE, "the new answer")
        self.assertEqual(self.text(), first)
        self.assertEqual(self.value("document.querySelectorAll('.message').length"), 2)

    def test_settings_and_conversation_outlive_a_reload_and_the_key_the_tab_only(self):
        self.set(max_tokens="20", temperature="0.5", top_p="0.9", seed="7", draft_max="3", system="Be brief.", key="secret")
        self.browser.click("#dual")
        answer = self.ask("Tom has 3 apples.")
        self.browser.open(REAL.url)
        self.assertEqual(self.text(), answer)
        self.assertEqual(self.value("document.querySelector('.user .text').textContent"), "Tom has 3 apples.")
        self.assertEqual(self.value("document.querySelectorAll('.user').length"), 1)
        fields = self.value("Object.fromEntries(new FormData(document.querySelector('#settings form')))")
        self.assertEqual(fields, {"max_tokens": "20", "temperature": "0.5", "top_p": "0.9", "seed": "7", "draft_max": "3",
                                  "system": "Be brief.", "key": "secret", "tint": "on"})
        self.assertFalse(self.value("document.getElementById('dual').checked"))
        self.assertNotIn("secret", self.value("JSON.stringify({...localStorage})"))
        self.browser.click("#new-chat")
        self.browser.open(REAL.url)
        self.assertEqual(self.value("document.querySelectorAll('.message').length"), 0)

    def test_the_keyboard_is_enough(self):
        press = self.browser.press
        self.assertEqual(self.value("document.activeElement.id"), "prompt")
        press("Tom has 3", held=())
        press("Enter", held=("Shift",))
        press("apples.")
        self.assertEqual(self.value("document.getElementById('prompt').value"), "Tom has 3\napples.")
        press("Enter")
        self.browser.wait(DONE, "the end of the answer")
        self.assertEqual(self.value("document.activeElement.id"), "prompt")
        # Backwards from the prompt: the buttons of the answer, the conversation, and the head of the page.
        seen = []
        for _ in range(12):
            press("Tab", held=("Shift",))
            seen.append(self.value("document.activeElement.textContent.trim().slice(0, 20)"))
            if seen[-1] == "Settings":
                break
        self.assertEqual(seen[:3], ["Compare with AR", "Regenerate", "Copy"])
        press("Enter")
        self.assertEqual(self.value("document.activeElement.name"), "system")
        press("Tab", "1.5", "Escape")
        self.assertFalse(self.value("document.getElementById('settings').open"))
        self.assertEqual(self.value("document.activeElement.id"), "open-settings")
        self.assertEqual(self.value("JSON.parse(localStorage['orthrus.settings']).temperature"), "1.5")

    def test_every_control_has_a_name(self):
        self.browser.click("#open-settings")
        self.check_names(8)
        self.browser.press("Escape")
        self.ask("Tom has 3 apples.")
        self.check_names(7)

    def check_names(self, least):
        controls = {"button", "textbox", "spinbutton", "checkbox", "switch", "DisclosureTriangle"}
        nodes = [node for node in self.browser.devtools("Accessibility.getFullAXTree")["nodes"]
                 if not node["ignored"] and node["role"]["value"] in controls]
        self.assertGreaterEqual(len(nodes), least)
        for node in nodes:
            self.assertTrue(node["name"]["value"].strip(), node)

    def test_dark_mode_has_other_colors_and_both_can_be_read(self):
        self.set(max_tokens="48", temperature="0", draft_max="7")
        self.ask("Tom has 3 apples.")
        colors = {}
        for scheme in ("light", "dark"):
            self.browser.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            colors[scheme] = self.value("getComputedStyle(document.body).backgroundColor")
            for ratio in self.browser.script(CONTRASTS):
                self.assertGreaterEqual(ratio, 4.5, scheme)
        self.assertNotEqual(colors["light"], colors["dark"])
        self.browser.devtools("Emulation.setEmulatedMedia", features=[])


# The contrast (WCAG 2) of the text on the strongest tints, of notes on the page, and of the main button.
CONTRASTS = """
const parse = (color) => color.match(/[\\d.]+/g).map(Number);
const over = ([r, g, b, a = 1], below) => [r, g, b].map((c, i) => a * c + (1 - a) * below[i]);
const linear = (c) => (c <= 10.3 ? c / 3294 : ((c / 255 + .055) / 1.055) ** 2.4);
const light = (rgb) => { const [r, g, b] = rgb.map(linear);
  return .2126 * r + .7152 * g + .0722 * b; };
const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + .05) / (y + .05); };
const page = parse(getComputedStyle(document.body).backgroundColor).slice(0, 3);
const ratios = [];
const probe = document.createElement('div');
probe.className = 'tinted';
document.body.append(probe);
for (const kind of ['odd', 'even']) {
  const span = document.createElement('span');
  span.className = `run ${kind} n5`;
  probe.append(span);
  const style = getComputedStyle(span);
  ratios.push(ratio(parse(style.color), over(parse(style.backgroundColor), page)));
}
probe.remove();
ratios.push(ratio(parse(getComputedStyle(document.querySelector('.figures')).color), page));
const send = getComputedStyle(document.getElementById('send'));
ratios.push(ratio(parse(send.color), parse(send.backgroundColor)));
return ratios;
"""


class WithCannedAnswers(PageTest):
    def setUp(self):
        self.begin(CANNED.url)

    def test_what_the_model_and_the_user_say_stays_text(self):
        text = self.ask("xss <img src=x onerror='window.hacked=8'>")
        for part in ('<img src=x onerror="window.hacked=1">', "<script>window.hacked=2</script>",
                     "<b onclick=window.hacked=3>bold</b>", "</code></pre><script>window.hacked=5</script>", "<svg/onload=window.hacked=6>",
                     "[link](javascript:window.hacked=7)", "&lt;i&gt;", "<iframe srcdoc=x>"):
            self.assertIn(part, text)
        self.assertEqual(self.value("document.querySelectorAll('#log :is(img, script, svg, iframe, a, b, i)').length"), 0)
        self.browser.open(CANNED.url)  # and as it comes back from the browser's memory
        self.assertEqual(self.value("document.querySelectorAll('#log :is(img, script, svg, iframe, a, b, i)').length"), 0)
        self.assertIsNone(self.value("window.hacked ?? null"))

    def test_an_answer_streams(self):
        self.browser.script("""window.steps = new Set();
            new MutationObserver(() => window.steps.add(document.querySelector('.answer > .text')?.textContent.length))
                .observe(document.getElementById('log'), {childList: true, subtree: true, characterData: true});""")
        self.ask("Hello")
        self.assertGreaterEqual(self.value("window.steps.size"), 3)

    def test_stop_keeps_what_has_come(self):
        for how in ("button", "key"):
            self.send("slow answer")
            self.browser.wait(f"{TEXT}?.textContent.length > 20", "some text")
            self.assertEqual(self.value("document.getElementById('send').textContent"), "Stop")
            self.browser.click("#send") if how == "button" else self.browser.press("Escape")
            self.browser.wait(DONE, "the end", 5)
            length = len(self.text())
            self.assertLess(length, 1500)
            self.assertIn(" · stopped", self.value(f"{LAST}.querySelector('.figures').textContent"))
            self.browser.script("await new Promise((done) => setTimeout(done, 300));")
            self.assertEqual(len(self.text()), length)
            self.button("Compare with AR")
            self.assertIn("identical: yes", self.browser.wait(
                f"{IDLE} && {LAST}.querySelector('.verdict')?.textContent", "the comparison"))

    def test_a_new_chat_ends_the_running_answer(self):
        self.send("slow answer")
        self.browser.wait(f"{TEXT}?.textContent.length > 20", "some text")
        self.browser.click("#new-chat")
        self.browser.wait(IDLE, "the end", 5)
        self.assertEqual(self.value("document.querySelectorAll('.message').length"), 0)
        self.assertIn("paragraphs", self.ask("Hello"))

    def test_a_page_left_in_mid_answer_keeps_what_came(self):
        self.send("slow answer")
        self.browser.wait(f"{TEXT}?.textContent.length > 20", "some text")
        self.browser.open(CANNED.url)
        self.assertIn("slowly", self.text())
        self.assertIn(" · broken off", self.value(f"{LAST}.querySelector('.figures').textContent"))

    def test_the_request_carries_settings_and_conversation(self):
        self.ask("Hello")
        self.set(max_tokens="5000", temperature="0.5", top_p="0.9", draft_max="0", system="Be brief.")
        self.ask("echo")
        request = json.loads(self.source())
        self.assertIsInstance(request.pop("seed"), int)
        roles = [message["role"] for message in request["messages"]]
        self.assertEqual(roles, ["system", "user", "assistant", "user"])
        self.assertEqual(request["messages"][0]["content"], "Be brief.")
        self.assertTrue(request["messages"][2]["content"].startswith("An answer in **two**"))
        del request["messages"]
        self.assertEqual(request, {"max_tokens": 5000, "temperature": 0.5, "top_p": 0.9, "draft_max": 0, "stream": True,
                                   "stream_options": {"include_usage": True}})
        self.browser.click("#dual")
        self.ask("echo")
        self.assertIs(json.loads(self.source())["use_diffusion_mode"], False)

    def test_thoughts_are_folded_away(self):
        self.assertEqual(self.ask("think of it"), "Four.")
        self.assertFalse(self.value(f"{LAST}.querySelector('details').open"))
        self.browser.click(".thought summary")
        self.assertEqual(self.value(f"{LAST}.querySelector('details .text').innerText.trim()"), "The user asks for two and two.")

    def test_markdown_and_the_copy_buttons(self):
        self.browser.devtools("Browser.grantPermissions", origin=CANNED.url,
                              permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
        self.ask("code please")
        self.assertEqual(self.value(f"[...{TEXT}.children].map((node) => node.nodeName)"),
                         ["P", "FIGURE", "P", "OL", "H5", "P"])
        self.assertEqual(self.value(f"{LAST}.querySelector('strong').textContent"), "two")
        self.assertEqual(self.value(f"{LAST}.querySelector('p code').textContent"), "add")
        self.assertEqual(self.value(f"{LAST}.querySelector('ol ul li').textContent"), "nested")
        self.browser.click(".code .copy")
        self.browser.wait("document.querySelector('.code .copy').textContent === 'Copied'", "the copy")
        self.assertEqual(self.value("navigator.clipboard.readText()"), "def add(a, b):\n    return a + b  # <sum>\n")
        # An origin without the clipboard API, as plain http is.
        self.browser.script("navigator.clipboard.writeText = () => Promise.reject(new Error('no'));")
        self.browser.click(".actions .copy")
        self.browser.wait("document.querySelector('.actions .copy').textContent === 'Copied'", "the copy")
        self.assertTrue(self.value("navigator.clipboard.readText()").startswith("Here is `add`:\n\n```python\n"))

    def test_a_phone_scrolls_one_way_only(self):
        self.browser.devtools("Emulation.setDeviceMetricsOverride", width=360, height=640, deviceScaleFactor=1, mobile=True)
        self.addCleanup(self.browser.devtools, "Emulation.clearDeviceMetricsOverride")
        self.ask("code please")
        self.button("Compare with AR")
        self.browser.wait(f"{IDLE} && {LAST}.querySelector('.verdict')", "the comparison")
        for opened in (False, True):
            if opened:
                self.browser.click("#open-settings")
            wide = self.value("""[...document.querySelectorAll('html, body, header, main, footer, #log, .message, dialog')]
                .filter((node) => node.scrollWidth > node.clientWidth + 1 || node.getBoundingClientRect().right > 361)
                .map((node) => node.nodeName + '.' + node.className)""")
            self.assertEqual(wide, [])

    def test_errors_are_said_and_can_be_acted_on(self):
        self.addCleanup(self.browser.complaints)  # runs first: the browser reports refused requests
        self.send("refuse this")
        error = self.browser.wait("document.querySelector('[role=alert] p')?.textContent", "the error")
        self.assertEqual(error, "too many <b>requests</b> wait (try again in 7 s)")
        self.assertEqual(self.value("document.querySelectorAll('.answer').length"), 0)
        self.browser.click("#new-chat")
        self.send("key")
        self.browser.wait("document.querySelector('[role=alert]')", "the error")
        self.browser.click("[role=alert] button")
        self.assertEqual(self.value("document.activeElement.name"), "key")
        self.browser.press("secret", "Enter")
        self.browser.click("[role=alert] button:last-child")
        self.browser.wait(DONE, "the answer")
        self.assertIn("paragraphs", self.text())
        self.send("broken")
        self.browser.wait("document.querySelector('[role=alert]')", "the error")
        self.assertIn("broken off", self.value(f"{LAST}.querySelector('.figures').textContent"))
        self.assertIn("An answer", self.text())

    def test_a_server_that_is_gone_is_said_and_found_again(self):
        self.addCleanup(self.browser.complaints)
        server = serving.mock_server()
        port = server.url.rsplit(":", 1)[1]
        self.begin(server.url)
        self.addCleanup(self.browser.complaints)
        server.stop()
        self.send("Hello")
        self.assertEqual(self.browser.wait("document.querySelector('[role=alert] p')?.textContent", "the error"),
                         "The server cannot be reached.")
        self.browser.wait("document.getElementById('health').dataset.state === 'gone'", "the state")
        with serving.mock_server(port):
            self.browser.wait("document.getElementById('health').dataset.state === 'ready'", "the state")
            self.browser.click("[role=alert] button")
            self.browser.wait(DONE, "the answer")

    def test_what_was_refused_gives_way_to_what_is_said_instead(self):
        self.addCleanup(self.browser.complaints)
        self.ask("Hello")
        self.send("refuse this")
        self.browser.wait("document.querySelector('[role=alert]')", "the error")
        self.ask("echo")
        roles = [message["role"] for message in json.loads(self.source())["messages"]]
        self.assertEqual(roles, ["user", "assistant", "user"])
        self.assertEqual(self.value("document.querySelectorAll('.message').length"), 4)

    def test_a_model_with_one_view_has_no_switch(self):
        with serving.mock_server(alias="plain") as server:
            self.begin(server.url)
            self.browser.wait("document.getElementById('model').textContent === 'plain'", "the name")
            self.ask("echo")
            self.assertIs(json.loads(self.source())["use_diffusion_mode"], False)
            hidden = "[...document.querySelectorAll('.switch, .compare')].map((node) => getComputedStyle(node).display)"
            self.assertEqual(self.value(hidden), ["none", "none"])

    def test_what_another_page_left_in_the_browser_does_no_harm(self):
        for left in ('{"a": 1}', '[1, null]', '[{"role": "assistant"}]', "not JSON", '"text"'):
            self.browser.script("localStorage['orthrus.chat'] = args[0]; localStorage['orthrus.settings'] = args[0];", left)
            self.browser.open(CANNED.url)
            self.assertIn("paragraphs", self.ask("Hello"), left)

    def test_a_long_answer_does_not_hold_up_the_page(self):
        self.browser.script("""window.longest = 0; let last = performance.now();
            const tick = (now) => {
                window.longest = Math.max(window.longest, now - last);
                last = now;
                requestAnimationFrame(tick);
            };
            requestAnimationFrame(tick);""")
        for kind, least in (("long", 45000), ("line", 25000)):
            text = self.ask(kind)
            self.assertGreater(len(text), least)
            self.assertTrue(self.value("document.getElementById('scroller').scrollTop > 2000"))
        # Two cores that others use too: what is looked for is a page that hangs for seconds.
        self.assertLess(self.value("window.longest"), 1500)

    def test_the_cost_of_an_answer_grows_as_its_length(self):
        # Milliseconds, the least of up to eight (the browser collects garbage meanwhile): one line, prose, marks that
        # nothing closes, a list, code. A square would be 64 times.
        for piece in ("word and ", "words in lines\n", "*a `b **c ", "1. item\n", "```\ncode\n"):
            times = {4000: math.inf, 32000: math.inf}
            for _ in range(8):
                for count in times:
                    self.browser.devtools("HeapProfiler.collectGarbage")
                    times[count] = min(times[count], self.browser.script(RENDER_TIME, piece, count))
                if times[32000] < 40 * times[4000] + 20:
                    break
            self.assertLess(times[32000], 40 * times[4000] + 20, piece)

    def test_chunks_do_not_change_what_is_shown(self):
        self.assertIsNone(self.browser.script(CHUNK_PROPERTY))


RENDER_TIME = """
const {MarkdownView} = await import('./page/markdown.js');
const {Runs} = await import('./page/runs.js');
const runs = new Runs();
const view = new MarkdownView(document.createElement('div'), (...piece) => runs.paint(...piece));
const begun = performance.now();
for (let i = 0; i < args[1]; ++i) view.append(args[0]);
view.end();
return performance.now() - begun;
"""

# Random markdown, once whole and once in random pieces: the same elements, the same text at the same places.
CHUNK_PROPERTY = """
const {MarkdownView} = await import('./page/markdown.js');
let state = 12345;
const random = (below) => { state = (Math.imul(state, 1103515245) + 12345) >>> 0; return (state >>> 8) % below; };
const parts = ['`', '``', '```', '```py\\n', '*', '**', '***', '_', '- ', '* ', '1. ', '12) ', '# ', '### ', '---', '\\n', '\\n',
  '\\n\\n', ' ', '  ', '    ', 'a', 'word', 'two words ', '<b>', '~~~', '~~~\\n', '+', '\\u00e9\\ud83d\\ude00', '\\\\', 'x'.repeat(990), '`'.repeat(90)];
for (let round = 0; round < 3000; ++round) {
  let source = '';
  for (let i = random(24); i >= 0; --i) source += parts[random(parts.length - (random(8) ? 2 : 0))];
  const render = (pieces) => {
    const parent = document.createElement('div');
    let end = 0;
    const view = new MarkdownView(parent, (node, text, start) => {
      if (source.slice(start, start + text.length) !== text) throw new Error('misplaced: ' + JSON.stringify(source));
      node.append(text);
    });
    for (const piece of pieces) view.append(piece);
    view.end();
    parent.normalize();
    return new XMLSerializer().serializeToString(parent);
  };
  const whole = render([source]);
  const pieces = [];
  for (let at = 0; at < source.length;) { const size = 1 + random(5); pieces.push(source.slice(at, at + size)); at += size; }
  const chunked = render(pieces);
  if (whole !== chunked) return JSON.stringify({source, whole, chunked});
}
return null;
"""

if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
