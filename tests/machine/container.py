"""A machine that is like a container: no systemd, the capabilities and the system-call filter of docker's with --cap-add SYS_ADMIN.

    with Container("mine") as m:
        m.create(); m.install(Build("bookworm")); m.boot()
"""

import shutil
from pathlib import Path

from cache import HERE
from machine import Machine

CONTAINED = "/usr/local/lib/contained.py"
BECOMING = ["/usr/bin/python3", "-B", CONTAINED]
MODEL = "mkdir -m 700 /run/scripted-model; setsid python3 /usr/local/lib/scripted_model.py --port 8099 >>/run/scripted-model/requests.jsonl 2>/dev/null </dev/null &"


class Container(Machine):
    first_program = "sleep"
    has_journal = False

    def __init__(self, name, recipe="bookworm"):
        super().__init__(f"container-{name}", recipe)
        # Of commands, beside docker's default and SYS_ADMIN.
        self.capabilities = ()
        self.calls = ("pivot_root",)  # which docs/platforms/methods.md says to allow
        self.without_capabilities = ()
        self.without_calls = ()
        self.before_filter = []  # runs each command while that may still do everything

    def create(self, **options):
        super().create(**options)
        shutil.copy(HERE / "contained.py", self.filesystem / CONTAINED.lstrip("/"))

    def boot(self, keep=False):
        super().boot(keep)
        self.root(MODEL, check=True)

    def stop(self):
        """As `docker kill`: there is nobody to ask."""
        self._kill()

    def _booting(self):
        return [*BECOMING, "first", "/usr/bin/sleep", "infinity"]

    def set_oom_score(self, score):
        """As `docker run --oom-score-adj`, for all that is started from now on. Only who has CAP_SYS_RESOURCE may go below it."""
        Path(f"/proc/{self.leader}/oom_score_adj").write_text(str(score))

    def _before_account(self):
        settings = {name.upper(): " ".join(getattr(self, name)) for name in ("capabilities", "calls", "without_capabilities", "without_calls")}
        return [*self.before_filter, "env", *(f"PI_AGENT_TEST_{name}={value}" for name, value in settings.items()), *BECOMING]

    def _is_up(self):
        self.leader = self.leader or self._find_leader()
        return bool(self.leader)
