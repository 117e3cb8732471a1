"""Every bench of tests/bench/all: how it is run, and which lines of what it says go into the table."""

from bench_main import held

# Each: the program, its options for a whole run, and for a quick one.
BENCHES = (
    ("launch", ["--peers", "--runs", "40"], ["--peers", "--runs", "6"]),
    ("idle", [], ["--sessions", "1"]),
    ("pty", ["--rounds", "40"], ["--rounds", "2", "--megabytes", "50", "--samples", "200"]),
    ("pipe", ["--runs", "40"], ["--runs", "5"]),
    ("together", ["--runs", "40"], ["--runs", "3"]),
    ("growth", ["--runs", "40"], ["--runs", "6", "--many", "2000"]),
    ("sync", ["--files", "1000", "--files", "20000", "--runs", "40"], ["--files", "1000", "--runs", "5", "--launches", "10"]),
    ("project", [], ["--files", "500", "--mib", "16", "--runs", "2", "--warm-up", "1"]),
)
SYNC_BOUND = 0.3
PTY_BOUNDS = {("text", "script"): 1.0, ("text", "systemd-run"): 0.5, ("p99", "script"): 1.1}


def turned(found):
    """The ratio the other way round."""
    return {"median": 1 / found["median"], "low": 1 / found["high"], "high": 1 / found["low"]}


def lines_of(bench, answer):
    """The lines of one machine's answer, in the form that tests/bench/bench_main.py has."""
    if bench == "sync":
        return [held(f"sync, {case}: ours / rsync -a --delete", seen["ratio"], SYNC_BOUND if case == "20000 files, unchanged" else None)
                for case, seen in answer["cases"].items()]  # fmt: skip
    if bench == "project":
        return [held(f"project, {case}: inside / outside", turned(seen["ratio"])) for case, seen in answer["cases"].items()]
    if bench == "pty":
        lines = []
        for name, row in answer["report"].items():
            for kind, key in (("text", "pi_text_time_ratio"), ("echo", "pi_echo_time_ratio"), ("p99", "pi_echo_p99_ratio")):
                if key in row:
                    found = {"median": row[key]["ratio"], "low": row[key]["low"], "high": row[key]["high"]}
                    title = {"text": "terminal, time for text", "echo": "terminal, echo", "p99": "terminal, slowest hundredth of echoes"}[kind]
                    lines.append(held(f"{title}: pi / {name}", found, PTY_BOUNDS.get((kind, name))))
        return lines
    return answer["lines"]
