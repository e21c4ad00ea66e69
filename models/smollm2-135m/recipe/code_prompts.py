"""Coding tasks from the documented functions of Python's standard library, as JSONL prompts.

  python3 code_prompts.py LIBRARY COUNT > code.jsonl

LIBRARY is the folder of the library (/usr/lib/python3.11). Half of the prompts are a function's head with
its docstring, to be completed; the others ask for it in words.
"""
import ast
import hashlib
import json
import sys
from pathlib import Path

ASK = (
    "Write a Python function `{head}` that does the following: {first}",
    "Implement this in Python:\n\n{doc}",
    "Write Python code for `{head}`.\n\n{doc}",
    "How would you write a function in Python with this description?\n\n{first}",
)


def functions(library):
    for path in sorted(Path(library).rglob("*.py")):
        if {"test", "tests", "idlelib", "lib2to3"} & set(path.parts):
            continue
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                doc = ast.get_docstring(node)
                if doc and doc.isascii() and 40 <= len(doc) <= 500:
                    yield node, doc


def prompt(node, doc, number):
    arguments = [a for a in node.args.args if a.arg not in ("self", "cls")]
    head = f"{node.name}({', '.join(a.arg for a in arguments)})"
    first = " ".join(doc.split("\n\n")[0].split())
    if number % 2 == 0:
        body = doc.replace("\n", "\n    ")
        return f'def {head}:\n    """ {body}\n    """\n'
    return ASK[number // 2 % len(ASK)].format(head=head, first=first, doc=doc)


def main(library, count):
    # In an order that mixes the modules and is the same everywhere.
    found = {doc: node for node, doc in functions(library)}
    docs = sorted(found, key=lambda doc: hashlib.sha256(doc.encode()).digest())
    for number, doc in enumerate(docs[: int(count)]):
        print(json.dumps({"prompt": prompt(found[doc], doc, number)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
