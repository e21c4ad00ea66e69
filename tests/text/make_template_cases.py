"""Writes tests/data/template/cases.jsonl: small templates with what jinja2 makes of them.

The environment is the one transformers' apply_chat_template uses. Needs jinja2 3.1.
Usage: python3 tests/text/make_template_cases.py
"""
import json
import pathlib

import jinja_reference

CONTEXT = {
    "messages": [{"role": "system", "content": " Be brief. "}, {"role": "user", "content": "Hi <b>"},
                 {"role": "assistant", "content": "né 🙂\n", "tool_calls": [{"id": 1}]}],
    "d": {"b": 1, "a": [1, 2.5, None, True], "items": "own", "k": {"x": "y"}},
    "x": "X", "n": 7, "f": 2.0, "s": "Hello, wörld", "t": True, "z": None, "e": [], "l": [3, 1, 2],
    "words": ["b", "A", "c", "a"],
}


def case(template, context=None):
    return jinja_reference.case(template, CONTEXT if context is None else context)


EXPRESSIONS = r"""
n + 1|n - 10|n * 2|n / 2|n // 2|-n // 2|n % 4|-n % 4|n ** 2|2 ** -1|-2 ** 2|f|f * 3|f // 0.3|-f % 0.3|1e16|1e15|1.5e-5|0.1 + 0.2
1_000|0x1F|0b11|0o17|1/0|1 // 0|5 % 0|n ~ f ~ z ~ t|'a' + 1|'a' ~ 1|'a' 'b' "c"|'a\tb\'\x41\u00e9\101\q'|[1, 'a', none, true, 1.0]
(1,)|()|(1, 2)|{'a': 1, 2: [3]}|{}|[1, [2, (3, {'x': none})]]|"it's"|["it's", 'q"', 'b\\', 'é\n\x00']
1 < 2 < 3|1 < 3 < 2|1 == 1.0|true == 1|'a' < 'b'|[1, 2] < [1, 3]|1 < 'a'|n in l|3 in l|'a' in d|'ell' in s|1 in s|3 not in l|not n in l
t and z|z or 'x'|z and 1|not z|n if t|n if z|n if z else 'no'|1 if z else 2 if t else 3|missing|missing.x|missing['x']|missing + 1|missing == missing2|missing in l
d.b|d['b']|d.missing|d['missing'].x|d.items|d['items']|d.k.x|d['k']['x']|l[0]|l[-1]|l[5]|l['x']|l.0|s[0]|s[-1]|s[99]|s[7:9]|z.x|n.x|n['x']
l[1:]|l[:-1]|l[::-1]|l[::2]|l[-2:]|l[5:]|s[::-1]|s[1:4]|s[-3:]|l[::0]|l['a':]|d[1:]|(1, 2, 3)[::-1]|l[None:2]|messages[1:][0].role
d.items()|d.keys()|d.values()|d.keys() | list|d.values() | list | length|d.get('b')|d.get('q')|d.get('q', 5)|d.pop('b')|l.append(4)|l.index(1)|l.count(3)|d.copy() == d
s.upper()|s.lower()|s.title()|s.capitalize()|s.swapcase()|s.split()|s.split(', ')|s.split('l', 1)|s.rsplit('l', 1)|' a  b '.split()|'a,b,,c'.split(',')|''.split()|''.split(',')
'a b c'.split(none, 1)|'a b c'.rsplit(none, 1)|s.startswith('He')|s.startswith(('x', 'H'))|s.endswith('d')|s.startswith('l', 2)|s.find('l')|s.find('q')|s.rfind('l')|s.index('q')|s.count('l')
s.replace('l', 'L')|s.replace('l', 'L', 1)|'abc'.replace('', '-')|'xxhixx'.strip('x')|' hi '.strip()|'xxhi'.lstrip('x')|'hixx'.rstrip('x')|'\n\n a \n'.strip('\n')|','.join(['a', 'b'])|','.join([1])
'ab'.isalpha()|'12'.isdigit()|'a1'.isalnum()|' '.isspace()|'ab'.islower()|'AB'.isupper()|'a-b'.partition('-')|'a'.partition('-')|'a-b-c'.rpartition('-')|'a\nb\r\nc'.splitlines()
'7'.zfill(3)|'-7'.zfill(4)|'a'.center(4)|'ab'.center(5, '*')|'a'.ljust(3) ~ '|'|'a'.rjust(3)|'prefix'.removeprefix('pre')|'it'.removesuffix('t')|'{} {}'.format(1, 'a')|'{0}{1}{0}'.format(1, 2)|'{a}'.format(a=3)
'{:>5}|{:<5}|{:^5}'.format(1, 'a', 'b')|'{:05.2f}'.format(3.14159)|'{:,}'.format(1234567)|'{!r}'.format('a')|'{{}}'.format()|'%s %d' % ('a', 3)|'%5.1f' % 2.55|'%05d' % 42|'%x' % 255|'%s' % 'a'|'%(a)s' % {'a': 1}|'%d' % 'a'|'%s %s' % 'a'
s | upper|s | lower|s | title|'a-b (c) d_e' | title|s | capitalize|'  x ' | trim|'xax' | trim('x')|s | length|l | count|d | length|n | length|z | length|e | length
l | join|l | join(', ')|messages | join(',', attribute='role')|missing | join|d | tojson|d | tojson(indent=2)|messages | tojson|s | tojson|'<&>\'"' | tojson|1.0 | tojson|e | tojson(indent=4)|{} | tojson(indent=2)|{1: none, true: 2} | tojson
missing | tojson|d | tojson(separators=(',', ':'))|d | tojson(sort_keys=true)|s | tojson(ensure_ascii=true)|'🙂' | tojson(ensure_ascii=true)|'\x7f\x01\b' | tojson|[1,[2]] | tojson(indent=1)|(1, 2) | tojson
missing | default('x')|z | default('x')|z | default('x', true)|'' | default('x', boolean=true)|missing | d|l | first|l | last|e | first|e | last|s | first|s | last|missing | first|missing | last|missing | list
s | list | length|d | list|l | sort|l | sort(reverse=true)|words | sort|words | sort(case_sensitive=true)|messages | sort(attribute='role') | map(attribute='role') | list|[1, 'a'] | sort|l | reverse | list|s | reverse|words | unique | list|[1, 1.0, 2] | unique | list
l | max|l | min|e | max|l | sum|[0.1, 0.2] | sum|words | sum|messages | map(attribute='role') | join(' ')|messages | map(attribute='tool_calls') | list|messages | map(attribute='tool_calls', default=0) | list|messages | map(attribute='content.0') | list
words | map('upper') | list|l | map('string') | join('-')|words | map('replace', 'a', 'z') | list|l | map('nofilter') | list|messages | selectattr('role', 'equalto', 'user') | list | length|messages | selectattr('tool_calls') | list | length
messages | rejectattr('role', 'in', ['user', 'system']) | map(attribute='role') | list|messages | selectattr('tool_calls', 'defined') | list | length|l | select('odd') | list|l | reject('odd') | list|[0, 1, ''] | select | list|l | select('>', 1) | list
l | select('odd') | length|(l | select('odd'))[0]|(l | select('odd')) is iterable|d | items | list|d.k | items | list|l | items | list|missing | items | list|d | dictsort | list|{'b': 1, 'A': 2} | dictsort|{'b': 1, 'A': 2} | dictsort(by='value', reverse=true)
n | string ~ 'x'|'42' | int|'42.9' | int|'x' | int|'x' | int(5)|'ff' | int(0, 16)|2.9 | int|-2.9 | int|true | int|z | int|missing | int|'1.5' | float|'x' | float|n | float|'1e3' | float|' 1_0 ' | int|'inf' | float|-3 | abs|-3.5 | abs|2.5 | round|3.5 | round
2.567 | round(2)|2.1 | round(0, 'ceil')|7 | round|7 | round(-1)|'a\nb\n\nc' | indent|'a\nb' | indent(2, true)|'a\n\nb' | indent(2, blank=true)|'a\nb' | indent('> ')|'<a&"b">' | e|s | replace('l', 'L')|s | replace('l', 'L', 1)|n | replace('7', 'x')
'%s-%s' | format(1, 2)|'%(x)s' | format(x=1)|l | batch(2) | list|l | batch(2, 0) | list|messages | groupby('role') | map('first') | list|'a b c d e' | truncate(6)|'hello world' | truncate(7, true, leeway=0)|'a b-c' | wordcount|d | attr('b')|'x' | center(5)
n is defined|missing is defined|missing is undefined|z is none|s is string|d is mapping|l is mapping|l is iterable|n is iterable|s is sequence|d is sequence|missing is sequence|d.items() is sequence|n is number|t is number|n is integer|t is integer|f is float|t is boolean
t is true|n is true|z is false|n is odd|n is even|n is divisibleby(7)|n is divisibleby 7|'a' is lower|'A' is upper|n is eq 7|n is equalto(7)|n is not equalto 8|n is ne 7|n is lt 8|n is ge 7|n is in [7]|3 is in l|n is sameas n|s is callable|d.items is callable|n is not none and t
range is callable|n is nosuchtest|n | nosuchfilter|range(5) | list|range(1, 10, 3) | list|range(5, 0, -2) | list|range(3)|range(1, 2)|range(0, 6, 2)|range(10)[2]|range(10)[2:4] | list|range(10 ** 6)|range(3) | length|dict(a=1, b=2)|dict([['x', 1]])|namespace(a=1).a|namespace(a=1)['a']
namespace(a=[1])|namespace(a=1).b is defined|d.__class__|''.__class__.__mro__|s.nomethod()|n()|z()|missing()|l * 2|'ab' * 3|3 * 'ab'|'a' * -1|[1] + [2]|(1,) + (2,)|[1] + (2,)|'a' - 'b'|- 'a'|+n|-t|t + t|not missing|[missing]|z ~ missing|{'a': missing}
(n | string)[0]|-n | abs|-3 | abs ~ 'x'|n | string | length|2 ** 3 ** 2|10 - 2 - 3|100 // 7 // 2|1 + 2 ~ 3 + 4|1 ~ 2 * 3|not t == z|t or 1 / 0|z and 1 / 0|1 in [1] in [[1]]|'a' if 'a' in 'abc' else 'b'|[1, 2, 3,]|{'a': 1,}|((1))|1,2|n,|'a' is string ~ 'b'
"%s" % l|"%s" % (l,)|'a' == "a"|1 != 1.0|none == z|none is none|None|True|False|'é'.upper()|'straße'.upper()|'ÀÉ'.lower()|'日本語'[1:]|'日本語' | length|'🙂🙂'[0]|"tab\tquote\"" | tojson|loop|d.update|d['update']|{'pop': 1}.pop|{'pop': 1}['pop']|{'get': 1}.get is callable
""".strip().splitlines()


def expressions():
    for line in EXPRESSIONS:
        # A bar with a space on both sides is a filter; one without separates the cases.
        for part in line.replace(" | ", "\0").split("|"):
            yield "{{ " + part.replace("\0", " | ") + " }}"


TEMPLATES = [
    "a\n", "a\n\n", "a\r\nb\r\n", "  {% if t %}\n  x\n  {% endif %}\n y", "  {%+ if t %}\nx{% endif +%}\ny",
    "a  {%- if t -%}  b  {%- endif -%}  c", "  {{ n }}  \n  {{- n -}}  \n z", "{# c #}\nx", "  {# c #}  x",
    "a {#- c -#} b", "{#+ c +#}\nx", "  {#- multi\nline -#}\n  x", "{% raw %}{{ n }}{% endraw %}",
    "{%- raw -%}  {% x %}  {%- endraw -%}  y", "{% raw %}\n a {% endraw %}\nb", "x {% raw %}{#{% endraw %}",
    "{{ '{{' }}{{ '}}' }}", "{{ {'a': {'b': 1}}.a.b }}", "{{ {'a':{}}}}", "{{-1}}{{ -1 }}{{+ 1 }}", "a { b } c {x",
    "\n\n  {% set x = 1 %}\n\n{{ x }}", "x\n\t {% set x = 1 %}  \n{{ x }}", "{% set x %}\n a {{ n }}\n{% endset %}[{{ x }}]",
    "{% set x | upper | trim %} a {% endset %}[{{ x }}]", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a = 1, 2 %}{{ a }}",
    "{% set a, b = [1] %}", "{% set (a, b) = (1, 2) %}{{ b }}", "{% set x = x %}[{{ x }}]", "{% set n = n + 1 %}{{ n }}",
    "{% for i in l %}{{ i }},{% endfor %}", "{% for i in l %}{{ loop.index }}/{{ loop.length }} {{ loop.first }} {{ loop.last }};{% endfor %}",
    "{% for i in l %}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.depth }} {% endfor %}",
    "{% for i in l %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }} {% endfor %}", "{% for i in l %}{{ loop.cycle('a', 'b') }}{% endfor %}",
    "{% for i in [1,1,2] %}{{ loop.changed(i) }} {% endfor %}", "{% for i in e %}x{% else %}none{% endfor %}",
    "{% for i in l if i > 1 %}{{ i }}{{ loop.index }}{{ loop.last }}{% else %}no{% endfor %}", "{% for i in l if i > 9 %}x{% else %}no{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k in d %}{{ k }}{% endfor %}", "{% for k, v in d | items %}{{ k }}{% endfor %}",
    "{% for a, (b, c) in [[1, [2, 3]]] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{% for a, b in l %}{% endfor %}", "{% for c in s %}{{ c }}.{% endfor %}",
    "{% for i in n %}{% endfor %}", "{% for i in z %}{% endfor %}", "{% for i in missing %}x{% else %}y{% endfor %}",
    "{% for i in l %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}", "{% for i in l %}{% if i == 1 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{% for i in [1] %}{% break %}{% else %}x{% endfor %}", "{% break %}", "{% for i in l %}{% for j in l %}{{ loop.index }}{% if j == i %}{% break %}{% endif %}{% endfor %}|{{ loop.index }} {% endfor %}",
    "{% set x = 1 %}{% for i in l %}{% set x = i %}{{ x }}{% endfor %}{{ x }}", "{% set x = 1 %}{% if t %}{% set x = 2 %}{% endif %}{{ x }}",
    "{% set ns = namespace(x=0) %}{% for i in l %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}", "{% set ns = namespace() %}{% set ns.a = 1 %}{{ ns.a }}{{ ns.b }}",
    "{% set d.x = 1 %}", "{% set ns = namespace(go=true) %}{% for i in l if ns.go %}{{ i }}{% set ns.go = false %}{% endfor %}", "{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a + ns.b }}{{ ns }}",
    "{% for i in l %}{{ i }}{% set i = 9 %}{{ i }}{% endfor %}{{ i }}", "{% for loop in l %}{% endfor %}", "{% for i in l %}{% endfor %}{{ loop }}",
    "{% if z %}a{% elif n == 7 %}b{% else %}c{% endif %}", "{% if z %}a{% elif z %}b{% elif e %}c{% else %}d{% endif %}", "{% if missing %}a{% endif %}b", "{% if 1, %}a{% endif %}",
    "{% macro m(a, b=2) %}{{ a }}-{{ b }};{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=4, a=5) }}{{ m() }}", "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(b=2) }}",
    "{% macro m(a, b=a ~ 'x') %}{{ b }}{% endmacro %}{{ m(1) }}", "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}", "{% macro m(a=1, b) %}{% endmacro %}",
    "{% macro m(x) %}{% if x > 0 %}{{ x }}{{ m(x - 1) }}{% endif %}{% endmacro %}{{ m(3) }}", "{% macro m() %}{{ y }}{% endmacro %}{% set y = 5 %}{{ m() }}", "{% macro m() %}{% set q = 1 %}{% endmacro %}{{ m() }}{{ q }}",
    "{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}in{% endcall %}", "{% macro m() %}{{ caller(1, b=2) }}{% endmacro %}{% call(a, b) m() %}{{ a }}{{ b }}{% endcall %}", "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}",
    "{% macro m() %} a {% endmacro %}[{{ m() | trim }}]{{ m() | length }}", "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}", "{% for i in l %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}",
    "{{ m }}{% macro m() %}{% endmacro %}", "{% macro m(a) %}{{ a is defined }}{{ a }}{% endmacro %}{{ m() }}", "{% macro m(*a) %}{% endmacro %}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(*[1]) }}{{ m(**{'a': 2}) }}", "{{ dict(a=1, a=2) }}",
    "{% filter upper %}a{{ s }}{% endfilter %}", "{% filter replace('a', 'b') | trim %} a {% endfilter %}", "{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a }}", "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q }}", "{% with a = 1 %}{% with a = a + 1 %}{{ a }}{% endwith %}{{ a }}{% endwith %}",
    "{% generation %}a{% set q = 1 %}{{ q }}{% endgeneration %}{{ q }}", "  {% generation %}\n  a\n  {% endgeneration %}\nb", "{% for m in messages %}{% if m.role == 'user' %}{% generation %}{{ m.content }}{{ loop.index }}{% endgeneration %}{% endif %}{% endfor %}",
    "{% print n, s %}", "{% nosuchtag %}", "{% if t %}", "{% endif %}", "{% for i in l %}{% endif %}", "{{ n", "{% if t", "{{ }}", "{# open", "{% raw %}", "{{ 'a }}", "{{ (1 }}", "{{ 1) }}", "{{ [1}} ", "{{ n @ 1 }}", "{{ n . }}", "{{ n | }}", "{{ n is }}", "{{ 1 2 }}", "{{ a b }}", "{{ not }}", "{% set %}", "{% set 1 = 2 %}", "{% set true = 2 %}", "{% for in l %}{% endfor %}", "{% for x l %}{% endfor %}", "{{ f(a=1, 2) }}", "{{ '\\u12' }}",
    "{{ raise_exception('no') }}", "{% if z %}{{ raise_exception('no') }}{% endif %}ok", "{{ s.upper().lower()[0] }}", "{{ messages[-1]['content'] | trim }}", "{{ (messages | selectattr('role', 'equalto', 'user') | first).content }}", "{% set x = messages | selectattr('role', 'equalto', 'user') %}{% for m in x %}1{% endfor %}{% for m in x %}2{% endfor %}", "{% if messages | selectattr('role', 'equalto', 'q') %}truthy{% endif %}",
    "{%- for message in messages -%}\n  {%- if message['role'] == 'user' -%}\n    [INST] {{ message['content'] }} [/INST]\n  {%- elif message.tool_calls is defined -%}\n    {{ message.tool_calls | tojson }}\n  {%- endif -%}\n{%- endfor -%}\n",
    "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}{% set system = false %}{% endif %}{% for m in loop_messages %}{% if loop.index0 == 0 and system != false %}{{ '<<SYS>>\\n' + system + '\\n<</SYS>>\\n\\n' + m.content }}{% else %}{{ m.content.strip() }}{% endif %}{% endfor %}",
    "{{- 'a' -}}\n{{- 'b' }}\n{{ 'c' -}}\n", "{{ n }}\n\n\n", "{{ n }}{# x #}\n", "{%- set x = 1 %}  y", "a\n{%- set x = 1 -%}\nb", "{% if t %}\n\n{% endif %}\n\nx", " \n {% if t %} \n {% endif %} ", "é {{ 'é' }}", "{% set é = 1 %}{{ é }}", "{{ n\n+\n1 }}", "{{ d\n['b'] }}", "{% set x = [\n 1,\n 2\n] %}{{ x }}",
    "{{ 'a\nb' }}", "{% set ns = namespace(f=none) %}{% macro m(x) %}<{{ x }}>{% endmacro %}{% set ns.f = m %}{{ ns.f(1) }}", "{% for m in messages %}{% set c = m.content %}{% if c is string %}{{ c | length }}{% endif %}{% endfor %}{{ c }}", "{% for i in range(3) %}{{ i }}{{ ', ' if not loop.last }}{% endfor %}", "{% for i in range(3) %}{{ ', ' if not loop.first else '' }}{{ i }}{% endfor %}",
]

# What chat templates use less.
MORE_TEMPLATES = [
    "{% set q = 1 %}{% for i in l if q != 5 %}{% set q = 5 %}{{ i }}{{ loop.last }}{{ loop.nextitem }}{% endfor %}",
    "{% set q = 0 %}{% for i in [1, 2] recursive %}{{ q }}{% set q = i %}{% if loop.depth < 3 %}({{ loop([7]) }}){% endif %}{{ q }}{% endfor %}",
    '{% for i in l %}{{ x }}{% endfor %}{% set x = 1 %}{{ x }}',
    '{% for i in l %}{% for j in l %}{{ x }}{% endfor %}{% set x = i %}{% endfor %}',
    '{% for i in l %}{% if t %}{% for j in l %}{{ x }}{% endfor %}{% endif %}{% if t %}{% set x = i %}{% endif %}{% endfor %}',
    '{% for i in l %}{% for j in l %}{{ x }}{% endfor %}{% if t %}{% set x = i %}{% endif %}{% endfor %}',
    '{% for i in l %}{% for j in l %}{{ x }}{% endfor %}{% if t %}{% set x = i %}{% else %}{% set x = 2 %}{% endif %}{% endfor %}',
    '{% for i in l %}{{ x }}{% set x = i %}{{ x }}{% endfor %}{{ x }}',
    '{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% set x = 5 %}{{ m() }}',
    '{% macro m() %}{{ y }}{% endmacro %}{{ m() }}{% set y = 5 %}{{ m() }}',
    '{% for i in l %}{% macro m() %}{{ y }}{% endmacro %}{{ m() }}{% set y = i %}{{ m() }}{% endfor %}',
    '{% if t %}{% set y = 1 %}{% endif %}{% for i in l %}{{ y }}{% endfor %}',
    '{% set y = 0 %}{% for i in l %}{% if i == 1 %}{% set y = 7 %}{% endif %}{{ y }}{% endfor %}{{ y }}',
    '{% for i in l %}{% if i == 1 %}{% set y = 7 %}{% endif %}{{ y }}{% endfor %}{{ y }}',
    '{% set y = 1 %}{% macro m(y) %}{{ y }}{% endmacro %}{{ m() }}{{ m(3) }}',
    '{% for x in l %}{{ x }}{% endfor %}{{ x }}',
    '{% for x in [x] %}{{ x }}{% endfor %}',
    '{% for i in l if x %}{{ i }}{% set x = 0 %}{% endfor %}',
    '{% for i in l %}{% filter upper %}{{ x }}{% endfilter %}{% set x = i %}{% endfor %}',
    '{% set x %}{{ x }}!{% endset %}{{ x }}',
    '{% for i in l %}{% set x %}{{ x }}!{% endset %}{{ x }}{% endfor %}',
    '{% with x = x %}{{ x }}{% endwith %}',
    '{% macro m(x=x) %}{{ x }}{% endmacro %}{{ m() }}',
    '{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m() }}',
    '{% for i in l recursive %}{{ loop.depth }}{{ x }}{% set x = i %}{{ loop([]) }}{% endfor %}',
    '{% set loop = 3 %}{% for i in l %}{{ loop.index }}{% endfor %}{{ loop }}',
    '{% for i in l %}{% set loop = 5 %}{% endfor %}',
    '{% for i in l %}{% for j in l %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}',
    "{% macro a() %}{{ caller() if caller is defined else 'none' }}{% endmacro %}{{ a() }}{% call a() %}c{% endcall %}",
    "{% macro a(caller=none) %}{{ caller() if caller else 'none' }}{% endmacro %}{{ a() }}{% call a() %}c{% endcall %}",
    '{% macro a(caller) %}{{ caller }}{% endmacro %}{{ a() }}',
    '{% macro a(kwargs) %}{{ kwargs }}{% endmacro %}{{ a(1) }}',
    '{% macro a() %}{% set kwargs = 1 %}{{ kwargs }}{% endmacro %}{{ a(q=1) }}',
    '{{ x.foo.bar }}',
    "{% set ns = namespace(a=1) %}{{ ns.a }}{{ ns['a'] }}{{ ns.b is defined }}{{ ns }}",
    "{{ messages | groupby('role') | map(attribute='grouper') | list }}{% for g in messages | groupby('role') %}{{ g.grouper }}{{ g.list }}{{ g[0] }}{% endfor %}",
    "{{ d.__class__ }}|{{ d['__class__'] }}|{{ ''.__class__.__mro__ }}",
    "{{ ''.__class__ }}{{ x._foo }}{{ d._foo }}",
    '{% do l.append(1) %}',
    '{% set _ = l.append(1) %}',
    "{% set _ = d.update({'b': 2}) %}",
    "{{ cycler('a','b').next() }}{% set c = cycler(1,2) %}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.next() }}{{ c.reset() }}{{ c.current }}",
    "{% set j = joiner('|') %}{{ j() }}{{ j() }}{{ j() }}",
    "{% autoescape false %}{{ '<' }}{% endautoescape %}",
    "{{ ('<a>'|e) + '<b>' }}{{ '<b>' + ('<a>'|safe) }}{{ ('<%s>'|safe) % '<' }}{{ ['<'|e] }}{{ ('a<b'|safe|last) is escaped }}{{ ('<'|e)~'<' }}{{ ('<'|e)*2 }}{{ '<'|e|e }}{{ ('<b'|safe)[0] }}{{ '{} {}'.format('<'|e, '<') }}{{ ('{}'|safe).format('<') }}{{ (1|e) is escaped}}{{ (1|safe) is string }}{{ (none|safe) }}{{ '<'|forceescape|forceescape }}",
    '{{ m.name }}{% macro m(a,b=1) %}{{ kwargs }}{% endmacro %}{{ m.name }}{{ m.arguments }}{{ m.catch_kwargs }}{{ m.catch_varargs }}{{ m.caller }}',
    "{{ 'see http://a.com/x(y) and (www.b.org). me@x.de, <https://q.net> mailto:a@b.co ftp://z' | urlize(10, true, '_blank') }}",
    "{{ 'see tel:123 and x://y' | urlize(extra_schemes=['tel:', 'x://'], rel='a b') }}",
    "{{ ['a' * 50, 'b' * 50, {'k': 'word ' * 30, 'z': [1,2,3], 'a': ('x' * 30, 'y' * 60, 1)}] | pprint }}",
    "{{ 'long words here ' * 10 | pprint }}|{{ ('long words here\\n ' * 10) | pprint }}",
    "{{ 'The quick-brown fox -- jumped over_the lazy dog--really supercalifragilistic-expiali' | wordwrap(10) }}",
    "{{ 'aaaaaaaaaaaaaaaaaaaaaaaaa bb-ccccccccccccccccc-d' | wordwrap(8, true, '/') }}|{{ 'ab cd-ef-gh' | wordwrap(4, break_on_hyphens=false) }}|{{ '' | wordwrap }}|{{ 'a\\n\\nb' | wordwrap }}",
    '{{ range(10)[2:8:2] }}{{ range(3).start }}{{ range(10)[::-1] | list }}',
    "{{ 'x' is escaped }}{{ [1,2,3,4,5] | slice(3, 'f') | list }}{{ [] | slice(2) | list }}",
    "{{ '%5.1f|%-6s|%06d|%+d|%x|%#o|%e|%g|%c|%%|%r|%i' % (2.345, 'a', 42, 3, 255, 8, 12345.678, 0.00001, 'z', 'q', 3.9) }}",
    "{{ '{:,}|{:_}|{:010,}|{:#x}|{:b}|{:08.3f}|{:.3}|{:.0%}|{:n}|{:c}'.format(1234567, 1234567, 1234, 255, 5, 3.14159, 100.0, 0.256, 5, 65) }}",
    "{{ '%*d|%.*f|%ld' % (5, 42, 2, 3.14159, 7) }}",
    "{{ 'hello'.translate('hello'.maketrans('el', 'ip')) }}{{ 'a{b}'.format_map({'b': 2}) }}",
    "{{ 1000 | filesizeformat }}{{ 1024 | filesizeformat(true) }}{{ 123456789 | filesizeformat }}{{ '5' | filesizeformat }}{{ 1 | filesizeformat }}",
    "{{ {'a': 1, 'b': none, 'c': '<'} | xmlattr }}{{ {'a b': 1} | xmlattr }}",
    "{{ 'a b&c/d?é' | urlencode }}{{ {'a b': 'c&d', 'e': 1} | urlencode }}{{ [['x', 1], ('y', '/')] | urlencode }}{{ 5 | urlencode }}",
    "{{ '<p>Hi&amp;  <!-- x -->\\n you</p> < 3' | striptags }}",
    '{% for a in l recursive %}{{ a }}{% if loop.depth < 3 %}({{ loop(l) }}){% endif %}{% endfor %}',
    '{% for i in l %}{{ loop(l) }}{% endfor %}',
    '{% set f = {} %}{% for i in l recursive %}{% if loop.depth0 == 0 %}{{ loop([9]) }}{% endif %}{{ i }}{% else %}e{% endfor %}',
    "{{ ' a b c '.split(none, 1) }}{{ ' a b c '.rsplit(none, 1) }}",
    "{{ {}.fromkeys(['a', 'b'], 1) }}",
    '{{ [1, 2] | random in [1, 2] }}{{ [] | random }}',
    "{{ ('<{}>' | safe).format(1.5) }}{{ ('a<' | safe).join(['<', 1, 'x' | safe]) }}{{ ('a<b' | safe).split('<') }}{{ ('a&b' | safe).replace('&', '<') }}{{ ('%d %s' | safe) % (1, '<') }}",
]


def main():
    cases = [case(template) for template in [*expressions(), *TEMPLATES, *MORE_TEMPLATES]]
    for made in cases:  # the context is the same everywhere but for what a template needs
        names = [name for name in CONTEXT if name in made["template"]]
        made["context"] = {name: CONTEXT[name] for name in names}
        again = case(made["template"], made["context"])
        assert again.get("text") == made.get("text") and ("error" in again) == ("error" in made)
    # An address is no result to agree on.
    cases = [made for made in cases if " at 0x" not in made.get("text", "")]
    path = pathlib.Path(__file__).parent.parent / "data" / "template" / "cases.jsonl"
    with open(path, "w", encoding="utf-8") as file:
        for made in cases:
            file.write(json.dumps(made, ensure_ascii=False) + "\n")
    print(f"{len(cases)} cases, {sum('error' in made for made in cases)} of them errors")


if __name__ == "__main__":
    main()
