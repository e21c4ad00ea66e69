"""A server that behaves like the Hugging Face hub, and another for the storage host that it redirects to."""

import hashlib
import http.server
import json
import ssl
import threading
import urllib.parse

SIGNATURE = "X-Amz-Signature=abc123&Expires=60"


def git_name(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Repository:
    """files: {path: bytes}; those in `large` are in large-file storage."""

    def __init__(self, files, large=(), commit="a" * 40, **traits):
        self.files, self.large, self.commit = files, set(large), commit
        self.private = traits.get("private", False)
        self.gated = traits.get("gated", False)
        self.bare_listing = traits.get("bare_listing", False)  # as of a mirror that knows no ?blobs=true
        self.extra_siblings = traits.get("extra_siblings", [])
        self.sizes = traits.get("sizes", {})  # what the listing says in place of the truth

    def content_name(self, path):
        content = self.files[path]
        return hashlib.sha256(content).hexdigest() if path in self.large else git_name(content)

    def siblings(self):
        entries = []
        for path, content in self.files.items():
            entry = {"rfilename": path}
            size = self.sizes.get(path, len(content))
            if not self.bare_listing:
                entry |= {"size": size, "blobId": git_name(content)}
                if path in self.large:
                    entry["lfs"] = {"sha256": self.content_name(path), "size": size, "pointerSize": 134}
            entries.append(entry)
        return entries + self.extra_siblings


class FakeHub:
    """`faults`: {path of a file: [what happens to its next GETs]}, each one of ("cut", bytes sent),
    ("whole",): the Range is ignored, ("cut from the start", bytes sent): both, ("stall", bytes sent),
    ("slow", seconds), ("status", code, headers), ("corrupt",), ("redirect", address).
    `requests`: (server, method, path, headers) of all."""

    def __init__(self, token="hf_secret", certificate=None):
        """certificate: a PEM file with its key; the hub then speaks HTTPS, the storage host HTTP as always."""
        self.token, self.certificate = token, certificate
        self.repositories, self.faults, self.requests = {}, {}, []
        self.stopping = threading.Event()
        self.hub = self.serve("hub")
        self.storage = self.serve("storage")
        self.endpoint = f"http{'s' if certificate else ''}://127.0.0.1:{self.hub.server_address[1]}"
        self.storage_endpoint = f"http://127.0.0.1:{self.storage.server_address[1]}"

    def serve(self, name):
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                fake.requests.append((name, self.command, self.path, dict(self.headers)))
                (fake.answer_hub if name == "hub" else fake.answer_storage)(self)

            do_HEAD = do_GET

            def handle_one_request(self):
                try:
                    super().handle_one_request()
                except OSError:  # a client that goes away is nothing to report
                    self.close_connection = True

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        if self.certificate and name == "hub":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return server

    def stop(self):
        self.stopping.set()
        for server in (self.hub, self.storage):
            server.shutdown()
            server.server_close()

    def asked(self, server, what):
        return [request for request in self.requests if request[0] == server and what in request[2]]

    # What the two servers answer.

    @staticmethod
    def send(handler, status, body=b"", headers=None):
        handler.send_response(status)
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        if "Content-Length" not in (headers or {}):
            handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(body)

    def answer_hub(self, handler):
        path = urllib.parse.unquote(urllib.parse.urlsplit(handler.path).path)
        parts = path.strip("/").split("/")
        api = parts[:2] == ["api", "models"]
        name = "/".join(parts[2:4] if api else parts[:2])
        repository = self.repositories.get(name)
        allowed = handler.headers.get("Authorization") == f"Bearer {self.token}"
        if isinstance(repository, str):  # it has another name by now
            moved = handler.path.replace(name, repository)
            return self.send(handler, 307, headers={"Location": moved})
        if repository is None or (repository.private and not allowed):
            return self.send(handler, 404 if allowed else 401, b"{}", {"X-Error-Code": "RepoNotFound"})
        if api:
            return self.answer_listing(handler, repository, name, "/".join(parts[5:]) or "main")
        file = "/".join(parts[4:])
        if repository.gated and not allowed:
            return self.send(handler, 403, b"{}", {"X-Error-Code": "GatedRepo"})
        if parts[2] != "resolve" or parts[3] not in ("main", repository.commit) or file not in repository.files:
            return self.send(handler, 404, b"{}", {"X-Error-Code": "EntryNotFound"})
        headers = {"X-Repo-Commit": repository.commit, "Accept-Ranges": "bytes"}
        if file in repository.large:
            address = f"{self.storage_endpoint}/{name}/{urllib.parse.quote(file)}?{SIGNATURE}"
            headers |= {"Location": address, "X-Linked-Etag": f'"{repository.content_name(file)}"',
                        "X-Linked-Size": str(len(repository.files[file])), "ETag": '"something else"'}
            fault = self.faults.get(file, [])
            if fault and fault[0][0] == "redirect":
                headers["Location"] = fault.pop(0)[1]
            return self.send(handler, 302, headers=headers)
        return self.send_file(handler, repository.files[file], file,
                              headers | {"ETag": f'"{repository.content_name(file)}"'})

    def answer_listing(self, handler, repository, name, revision):
        faults = self.faults.get("listing", [])
        if faults:
            _, status, headers = faults.pop(0)
            return self.send(handler, status, b"<html>", headers)
        if revision not in ("main", "v2", repository.commit):
            return self.send(handler, 404, b"{}", {"X-Error-Code": "RevisionNotFound"})
        body = {"id": name, "modelId": name, "sha": repository.commit, "private": repository.private, "tags": [],
                "downloads": 0, "likes": 0, "siblings": repository.siblings()}
        return self.send(handler, 200, json.dumps(body).encode(), {"Content-Type": "application/json"})

    def answer_storage(self, handler):
        address = urllib.parse.urlsplit(handler.path)
        owner, name, file = urllib.parse.unquote(address.path).strip("/").split("/", 2)
        if address.query != SIGNATURE:
            return self.send(handler, 403, b"<Error>signature</Error>")
        content = self.repositories[f"{owner}/{name}"].files[file]
        return self.send_file(handler, content, file, {"ETag": '"of the storage host"'})

    def send_file(self, handler, content, file, headers):
        faults = self.faults.get(file, [])
        fault = faults.pop(0) if faults and handler.command == "GET" else (None,)
        if fault[0] == "status":
            return self.send(handler, fault[1], b"no", fault[2])
        status, body = 200, content
        asked = handler.headers.get("Range")
        if asked and fault[0] not in ("whole", "cut from the start"):
            first = int(asked.removeprefix("bytes=").rstrip("-"))
            if first >= len(content):
                return self.send(handler, 416)
            status, body = 206, content[first:]
            headers = headers | {"Content-Range": f"bytes {first}-{len(content) - 1}/{len(content)}"}
        if fault[0] == "corrupt":
            body = bytes([body[0] ^ 1]) + body[1:]
        if fault[0] == "slow":
            self.stopping.wait(fault[1])
        headers = headers | {"Content-Length": str(len(body))}
        if fault[0] in ("cut", "cut from the start", "stall"):
            body = body[:fault[1]]
        self.send(handler, status, body, headers)
        if fault[0] in ("cut", "cut from the start"):
            handler.close_connection = True
        if fault[0] == "stall":
            handler.wfile.flush()
            self.stopping.wait(30)
            handler.close_connection = True
        return None
