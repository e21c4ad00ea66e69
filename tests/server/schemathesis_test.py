"""Schemathesis against /openapi.json of a live server: whatever a request may be, the answer is one that the document names, and
never an error of the server.

Usage: schemathesis_test.py BINARY SOURCE_ROOT [arguments of `schemathesis run`], with the Python of .venv."""

import pathlib
import subprocess
import sys
import tempfile

import serving

BINARY, ROOT = sys.argv[1:3]
# positive_data_acceptance is not among them: what JSON Schema cannot say (a model that is not served, an array that needs another
# field) is refused with a 400.
CHECKS = ("not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
          "response_schema_conformance,negative_data_rejection,unsupported_method,allow_header_conformance,ignored_auth")


def main():
    # A request without max_tokens ends with the context.
    with serving.server(BINARY, ROOT, "-c", "128", alias="tiny") as server, tempfile.TemporaryDirectory() as folder:
        command = [pathlib.Path(sys.executable).parent / "schemathesis", "run", f"{server.url}/openapi.json", "--checks", CHECKS,
                   "--phases", "examples,coverage,fuzzing", "--max-examples", "40", "--seed", "1", "--no-color", "--continue-on-failure",
                   "--generation-database", "none", *sys.argv[3:]]
        done = subprocess.run(command, cwd=folder, timeout=300)
        if server.process.poll() is not None:
            sys.exit(f"the server ended with {server.process.returncode}:\n{''.join(server.lines[-20:])}")
        left = sum(serving.metrics(server.url)[f'orthrus_requests{{state="{state}"}}'] for state in ("waiting", "prefilling", "decoding"))
        said = [line for line in server.lines if ": error: " in line]
    if done.returncode != 0 or left or said:
        sys.exit(f"schemathesis: {done.returncode}; answers under way: {left}; the server's errors: {said}")


if __name__ == "__main__":
    main()
