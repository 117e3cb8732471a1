"""Every bench: its program, its options for a whole run, and for the one round on small inputs that shows whether it still works (`all --quick`)."""

BENCHES = (
    ("launch", ["--peers", "--runs", "40"], ["--runs", "1", "--files", "20", "--mounts", "2"]),
    ("idle", [], ["--sessions", "1", "--rest", "1"]),
    ("undo", [], ["--runs", "1", "--ends", "1", "--files", "50", "--lives", "0.1"]),
    ("pty", ["--rounds", "40"], ["--rounds", "1", "--megabytes", "5", "--samples", "50"]),
    ("pipe", ["--runs", "40"], ["--runs", "1", "--megabytes", "20"]),
    ("gate", ["--runs", "40"], ["--runs", "1", "--sessions", "1", "--megabytes", "5", "--connections", "20", "--stream", "1"]),
    ("together", ["--runs", "40"], ["--runs", "1", "--count", "3"]),
    ("growth", ["--runs", "40"], ["--runs", "1", "--many", "200", "--roots", "5"]),
    ("sync", ["--runs", "40"], ["--runs", "1", "--files", "100", "--launches", "2"]),
    ("caches", [], ["--runs", "1"]),
    ("repositories", [], ["--runs", "1", "--part", "0.05"]),
    ("project", [], ["--files", "200", "--packages", "5", "--mib", "4", "--units", "1", "--runs", "1", "--most", "1", "--warm-up", "0"]),
)
