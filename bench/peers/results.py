"""Results of the race: a JSON file for each model and precision; a case that is run again replaces the one before.

{"model", "precision", "isa", "peers": {peer: {"version", "flags", "kv"}}, "agreement": {peer: tokens},
 "cases": {case: {"commit", "date", "cpu", "threads", "values": {peer: [tokens a second, or seconds]}, "cannot": {peer: reason},
                   "disturbed": measurements during which others took the cores}}}"""

import json
import statistics

from cases import OURS, OURS_NATIVE


def read(path):
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def write(path, unit):
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(unit, indent=1) + "\n", encoding="utf-8")
    part.rename(path)


def merged(old, new):
    """`new` over `old`: whole cases, since only what was interleaved in one run compares."""
    if old is None:
        return new
    both = old | {key: old[key] | new[key] for key in ("peers", "agreement", "cases")}
    return both


def done(unit, case, repetitions):
    """Whether a case has its repetitions of every peer, so that a resumed race can pass it over."""
    values = unit["cases"].get(case, {}).get("values", {}) if unit else {}
    return bool(values) and all(len(of_peer) >= repetitions for of_peer in values.values())


def best_peer(case, entry):
    """(peer, median) of the fastest one beside this engine; None where none ran."""
    medians = {peer: statistics.median(values) for peer, values in entry["values"].items() if peer.split(",")[0] != OURS and values}
    if not medians:
        return None
    best = (max if case.tokens else min)(medians, key=medians.get)
    return best, medians[best]


def ratio(case, entry):
    """(ours over the best peer's median, that peer); None where one of them is missing."""
    best, ours = best_peer(case, entry), entry["values"].get(OURS)
    if not best or not ours:
        return None
    return statistics.median(ours) / best[1], best[0]


def slower(case, entry):
    """The time of this engine over its time with every instruction; None where one of them is missing."""
    ours, native = entry["values"].get(OURS), entry["values"].get(OURS_NATIVE)
    if not ours or not native:
        return None
    quotient = statistics.median(native) / statistics.median(ours)
    return quotient if case.tokens else 1 / quotient


def reached(case, precision, value):
    """Whether the ratio is what is asked for; None where nothing is."""
    target = case.target(precision)
    if target is None:
        return None
    return value >= target if case.tokens else value <= target
