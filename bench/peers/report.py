"""The table and the chart of the race, of the results in a folder. Usage: report.py [RESULTS]."""

import statistics
import sys
from pathlib import Path

import chart
import results
from cases import AVX2_SLOWER, MODELS, OURS, OURS_NATIVE, PEERS, PRECISIONS, TEXT, TEXT_MODES, cases_of


def read_all(folder):
    """{(model, precision): unit}, of those that ran"""
    units = {(model, precision): results.read(folder / f"{model}-{precision}.json") for model in MODELS for precision in PRECISIONS}
    return {key: unit for key, unit in units.items() if unit}


def markdown_table(head, rows):
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *rows]) + "\n"


def isa_of(units):
    """Of all units of a folder."""
    return next(iter(units.values())).get("isa", "native")


def slower_cell(case, precision, unit):
    entry = unit["cases"].get(case.name)
    found = results.slower(case, entry) if entry else None
    if found is None:
        return "-"
    most = AVX2_SLOWER.get((case.name, precision))
    asked = "" if most is None else f" (asked <= {most:g}" + (")" if found <= most else " **missed**)")
    return f"{found:.2f}{asked}"


def ratio_cell(case, precision, unit):
    entry = unit["cases"].get(case.name) if unit else None
    found = results.ratio(case, entry) if entry else None
    if not found:
        return "-"
    value, peer = found
    target = case.target(precision)
    sign = "<=" if not case.tokens else ">="
    asked = "" if target is None else f", asked {sign} {target:g}" + ("" if results.reached(case, precision, value) else " **missed**")
    return f"{value:.2f} ({peer}{asked})"


def ratios(model, units):
    of_model = {precision: unit for (name, precision), unit in units.items() if name == model}
    cases = cases_of(model, isa_of(units))
    rows = [[case.title, *(ratio_cell(case, precision, unit) for precision, unit in of_model.items())] for case in cases]
    text = markdown_table(["ours : best peer", *of_model], rows)
    if isa_of(units) != "native":
        rows = [[case.title, *(slower_cell(case, precision, unit) for precision, unit in of_model.items())] for case in cases]
        text += "\n" + markdown_table(["our time : that with all instructions", *of_model], rows)
    return text


def value_cell(case, entry, peer):
    values = entry["values"].get(peer)
    if not values:
        return "-"
    digits = 3 if not case.tokens else 1 if statistics.median(values) < 1000 else 0
    median, least, most = (f"{f(values):.{digits}f}" for f in (statistics.median, min, max))
    return f"{median} ({least} to {most})"


def values(unit):
    """Tokens a second, or seconds, of every engine, and the reasons of the dashes."""
    peers = [OURS, *([OURS_NATIVE] if unit.get("isa", "native") != "native" else []), *PEERS]
    rows, reasons = [], []
    for case in cases_of(unit["model"], unit.get("isa", "native")):
        entry = unit["cases"].get(case.name)
        if not entry:
            continue
        rows.append([case.title + (", tokens/s" if case.tokens else ", s"), *(value_cell(case, entry, peer) for peer in peers)])
        for peer in PEERS:
            if not entry["values"].get(peer):
                reasons.append((peer, entry["cannot"].get(peer, "was not asked to run"), case.title))
    text = markdown_table(["", *peers], rows)
    disturbed = sum(entry["disturbed"] for entry in unit["cases"].values())
    if disturbed:
        text += f"\n- {disturbed} measurements were disturbed by other programs\n"
    for peer, reason in dict.fromkeys((peer, reason) for peer, reason, _ in reasons):
        titles = [title for p, r, title in reasons if (p, r) == (peer, reason)]
        where = "" if len(titles) == len(rows) else f" ({', '.join(titles)})"
        text += f"\n- {peer}{where}: {reason}\n"
    return text


def drafting(units):
    """Answers to real prompts, with and without drafts."""
    ran = {precision: unit["cases"][TEXT.name] for (_, precision), unit in units.items() if TEXT.name in unit["cases"]}
    if not ran:
        return ""
    rows = [[name, *(value_cell(TEXT, entry, name) for entry in ran.values())] for name in TEXT_MODES]
    reasons = dict.fromkeys((name, reason) for entry in ran.values() for name, reason in entry["cannot"].items())
    return ("\n## Drafting: answers to real prompts, tokens/s\n\n" + markdown_table(["", *ran], rows) +
            "".join(f"\n- {name}: {reason}\n" for name, reason in reasons))


def engines(units):
    """Versions, flags and types of the KV cache, and what was measured where."""
    lines = []
    for peer in (OURS, OURS_NATIVE, *PEERS):
        said = dict.fromkeys(f"{about['version']}; {about['flags']}; KV cache {about['kv']}" for unit in units.values()
                             for name, about in unit["peers"].items() if name == peer)
        lines += [f"- {peer}: {line}" for line in said]
    runs = dict.fromkeys((entry["cpu"], entry["threads"], entry["commit"], entry["date"][:10])
                         for unit in units.values() for entry in unit["cases"].values())
    lines += [f"- {cpu}, {threads} threads; orthrus {commit}; {date}" for cpu, threads, commit, date in runs]
    return "\n".join(lines) + "\n"


def suffix(units):
    """Of titles."""
    return "" if isa_of(units) == "native" else f", {isa_of(units)} alone"


def report(units):
    text = f"# The race{suffix(units)}\n\n" + engines(units)
    for model in dict.fromkeys(model for model, _ in units):
        text += f"\n## {model}\n\n" + ratios(model, units)
        for (name, precision), unit in units.items():
            if name == model:
                text += f"\n{model}, {precision}: median (least to most)\n\n" + values(unit)
    return text + drafting(units)


def bars(units):
    """Groups of the chart: [(title of model and case, [(precision, ratio, target)])]; of a time, how many times faster."""
    groups = []
    for model in dict.fromkeys(model for model, _ in units):
        for case in cases_of(model, isa_of(units)):
            group = []
            for precision in PRECISIONS:
                entry = units.get((model, precision), {"cases": {}})["cases"].get(case.name)
                found = results.ratio(case, entry) if entry else None
                if found:
                    value, target = found[0], case.target(precision)
                    group.append((precision, value, target) if case.tokens else (precision, 1 / value, target and 1 / target))
            if group:
                groups.append((f"{model}: {case.title}", group))
    return groups


def main(folder):
    units = read_all(folder)
    if not units:
        sys.exit(f"{folder}: no results of the race; expected MODEL-PRECISION.json")
    text = report(units)
    (folder / "race.md").write_text(text, encoding="utf-8")
    (folder / "race.svg").write_text(chart.bars("Speed over the fastest peer's, same file, same threads" + suffix(units), bars(units), PRECISIONS),
                                     encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/peers/results"))
