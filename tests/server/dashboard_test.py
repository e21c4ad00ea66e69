"""deploy/grafana/orthrus.json against a live server: a real Prometheus asks it for its metrics, and then every query of the
dashboard has finite data. The dashboard and /metrics speak of the same metrics.

Usage: dashboard_test.py BINARY SOURCE_ROOT. The test keeps the server busy with chats until Prometheus has seen enough."""

import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

import serving

# How Grafana fills in the variables of a query.
VARIABLES = {"$instance": ".*", "$__rate_interval": "10s", "$__range": "1m"}


def queries(dashboard):
    """(title of the panel, expression) of every query, those of the variables too."""
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            metric = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]["query"])
            yield f"variable {variable['name']}", f"count by ({metric[2]}) ({metric[1]})"


def check_names(dashboard, exposed):
    """Every metric of the server is shown, and nothing else is asked for."""
    asked = set(re.findall(r"\borthrus_\w+", " ".join(expression for _, expression in queries(dashboard))))
    asked = {re.sub(r"_bucket$", "", name) for name in asked}
    families = set(re.findall(r"^# TYPE (orthrus_\w+)", exposed, re.M))
    if asked != families:
        sys.exit(f"only the dashboard has {sorted(asked - families)}; only /metrics has {sorted(families - asked)}")


def check_layout(dashboard):
    """No two panels share an id or a place."""
    places = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        for cell in ((x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])):
            if cell in places or cell[0] >= 24:
                sys.exit(f"panel {panel['title']!r} lies over another one")
            places.add(cell)
    ids = [panel["id"] for panel in dashboard["panels"]]
    if len(set(ids)) != len(ids):
        sys.exit("two panels have one id")


def start_prometheus(folder, root, targets):
    """Prometheus with deploy/prometheus.yml, its replicas and interval replaced. Gives the process and its address."""
    text = (root / "deploy/prometheus.yml").read_text()
    text, replaced = re.subn(r"targets: \[.*\]", f"targets: {json.dumps(targets)}", text)
    text, faster = re.subn(r"scrape_interval: \w+", "scrape_interval: 1s", text)
    if (replaced, faster) != (1, 1):
        sys.exit("deploy/prometheus.yml: expected one list of targets and one interval")
    file = folder / "prometheus.yml"
    file.write_text(text)
    checked = subprocess.run(["promtool", "check", "config", file], capture_output=True, text=True)
    if checked.returncode != 0:
        sys.exit(checked.stdout + checked.stderr)
    address = f"127.0.0.1:{serving.free_port()}"
    log = open(folder / "log", "w")
    process = subprocess.Popen(["prometheus", f"--config.file={file}", f"--storage.tsdb.path={folder}/data",
                                f"--web.listen-address={address}"], stdout=log, stderr=log)
    return process, f"http://{address}"


def keep_busy(base, ended):
    """Chats, in a row, some of which begin alike."""
    number = 0
    while not ended.is_set():
        number += 1
        serving.fetch(f"{base}/v1/chat/completions", {
            "messages": [{"role": "user", "content": f"Tom has {number % 3} apples. " * 20}], "max_tokens": 16, "draft_max": 7})
        ended.wait(0.05)


def missing(prometheus, dashboard):
    """What has no finite value now."""
    for title, expression in queries(dashboard):
        for variable, value in VARIABLES.items():
            expression = expression.replace(variable, value)
        status, _, answer = serving.fetch(f"{prometheus}/api/v1/query?{urllib.parse.urlencode({'query': expression})}")
        if status != 200:
            raise OSError(f"Prometheus says {answer}")
        values = [float(sample["value"][1]) for sample in answer["data"]["result"]]
        if not any(math.isfinite(value) for value in values):
            yield f"{title}: {expression}: {values}"


def main():
    binary, root = sys.argv[1], pathlib.Path(sys.argv[2])
    os.environ["PATH"] += ":/usr/sbin"
    dashboard = json.loads((root / "deploy/grafana/orthrus.json").read_text())
    check_layout(dashboard)
    ended = threading.Event()
    with tempfile.TemporaryDirectory() as folder, serving.server(binary, root, "--consensus-stats") as server:
        base = server.url
        process, prometheus = start_prometheus(pathlib.Path(folder), root, [base.removeprefix("http://")])
        busy = threading.Thread(target=keep_busy, args=(base, ended))
        busy.start()
        try:
            deadline = time.monotonic() + 60
            while True:
                time.sleep(1)
                try:
                    left = list(missing(prometheus, dashboard))
                except OSError as error:  # it starts
                    left = [str(error)]
                if not left or time.monotonic() > deadline or process.poll() is not None:
                    break
            check_names(dashboard, serving.fetch(f"{base}/metrics")[2])
        finally:
            ended.set()
            busy.join()
            process.terminate()
            process.wait()
        if left:
            sys.exit("no data for\n" + "\n".join(left) + "\n" + (pathlib.Path(folder) / "log").read_text()[-2000:])
    print(f"{len(list(queries(dashboard)))} queries, all with data")


if __name__ == "__main__":
    main()
