#!/usr/bin/env bash
# Serves the demo model until Ctrl-C, and says how to ask it.
set -euo pipefail
cd "$(dirname "$0")/.."
port="${PORT:-8080}"

cat <<TEXT
The chat page:  http://localhost:$port/
From a shell:   curl http://localhost:$port/v1/chat/completions -H 'Content-Type: application/json' \\
                  -d '{"messages": [{"role": "user", "content": "Why is the sky blue?"}], "max_tokens": 100}'

TEXT
exec build/orthrus serve -m smollm2-135m --port "$port"
