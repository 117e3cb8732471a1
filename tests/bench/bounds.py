"""Every bench of tests/bench/all: how it is run, and which lines of what it says go into the table."""

from bench_main import absolute, held

# Each: the program, its options for a whole run, and for a quick one.
BENCHES = (
    ("launch", ["--peers", "--runs", "40"], ["--peers", "--runs", "6"]),
    ("idle", [], ["--sessions", "1"]),
    ("pty", ["--rounds", "40"], ["--rounds", "2", "--megabytes", "50", "--samples", "200"]),
    ("pipe", ["--runs", "40"], ["--runs", "5"]),
    ("gate", ["--runs", "40"], ["--runs", "4", "--sessions", "1", "--megabytes", "50", "--stream", "3"]),
    ("together", ["--runs", "40"], ["--runs", "3"]),
    ("growth", ["--runs", "40"], ["--runs", "6", "--many", "2000"]),
    ("sync", ["--files", "1000", "--files", "20000", "--runs", "40"], ["--files", "1000", "--runs", "5", "--launches", "10"]),
    ("project", [], ["--files", "500", "--packages", "20", "--mib", "16", "--runs", "2", "--most", "2", "--warm-up", "1"]),
)
SYNC_BOUND = 0.3
TITLES = {"text": "terminal, time for text", "echo": "terminal, echo", "p99": "terminal, slowest hundredth of echoes"}
PTY_BOUNDS = {("text", "script"): 1.0, ("text", "systemd-run"): 0.5, ("p99", "script"): 1.1}


def turned(found):
    """The ratio the other way round."""
    return {"median": 1 / found["median"], "low": 1 / found["high"], "high": 1 / found["low"]}


def lines_of(bench, answer):
    """The lines of one machine's answer, in the form that tests/bench/bench_main.py has."""
    lines = []
    if bench in ("sync", "project"):
        for case, seen in answer["cases"].items():
            lines += [absolute(f"{bench}, {case}: {side}", numbers) for side, numbers in seen["ms"].items()]
            if bench == "sync":
                lines.append(held(f"sync, {case}: ours / rsync -a --delete", seen["ratio"], SYNC_BOUND if case == "20000 files, unchanged" else None))
            else:
                lines.append(held(f"project, {case}: inside / outside", turned(seen["ratio"])))
        return lines
    if bench == "pty":
        for name, row in answer["report"].items():
            lines += [absolute(f"{TITLES['text']}: {name}", row["text_ms"]), absolute(f"{TITLES['echo']}: {name}", row["echo_us"], "µs")]
            lines.append({"what": f"{TITLES['p99']}: {name}", "value": row["echo_p99_us"], "unit": "µs", "bound": None})
            for kind, found in row.get("pi_ratios", {}).items():
                lines.append(held(f"{TITLES[kind]}: pi / {name}", found, PTY_BOUNDS.get((kind, name))))
        return lines
    return answer["lines"]
