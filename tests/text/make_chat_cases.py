"""Writes tests/data/template/chat.jsonl: conversations as jinja2 renders them with the templates of
tests/data/template/chat/, which are our own, built of what the templates of model families use.

Lines: {"messages": [...], ...} is a conversation; {"conversation": n, "template": name, ...} the
case of one. A date is written <<format>>. Content in parts is given to the templates of WALK_PARTS
as it is, and joined with newlines to the others. Needs jinja2 3.1.
Usage: python3 tests/text/make_chat_cases.py
"""
import copy
import json
import pathlib

import jinja_reference

DATA = pathlib.Path(__file__).parent.parent / "data" / "template"
# By template, the roles whose parts it walks.
WALK_PARTS = {"gemma3": {"system", "user", "assistant"},
              "granite": {"system", "user", "assistant", "tool"}}

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Weather at a place.\nIn \"°C\".",
    "parameters": {"type": "object", "properties": {
        "place": {"type": "string", "description": "City <b>"},
        "days": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
        "options": {"type": "object", "additionalProperties": {"type": "number"}},
        "unit": {"type": ["string", "boolean"]}, "other": {"enum": [1, 2.5, None]}},
        "required": ["place"]}}}
CLOCK = {"type": "function", "function": {
    "name": "clock", "description": "", "parameters": {"type": "object", "properties": {}}}}


def call(name, arguments, number="abcdef123"):
    return {"id": number, "type": "function", "function": {"name": name, "arguments": arguments}}


def message(role, content, **more):
    return {"role": role, "content": content, **more}


def parts(*texts):
    return [{"type": "text", "text": text} for text in texts]


SYSTEM = message("system", "  Be brief. Ünïcode 🙂 <b> & \"quotes\" \n")
USER = message("user", "What is 2 + 2?")
ASSISTANT = message("assistant", "4.\n")
THINKING = message("assistant", "<think>\nTwo and two\n</think>\n\nIt is 4.")
CALLS = message("assistant", None, tool_calls=[call("get_weather", {"place": "Zürich", "days": [[1], []], "b": True})])
TWO_CALLS = message("assistant", "I look.", tool_calls=[
    call("get_weather", {"place": "A\n\"B\""}), call("clock", {}, "123456789")])
RESULT = message("tool", "{\"t\": 21.5}", tool_call_id="abcdef123", name="get_weather")

CONVERSATIONS = [
    [USER],
    [SYSTEM, USER],
    [USER, ASSISTANT, message("user", " And\n3 + 3? ")],
    [SYSTEM, USER, ASSISTANT, message("user", "")],
    [message("user", ""), message("assistant", "")],
    [USER, THINKING, message("user", "Sure?"), THINKING],
    [USER, message("assistant", "4", reasoning_content="Easy.\n")],
    [USER, CALLS, RESULT],
    [SYSTEM, USER, CALLS, RESULT, ASSISTANT, USER],
    [USER, TWO_CALLS, RESULT, message("tool", "12:30", tool_call_id="123456789"), ASSISTANT],
    [USER, message("assistant", None, tool_calls=[call("clock", {}, "short")]), RESULT],
    [USER, USER],
    [ASSISTANT, USER],
    [SYSTEM],
    [SYSTEM, USER, SYSTEM, USER],
    [USER, message("critic", "No.")],
    [message("user", parts("What is", "2 + 2?"))],
    [message("system", parts("Be brief.")), message("user", parts(" Hi ", "there")), ASSISTANT, USER],
    [message("system", "S"), message("user", parts("one")), message("assistant", parts("two", "three")), USER],
    [USER, CALLS, message("tool", parts("r1", "r2"), tool_call_id="abcdef123")],
    [message("user", "日本語 \u00a0\u2028 \t\\ {{ x }} {% y %} %s {}")],
]
VARIANTS = [{}, {"add_generation_prompt": True},
            {"tools": [WEATHER, CLOCK], "add_generation_prompt": True},
            {"enable_thinking": False, "add_generation_prompt": True, "date_string": "1 Jan 2025",
             "documents": [{"title": "A\nb", "text": "word " * 12}], "controls": {"length": "long"},
             "builtin_tools": ["clock", "code_interpreter"], "tools_in_user_message": False}]


def fitted(messages, walked):
    made = copy.deepcopy(messages)
    for each in made:
        if isinstance(each["content"], list) and each["role"] not in walked:
            each["content"] = "\n".join(part["text"] for part in each["content"])
    return made


def main():
    environment = jinja_reference.environment()
    environment.globals["strftime_now"] = lambda format: f"<<{format}>>"
    lines = [{"messages": messages} for messages in CONVERSATIONS]
    for path in sorted((DATA / "chat").glob("*.jinja")):
        template = environment.from_string(path.read_text(encoding="utf-8"))
        for number, messages in enumerate(CONVERSATIONS):
            for variant in VARIANTS:
                case = {"conversation": number, "template": path.stem, "kwargs": VARIANTS.index(variant)}
                context = {"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": False, **variant,
                           "messages": fitted(messages, WALK_PARTS.get(path.stem, ()))}
                try:
                    case["text"] = template.render(**context)
                except jinja_reference.jinja2.exceptions.TemplateError as error:
                    raised = type(error) is jinja_reference.jinja2.exceptions.TemplateError
                    case["raised" if raised else "error"] = str(error)
                except Exception as error:
                    case["error"] = str(error)
                lines.append(case)
    lines = [{"kwargs": VARIANTS}] + lines
    # Not every variant changes something: what is like the one before is left out.
    kept, last = [], None
    for line in lines:
        key = {name: line.get(name) for name in ("conversation", "template", "text", "raised", "error")}
        if "template" not in line or key != last:
            kept.append(line)
        last = key
    with open(DATA / "chat.jsonl", "w", encoding="utf-8") as file:
        for line in kept:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    print(f"{sum('template' in line for line in kept)} cases, {sum('raised' in line for line in kept)} raised, "
          f"{sum('error' in line for line in kept)} other errors")


if __name__ == "__main__":
    main()
