"""What bench/against-peers measured, as Markdown: the goals first, then the figures behind them.

usage: report.py RUN_DIR
"""

import datetime
import glob
import json
import os
import platform
import re
import statistics
import subprocess
import sys

DURABLE_ENGINE = re.compile(r"^(dbos|restate|langgraph)/")
NOT_DURABLE = {"langgraph/none", "langgraph/memory"}
POSTGRES = re.compile(r"^(pgboss|graphile|dbos|langgraph/postgres)")
OURS = ("boyd/sqlite", "boyd/postgres")
OURS_TOO = ("boyd/sqlite-workers", "boyd/postgres-workers")


def load(path):
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f)
    except (OSError, ValueError):
        return None


def rounds(directory, what):
    """id -> [one dict per round], and id -> note."""
    runs, notes = {}, {}
    for path in sorted(glob.glob(f"{directory}/{what}-*.json")):
        for key, value in (load(path) or {}).items():
            notes[key] = value.get("note", "")
            runs.setdefault(key, []).extend(value.get("runs", []))
    return runs, notes


def middle(runs, get):
    values = [v for v in (get(r) for r in runs) if isinstance(v, (int, float))]
    return statistics.median(values) if values else None


def number(value):
    if value is None:
        return "—"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def spread(runs, get):
    values = [v for v in (get(r) for r in runs) if isinstance(v, (int, float))]
    if not values:
        return "—"
    text = number(statistics.median(values))
    if len(values) > 1:
        text += f" [{number(min(values))}–{number(max(values))}]"
    return text


class goals:
    """The lines of the first table."""

    def __init__(self):
        self.lines = []

    def add(self, what, wanted, figures, met):
        verdict = "not measured" if met is None else "met" if met else "**not met**"
        self.lines.append(f"| {what} | {wanted} | {figures} | {verdict} |")

    def ratio(self, what, wanted_ratio, ours, theirs, whose):
        if ours is None or theirs is None:
            self.add(what, f"≥ {wanted_ratio} ×", "—", None)
            return
        have = ours / theirs
        text = f"{number(ours)} ÷ {number(theirs)} ({whose}) = {have:.2f} ×"
        self.add(what, f"≥ {wanted_ratio} ×", text, have >= wanted_ratio)

    def below(self, what, ours, theirs, whose, unit):
        if ours is None or theirs is None:
            self.add(what, "below", "—", None)
            return
        text = f"{number(ours)} {unit} against {number(theirs)} {unit} ({whose}), ratio {ours / theirs:.2f}"
        self.add(what, "below", text, ours < theirs)

    def at_most(self, what, limit, value, unit):
        text = "—" if value is None else f"{number(value)} {unit}"
        self.add(what, f"< {limit} {unit}", text, None if value is None else value < limit)


def best(figures, keep, least=False):
    """(value, id) of the best peer that `keep` lets through."""
    chosen = [(v, k) for k, v in figures.items() if v is not None and k not in OURS + OURS_TOO and keep(k)]
    if not chosen:
        return None, ""
    return min(chosen) if least else max(chosen)


def throughput(directory, into):
    runs, notes = rounds(directory, "throughput")
    e2e = {k: middle(v, lambda r: r.get("e2e")) for k, v in runs.items()}
    fastest, whose = best(e2e, POSTGRES.match)
    into.ratio("end to end/s, PostgreSQL, against the fastest peer on it", 1.5, e2e.get("boyd/postgres"), fastest, whose)
    fastest, whose = best(e2e, lambda k: True)
    into.ratio("end to end/s, SQLite, against the fastest peer of any kind", 2.5, e2e.get("boyd/sqlite"), fastest, whose)
    for mine in OURS:
        fastest, whose = best(e2e, lambda k: DURABLE_ENGINE.match(k) and k not in NOT_DURABLE)
        into.ratio(f"end to end/s, {mine}, against the fastest durable agent engine", 20, e2e.get(mine), fastest, whose)
    lines = ["| who | enqueue/s | drain/s | end to end/s | worker MiB | setting |", "|---|---|---|---|---|---|"]
    for key, value in sorted(runs.items(), key=lambda item: -(e2e[item[0]] or 0)):
        lines.append(
            f"| {key} | {spread(value, lambda r: r.get('enqueue'))} | {spread(value, lambda r: r.get('drain'))} | "
            f"{spread(value, lambda r: r.get('e2e'))} | {spread(value, lambda r: r.get('workerMB'))} | {notes[key]} |"
        )
    return lines if runs else []


def latency(directory, into):
    runs, notes = rounds(directory, "latency")
    p99 = {k: middle(v, lambda r: r.get("p99")) for k, v in runs.items()}
    least, whose = best(p99, lambda k: True, least=True)
    into.below("enqueue → started p99, SQLite, against every peer", p99.get("boyd/sqlite"), least, whose, "ms")
    kept, keeper = best(p99, lambda k: k not in NOT_DURABLE, least=True)
    into.below("the same against every peer that keeps anything", p99.get("boyd/sqlite"), kept, keeper, "ms")
    least, whose = best(p99, POSTGRES.match, least=True)
    into.below("enqueue → started p99, PostgreSQL, against every peer on it", p99.get("boyd/postgres"), least, whose, "ms")
    into.below("the same against every peer that keeps anything", p99.get("boyd/postgres"), kept, keeper, "ms")
    lines = ["| who | p50 ms | p99 ms | setting |", "|---|---|---|---|"]
    for key, value in sorted(runs.items(), key=lambda item: item[1] and p99[item[0]] or 1e9):
        lines.append(f"| {key} | {spread(value, lambda r: r.get('p50'))} | {spread(value, lambda r: r.get('p99'))} | {notes[key]} |")
    return lines if runs else []


def recovered(run):
    """Seconds from the restart to the last job's end; nothing when some were never done."""
    return None if run.get("notFinished") or run.get("capped") else run.get("lastJobS")


def crash(directory, into):
    runs, notes = rounds(directory, "crash")
    seconds = {k: middle(v, recovered) for k, v in runs.items()}
    least, whose = best(seconds, lambda k: True, least=True)
    for mine in OURS:
        into.below(f"restart → last of 2,000 jobs done, {mine}", seconds.get(mine), least, whose, "s")
        own = runs.get(mine, [])
        lost = sum(r["notFinished"] for r in own)
        twice = sum(r["finishedTwice"] for r in own)
        rows = all(r.get("recorded") == r["finished"] for r in own)
        text = f"{lost} lost in {len(own)} runs, one row and verdict for each job: {'yes' if rows else 'NO'}; {twice} effects made twice"
        into.add(f"lost, and effects made twice, {mine}", "0 and 0", text if own else "—", lost == 0 and rows and twice == 0 if own else None)
    lines = [
        "| who | never done | started twice | finished twice | seconds to the last | setting |",
        "|---|---|---|---|---|---|",
    ]
    for key, value in sorted(runs.items(), key=lambda item: seconds[item[0]] or 1e9):
        cells = [spread(value, lambda r, name=name: r.get(name)) for name in ("notFinished", "startedTwice", "finishedTwice")]
        lines.append(f"| {key} | {' | '.join(cells)} | {spread(value, recovered)} | {notes[key]} |")
    return lines if runs else []


def erlang(directory):
    """(kind, schedulers) -> [one dict per run]."""
    found = {}
    try:
        with open(f"{directory}/erlang.jsonl", encoding="utf-8") as f:
            for line in f:
                try:
                    one = json.loads(line)
                except ValueError:
                    continue
                if one.get("bench", "").startswith("supervisor_"):
                    found.setdefault((one["bench"][len("supervisor_"):], one["schedulers"]), []).append(one)
    except OSError:
        pass
    return found


def restart(directory, into):
    ours = [f for f in (load(f"{directory}/restart-{i}.json") for i in (1, 2)) if f]
    otp = erlang(directory)
    lines = ["| crash | boyd p50 µs | p99 | OTP p50 | p99 | p99 ÷ OTP's |", "|---|---|---|---|---|---|"]
    for kind in ("crash_burst", "crash_paced", "kill_burst", "kill_paced"):
        theirs = otp.get((kind, 2), [])
        mine50, mine99 = (middle(ours, lambda r, f=f: r[kind][f]) for f in ("p50_us", "p99_us"))
        otp50, otp99 = (middle(theirs, lambda r, f=f: r[f]) for f in ("p50_us", "p99_us"))
        share = "—" if not mine99 or not otp99 else f"{mine99 / otp99:.2f}"
        lines.append(f"| {kind} | {number(mine50)} | {number(mine99)} | {number(otp50)} | {number(otp99)} | {share} |")
        into.below(f"crash → restarted and answering p99, {kind}", mine99, otp99, "Erlang/OTP", "µs")
    return lines if ours else []


def cycle(directory, into):
    lines = ["| store | cycle p50 ms | p99 | git's two commits p50 | p99 | ratio |", "|---|---|---|---|---|---|"]
    found = False
    for store in ("sqlite", "postgres"):
        f = load(f"{directory}/cycle-{store}.json")
        if not f:
            continue
        found = True
        text = f"{number(f['cycle_p50_ms'])} ms ÷ {number(f['git_p50_ms'])} ms = {f['ratio']:.2f}"
        into.add(f"an empty cycle, {store}, against the git command's two commits", "≤ 0.5 ×", text, f["ratio"] <= 0.5)
        lines.append(
            f"| {store} | {number(f['cycle_p50_ms'])} | {number(f['cycle_p99_ms'])} | {number(f['git_p50_ms'])} | "
            f"{number(f['git_p99_ms'])} | {f['ratio']:.2f} |"
        )
    return lines if found else []


# A curve is called flat when its last point costs at most this much more than its cheapest.
FLAT = 1.5


def curve_goal(directory, into, what, store, cost, text):
    f = load(f"{directory}/curve-{what}-{store}.json")
    if not f:
        return []
    points = f["points"]
    costs = [cost(p) for p in points]
    # The first point is a cold start: files, caches and pages are new.
    grown = costs[-1] / min(costs[1:] or costs)
    sizes = f"{number(next(iter(points[0].values())))} to {number(next(iter(points[-1].values())))}"
    figures = f"{sizes}: {number(costs[0])} → {number(costs[-1])}, last ÷ least {grown:.2f}"
    into.add(f"{text}, {store}", f"flat (≤ {FLAT})", figures, grown <= FLAT)
    lines = [f"{text}, {store}:", "", "| " + " | ".join(points[0]) + " |", "|" + "---|" * len(points[0])]
    lines += ["| " + " | ".join(number(v) for v in p.values()) + " |" for p in points]
    return lines + [""]


def memory(directory, into):
    try:
        with open(f"{directory}/idle.txt", encoding="utf-8") as f:
            idle = int(f.read().split()[0]) / 1024
    except (OSError, ValueError, IndexError):
        idle = None
    into.at_most("resident memory of an idle node", 25, idle, "MiB")
    waiting = load(f"{directory}/curve-waiting-sqlite.json")
    point = waiting["points"][0] if waiting else {}
    runs = number(point.get("waiting_runs"))
    into.at_most(f"resident memory with {runs} waiting runs", 300, point.get("resident_mib"), "MiB")


def curves(directory, into):
    lines = []
    for store in ("sqlite", "postgres"):
        beside = lambda p: 1e6 / p["dispatches_per_s"]
        lines += curve_goal(directory, into, "done", store, beside, "µs per dispatch beside finished rows")
        drained = lambda p: 1e6 / p["drain_per_s"]
        lines += curve_goal(directory, into, "backlog", store, drained, "µs per dispatch of a backlog")
    per_cycle = lambda p: p["cycle_p50_ms"]
    return lines + curve_goal(directory, into, "commits", "sqlite", per_cycle, "ms per cycle after so many commits")


def physical_limits(directory):
    lines = []
    for one in load(f"{directory}/limits.json") or []:
        values = one["vals"]
        lines.append(f"| {one['group']} | {one['name']} | {number(statistics.median(values))} {one['unit']} |")
    try:
        with open(f"{directory}/caf.jsonl", encoding="utf-8") as f:
            for line in f:
                one = json.loads(line)
                rate = one.get("messages_per_s") or one.get("roundtrips_per_s")
                if rate:
                    lines.append(f"| raw CAF | {one['bench']}, {one['threads']} threads, {one['policy']} | {number(rate)} /s |")
    except (OSError, ValueError):
        pass
    return ["| what | | |", "|---|---|---|", *lines] if lines else []


def first_line_of(command):
    try:
        text = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return text.strip().splitlines()[0] if text.strip() else None


def packages():
    """The peers' packages with their versions."""
    found = []
    for folder in (os.environ.get("PEERS_DIR", ""), os.environ.get("PEERS_DIR", "") + "/node22"):
        wanted = (load(f"{folder}/package.json") or {}).get("dependencies", {})
        for name in sorted(wanted):
            version = (load(f"{folder}/node_modules/{name}/package.json") or {}).get("version")
            if version:
                found.append(f"{name} {version}")
    return found


def settings():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        model = re.search(r"^model name\s*: (.*)$", f.read(), re.M)
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    tools = [
        first_line_of(["git", "--version"]),
        first_line_of(["psql", "--version"]),
        first_line_of(["redis-server", "--version"]),
        "Erlang/OTP " + (first_line_of(["erl", "-noshell", "-eval", "io:put_chars(erlang:system_info(otp_release)), halt()."]) or "—"),
        "node " + (first_line_of(["node", "--version"]) or "—"),
    ]
    commit = first_line_of(["git", "rev-parse", "--short", "HEAD"]) or "?"
    print(
        f"Measured until {datetime.date.today()} at commit {commit}: {os.cpu_count()} cores ({model.group(1) if model else '?'}), "
        f"{gigabytes:.0f} GiB, kernel {platform.release().split('-')[0]}, load now {os.getloadavg()[0]:.1f}; fsync on everywhere, "
        f"PostgreSQL with synchronous_commit on.\n"
    )
    print("; ".join(t for t in tools if t) + ".\n")
    print("; ".join(packages()) + ".\n")
    print(f"`N={os.environ.get('N', '?')} SLOW_N={os.environ.get('SLOW_N', '?')} RUNS={os.environ.get('RUNS', '?')} bench/against-peers`; "
          "median [least–most] of the rounds.\n")


def main():
    directory = sys.argv[1]
    into = goals()
    parts = [
        ("Throughput", throughput(directory, into)),
        ("Latency, one job at a time: enqueue → handler started", latency(directory, into)),
        ("Crash: kill -9 while 2,000 jobs of 5 ms run, then a restart", crash(directory, into)),
        ("Supervised restart", restart(directory, into)),
        ("A cycle with its two commits", cycle(directory, into)),
    ]
    memory(directory, into)
    parts.append(("Curves", curves(directory, into)))
    parts.append(("Limits of this machine", physical_limits(directory)))
    settings()
    print("| goal | wanted | measured | |\n|---|---|---|---|")
    print("\n".join(into.lines))
    for title, lines in parts:
        if lines:
            print(f"\n### {title}\n\n" + "\n".join(lines))


if __name__ == "__main__":
    main()
