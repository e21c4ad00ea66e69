"""jinja2 as transformers' apply_chat_template sets it up: what the tests' template cases come from."""
import json

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(jinja2.ext.Extension):
    """{% generation %} blocks, which render as what they hold."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_render")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _render(self, caller):
        return caller()


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def environment():
    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                         extensions=[jinja2.ext.loopcontrols, Generation])
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    return made


ENVIRONMENT = environment()


def case(template, context):
    """The template with its context, and the text or the error that jinja2 makes of them."""
    made = {"template": template, "context": context}
    try:
        made["text"] = ENVIRONMENT.from_string(template).render(**context)
    except Exception as error:  # whatever Python raises, it is an error of the template
        made["error"] = f"{type(error).__name__}: {error}"
    return made
