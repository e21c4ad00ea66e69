"""Writes tests/data/template/random.jsonl: random templates with what jinja2 makes of them.

Expressions and statements nest at random over one context, so that constructs meet that nobody
would write a test of. Needs jinja2 3.1.
Usage: python3 tests/text/make_random_cases.py [count] [seed] [path]
"""
import json
import pathlib
import random
import re
import sys

import jinja_reference

CONTEXT = {
    "msgs": [
        {"role": "system", "content": " Be brief. "},
        {"role": "user", "content": [{"type": "text", "text": "What is <b>?"}, {"type": "image"}]},
        {"role": "assistant", "content": None,
         "tool_calls": [{"id": "a1", "function": {"name": "f", "arguments": {"x": [1, 2.5]}}}]},
        {"role": "tool", "content": "né 🙂\n", "name": "f"},
    ],
    "d": {"b": 1, "a": [1, 2.5, None, True], "k": {"x": "y"}, "_u": "low"},
    "n": 7, "m": -3, "f": 2.5, "s": "Hello, wörld & co", "w": " a\tb\n\n c-d ", "t": True,
    "z": None, "e": [], "l": [3, 1, 2], "words": ["b", "A", "c", "a"],
    "rows": [{"k": 1, "v": "x"}, {"k": 2, "v": "y"}, {"k": 1, "v": "z"}, {"v": "q"}],
    "tree": [{"v": 1, "c": [{"v": 2, "c": []}, {"v": 3}]}, {"v": 4}],
}

STRINGS = ["''", "'a'", "'b c'", "', '", "'l'", "'é🙂'", "'<i>&\"'", "' x '", "'a-b_c'", "'\\n'", "'10'",
           "'role'", "'user'", "'%s'", "'{}'", "\"it's\"", "'2.5'", "'a,b,,c'", "'xxhixx'", "'HeLLo'"]
LISTS = ["l", "e", "words", "[1, 2, 3]", "[1.5, 2, true]", "(1, 'a')", "range(4)", "range(5, 0, -2)",
         "s.split()", "d.a", "[[1, 2], [3]]", "['x', 'y']", "d.keys()", "d.values() | list", "'abc'",
         "[none, 0, '']"]
MAPPINGS = ["d", "d.k", "msgs[0]", "{'a': 1, 'b': [2]}", "dict(x=1, y='z')", "rows[0]", "{}",
            "msgs[2].tool_calls[0]['function']"]
ROWS = ["msgs", "rows", "tree", "msgs[1:]", "rows[::-1]", "d | dictsort", "d.items()"]
UNARY_STRING = ["upper", "lower", "title", "capitalize", "trim", "length", "list", "reverse", "first", "last",
                "string", "escape", "e", "safe", "wordcount", "urlencode", "striptags", "tojson", "indent",
                "int", "float", "trim('x')", "replace('l', 'L')", "replace('l', '', 1)", "default('q')",
                "indent(2)", "indent('> ', true)", "indent(3, blank=true)", "center(12)", "truncate(8)",
                "truncate(7, true)", "truncate(6, false, '!', 0)", "wordwrap(5)", "wordwrap(4, false)",
                "wordwrap(6, wrapstring='|')", "batch(2) | list", "slice(3) | list", "unique | join",
                "sort | join", "forceescape", "urlize", "pprint", "format", "count", "max", "min",
                "tojson(indent=2)", "join('.')", "map('upper') | join", "select('in', 'aeo') | join",
                "xmlattr", "filesizeformat"]
UNARY_LIST = ["length", "first", "last", "join", "join(', ')", "list", "reverse | list", "sort", "sort(true)",
              "unique | list", "sum", "max", "min", "tojson", "tojson(indent=1)", "string", "batch(2) | list",
              "batch(2, 0) | list", "slice(2) | list", "slice(2, 'f') | list", "map('string') | join('-')",
              "map('int') | list", "select | list", "reject | list", "select('odd') | list",
              "select('number') | list", "reject('string') | list", "select('>', 1) | list", "pprint",
              "sort(case_sensitive=true)", "default([1], true)", "select('defined') | list", "count",
              "map('upper') | list", "map('default', 1) | list", "unique(case_sensitive=true) | list",
              "select('sameas', true) | list", "sum(start=10)", "min(case_sensitive=true)"]
UNARY_MAPPING = ["length", "list", "items | list", "dictsort", "dictsort(true, 'value')", "tojson", "string",
                 "dictsort(reverse=true)", "tojson(sort_keys=true)", "urlencode", "xmlattr", "pprint",
                 "xmlattr(false)", "first", "tojson(separators=(',', ':'))", "tojson(ensure_ascii=true)"]
UNARY_ROWS = ["map(attribute='role') | list", "map(attribute='k', default=0) | list", "length",
              "selectattr('role', 'equalto', 'user') | list", "selectattr('k') | list", "tojson",
              "rejectattr('role', 'in', ['user', 'tool']) | map(attribute='role') | join(' ')",
              "groupby('k', default=9)", "sort(attribute='v')", "join('/', attribute='v')", "last", "first",
              "map(attribute='content') | list", "selectattr('tool_calls', 'defined') | list",
              "unique(attribute='k') | list", "sum(attribute='k')", "max(attribute='v')", "batch(3) | list",
              "map('length') | list", "map(attribute='c.0.v') | list", "groupby('v')",
              "sort(attribute='v,k')", "selectattr('content', 'string') | map(attribute='content') | list"]
METHODS = ["upper()", "lower()", "title()", "capitalize()", "swapcase()", "strip()", "lstrip('H ')", "rstrip()",
           "strip('x ')", "split()", "split('l')", "split('l', 1)", "rsplit(' ', 1)", "rsplit(none, 1)",
           "split(' ', maxsplit=1)", "splitlines()", "splitlines(true)", "startswith('H')", "endswith(('d', 'o'))",
           "startswith(('x', ' '))", "find('l')", "rfind('l')", "count('l')", "index('l')", "replace('l', 'LL')",
           "replace('l', '', 1)", "isdigit()", "isalpha()", "isupper()", "islower()", "isspace()", "isalnum()",
           "join(['1', '2'])", "join(words)", "format(1, 2)", "zfill(8)", "center(20, '*')", "ljust(9)", "rjust(9)",
           "partition('l')", "rpartition('-')", "removeprefix('H')", "removesuffix('o')", "expandtabs()",
           "expandtabs(4)", "istitle()", "isascii()", "isidentifier()", "isprintable()", "casefold()",
           "find('l', 3)", "count('l', 1, 9)", "isdecimal()", "isnumeric()", "startswith('l', 2)",
           "translate({97: 'X'})", "format_map({'a': 1})", "nothing()", "_private"]
TESTS = ["defined", "none", "string", "number", "mapping", "iterable", "sequence", "true", "false", "boolean",
         "integer", "float", "undefined", "callable", "odd", "even", "divisibleby 3", "divisibleby(2)",
         "in [1, 'a', none]", "eq 1", "equalto 'a'", "ne 7", "sameas none", "lower", "upper", "gt 1", "lt(3)",
         "escaped", "filter", "test", "== 1", "ge 2", "le 2"]
BINARY = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", ">", "<=", ">=", "and", "or", "in", "not in"]
FORMATS = ["'%s'", "'%r'", "'%d'", "'%5.2f'", "'%-8s|'", "'%05d'", "'%x'", "'%+d'", "'%s-%s'", "'%(x)s'", "'%%'",
           "'%c'", "'%e'", "'%g'", "'%.3s'", "'%o'", "'%#x'", "'%i'", "'%*d'", "'%a'"]
FIELDS = ["{}", "{0}", "{!r}", "{:>6}", "{:<6}|", "{:^7}|", "{:05.1f}", "{:,}", "{:x}", "{:*^9}", "{0[0]}", "{:e}",
          "{:.2f}", "{:+d}", "{:.1%}", "{:g}", "{:s}", "{:b}", "{0:{1}}", "{:_}", "{!s:>5}", "{x}", "{:#x}", "{:c}",
          "{:n}", "{!a}"]


class Generator:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = []

    def pick(self, *options):
        return self.random.choice(options)

    def any_of(self, options):
        return self.random.choice(options)

    def string(self, depth):
        if depth <= 0:
            return self.any_of([*STRINGS, "s", "w", "msgs[0].content", "d.k.x"])
        made = self.random.randrange(9)
        if made == 0:
            return f"({self.string(depth - 1)} ~ {self.value(depth - 1)})"
        if made == 1:
            return f"({self.string(depth - 1)} + {self.string(depth - 1)})"
        if made == 2:
            return f"{self.string(depth - 1)}[{self.slice()}]"
        if made == 3:
            return f"({self.any_of(FORMATS)} % {self.pick(self.value(depth - 1), f'({self.value(0)}, {self.value(0)})')})"
        if made == 4:
            fields = "".join(self.any_of(FIELDS) for _ in range(self.random.randint(1, 2)))
            return f"'{fields}'.format({self.value(depth - 1)}, {self.value(0)}, x={self.value(0)})"
        if made == 5:
            return f"({self.string(depth - 1)} | {self.any_of(UNARY_STRING)})"
        if made == 6:
            return f"({self.string(depth - 1)} * {self.pick('0', '2', 'n', 'm')})"
        return f"{self.string(depth - 1)}.{self.any_of(METHODS)}"

    def slice(self):
        part = lambda: self.pick("", "0", "1", "2", "-1", "-2", "n", "none", "m")
        return self.pick("0", "-1", "1", "99", f"{part()}:{part()}", f"{part()}:{part()}:{self.pick('', '2', '-1', '-2')}")

    def number(self, depth):
        if depth <= 0:
            return self.pick("n", "m", "f", "0", "1", "3", "2.5", "1e3", "-1", "t", "d.b", "l[0]", "0.1", "100")
        made = self.random.randrange(5)
        if made < 2:
            return f"({self.number(depth - 1)} {self.any_of(BINARY[:6])} {self.number(depth - 1)})"
        if made == 2:
            filters = ["abs", "round", "round(1)", "int", "float", "string", "round(1, 'floor')", "filesizeformat",
                       "round(0, 'ceil')", "filesizeformat(true)", "tojson", "pprint", "default(1)", "length"]
            return f"({self.number(depth - 1)} | {self.any_of(filters)})"
        if made == 3:
            return f"-{self.number(depth - 1)}"
        return f"({self.pick(self.any_of(LISTS), self.any_of(MAPPINGS), self.string(depth - 1))} | length)"

    def sequence(self, depth):
        if depth <= 0:
            return self.any_of(LISTS)
        made = self.random.randrange(6)
        if made == 0:
            return f"[{self.value(depth - 1)}, {self.value(depth - 1)}]"
        if made == 1:
            return f"({self.sequence(depth - 1)} + {self.sequence(depth - 1)})"
        if made == 2:
            return f"({self.sequence(depth - 1)} | {self.any_of(UNARY_LIST)})"
        if made == 3:
            return f"{self.sequence(depth - 1)}[{self.slice()}]"
        if made == 4:
            return f"({self.any_of(ROWS)} | {self.any_of(UNARY_ROWS)})"
        return f"({self.any_of(MAPPINGS)} | {self.any_of(UNARY_MAPPING)})"

    def condition(self, depth):
        made = self.random.randrange(4)
        if made == 0:
            return f"{self.value(depth - 1)} is {self.pick('', 'not ')}{self.any_of(TESTS)}"
        if made == 1:
            return f"({self.value(depth - 1)} {self.any_of(BINARY[8:])} {self.value(depth - 1)})"
        if made == 2:
            return f"not {self.value(depth - 1)}"
        return self.value(depth - 1)

    def value(self, depth):
        if depth <= 0:
            return self.any_of(["n", "f", "s", "w", "t", "z", "e", "l", "d", "words", "missing", "1", "'a'", "none", "true",
                                "msgs[0]", "msgs[1].content", "msgs[-1].name", "d['_u']", *self.names])
        made = self.random.randrange(12)
        if made < 4:
            return self.string(depth)
        if made < 6:
            return self.number(depth)
        if made < 8:
            return self.sequence(depth)
        if made == 8:
            return f"({self.value(depth - 1)} if {self.condition(depth - 1)} else {self.value(depth - 1)})"
        if made == 9:
            return f"({self.condition(depth)})"
        if made == 10:
            return f"{self.any_of(MAPPINGS)}{self.pick('.a', '.get(%s)' % self.value(0), '[%s]' % self.value(0), '.x.y', '.items() | list')}"
        return f"({self.value(depth - 1)} {self.any_of(BINARY)} {self.value(depth - 1)})"

    def tag(self, text):
        return "{%" + self.pick("", "", "-", "+", "- ") + f" {text} " + self.pick("", "", "-") + "%}"

    def text(self):
        return self.pick("", "", "x", "\n", " ", "  \n", "\n\n ", "é ", "a\n  ", "\t")

    def output(self, depth):
        return "{{" + self.pick("", "", "-") + f" {self.value(depth)} " + self.pick("", "", "-") + "}}"

    def body(self, depth, in_loop=False):
        parts = [self.text()]
        for _ in range(self.random.randint(1, 2)):
            parts += [self.statement(depth - 1, in_loop) if depth > 0 and self.random.random() < 0.6
                      else self.output(2), self.text()]
        return "".join(parts)

    def loop(self, depth):
        before = list(self.names)
        made = self.random.randrange(5)
        if made == 0:
            head = f"for r in {self.any_of(ROWS)}"
            self.names += ["r", "r.role", "r.v", "r['content']"]
        elif made == 1:
            head = f"for k, v in {self.any_of(MAPPINGS)}.items()"
            self.names += ["k", "v"]
        elif made == 2:
            head = "for r in tree recursive"
            self.names += ["r.v", "loop.depth", "(loop(r.c) if r.c is defined else '.')"]
        else:
            head = f"for i in {self.sequence(1)}"
            self.names += ["i"]
        if self.random.random() < 0.25 and "recursive" not in head:
            head += f" if {self.condition(1)}"
        self.names += ["loop.index", "loop.last", "loop.first", "loop.revindex0", "loop.length", "loop.previtem",
                       "loop.nextitem", "loop.cycle('o', 'e')", "loop.index0", "loop.changed(loop.index // 2)"]
        body = self.body(depth, in_loop=True)
        self.names = before
        otherwise = self.tag("else") + self.body(0) if self.random.random() < 0.2 else ""
        return self.tag(head) + body + otherwise + self.tag("endfor")

    def statement(self, depth, in_loop=False):
        made = self.random.randrange(12)
        if made < 3:
            return self.loop(depth)
        if made < 5:
            otherwise = ""
            if self.random.random() < 0.4:
                otherwise = self.tag(f"elif {self.condition(1)}") + self.body(depth)
            if self.random.random() < 0.5:
                otherwise += self.tag("else") + self.body(depth)
            return self.tag(f"if {self.condition(2)}") + self.body(depth, in_loop) + otherwise + self.tag("endif")
        if made == 5:
            name = self.pick("v1", "v2", "n")
            made = self.tag(f"set {name} = {self.value(2)}")
            self.names.append(name)
            return made
        if made == 6:
            return self.tag("set v3" + self.pick("", " | upper", " | trim | length")) + self.body(depth) + \
                self.tag("endset") + "{{ v3 }}"
        if made == 7:
            arguments = self.pick("a", "a, b=2", "a, b=a", "")
            before, self.names = self.names, ["a", "b", "n", "s", "varargs", "kwargs", "z"]
            body = self.body(depth)
            self.names = before
            call = self.pick("m1(1)", "m1(s, b=n)", "m1(1, 2, 3, x=4)", "m1()", "m1(*l)", "m1(**d.k)", "m1(a=l)")
            return self.tag(f"macro m1({arguments})") + body + self.tag("endmacro") + "{{ " + call + " }}"
        if made == 8:
            return self.tag("macro m2(x=1)") + "[{{ caller(" + self.pick("", "x", "x, n") + ") }}]" + \
                self.tag("endmacro") + self.tag(f"call{self.pick('', '(y)', '(y, q=3)')} m2({self.value(0)})") + \
                self.pick("{{ y }}", "{{ q }}", "") + self.body(depth) + self.tag("endcall")
        if made == 9:
            filters = self.pick("upper", "trim", "indent(2)", "replace('a', 'b') | title", "length")
            return self.tag("filter " + filters) + self.body(depth) + self.tag("endfilter")
        if made == 10:
            return self.tag(f"with {self.pick('', f'n = {self.value(1)}', f'q = {self.value(1)}, s = n')}") + \
                self.body(depth) + self.tag("endwith")
        if in_loop:
            return self.tag(f"if {self.condition(1)}") + self.tag(self.pick("break", "continue")) + self.tag("endif")
        return self.tag("set ns = namespace(c=0)") + self.tag(f"for i in {self.sequence(0)}") + \
            self.tag(f"set ns.c = {self.pick('ns.c + 1', 'i', f'ns.c ~ {self.value(0)}')}") + self.tag("endfor") + "{{ ns.c }}"


def make(count, seed):
    """Templates that differ, about a quarter of them errors."""
    cases = []
    seen = set()
    number = 0
    while len(cases) < count:
        generator = Generator(f"{seed}-{number}")
        number += 1
        template = generator.output(3) if number % 2 else generator.body(3)
        if template in seen or len(template) > 600:
            continue
        seen.add(template)
        names = [name for name in CONTEXT if re.search(rf"\b{name}\b", template)]
        case = jinja_reference.case(template, {name: CONTEXT[name] for name in names})
        # jinja2 computes constants by other rules than variables, but not where it cannot know yet
        # whether to escape.
        unfolded = "{% autoescape z %}" + template + "{% endautoescape %}"
        if case.keys() != jinja_reference.case(unfolded, {**case["context"], "z": None}).keys():
            continue
        # Addresses and the memory Python has are nothing to agree on.
        if " at 0x" in case.get("text", "") or len(case.get("text", "")) > 2000 or "MemoryError" in case.get("error", ""):
            continue
        if "error" in case and generator.random.random() < 0.7:
            continue
        cases.append(case)
    return cases


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    seed = sys.argv[2] if len(sys.argv) > 2 else "orthrus"
    default = pathlib.Path(__file__).parent.parent / "data" / "template" / "random.jsonl"
    path = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else default
    cases = make(count, seed)
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(CONTEXT, ensure_ascii=False) + "\n")
        for case in cases:
            del case["context"]
            file.write(json.dumps(case, ensure_ascii=False) + "\n")
    print(f"{len(cases)} cases, {sum('error' in case for case in cases)} of them errors")


if __name__ == "__main__":
    main()
