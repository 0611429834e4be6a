# SPDX-License-Identifier: MIT
"""Whether the handles on glibc's arenas pin heaps in the long run: one churning program with handles and one without, side by side.

Both work (tests/bench/churn.c) and rest in turns; at each rest both are trimmed as far as they can be. Compared are, at the begin and
at the end, resident anonymous memory over what is live, and the address space that the arenas hold. The program without handles
has a limit of its address space (of 16 TiB): then the agent makes none.
"""
import os
import re
import resource
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "agent"))
from columns import print_columns  # noqa: E402
from fake_daemon import Daemon, rss_anon  # noqa: E402

MIB = 1 << 20
NO_HANDLES_BYTES = 16 << 40


def limit_address_space():
    resource.setrlimit(resource.RLIMIT_AS, (NO_HANDLES_BYTES, NO_HANDLES_BYTES))


def arena_space(pid):
    """Address space of what looks like a thread arena's heap: anonymous, its begin aligned to 64 MiB; and how many there are."""
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps:
        begins = [line for line in maps if int(line.split("-")[0], 16) % (64 * MIB) == 0 and len(line.split()) == 5]
    sizes = [int(b, 16) - int(a, 16) for a, b in (line.split()[0].split("-") for line in begins)]
    return sum(sizes), len(sizes)


class Churner:
    def __init__(self, build, work_seconds, handles):
        self.daemon = Daemon()
        environment = {key: value for key, value in os.environ.items() if key != "MALLOC_PERTURB_"}
        environment.update(LD_PRELOAD=build.preload, MEMGUARD_SOCKET=self.daemon.path, MEMGUARD_DELAY="100ms")
        self.process = subprocess.Popen([f"{build.directory}/tests/bench/churn", str(work_seconds)], env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        preexec_fn=None if handles else limit_address_space)
        self.peer = self.daemon.accept(20)
        if not self.peer:
            raise RuntimeError("no agent connected")
        has_tops = "arena-tops" in self.peer.hello["HEAP0_CAN"]
        if has_tops != handles:
            raise RuntimeError(f"arena tops: {has_tops}, wanted {handles}")
        self.rests = []

    def rest(self):
        """Once the program rests: trims it and notes (live, before, after, address space, heaps, pause)."""
        live = int(re.fullmatch(r"live (\d+)\n", self.process.stdout.readline())[1])
        before = rss_anon(self.process.pid)
        reply = self.peer.request("trim", ARENA_TOPS=1, timeout=120)
        self.rests.append((live, before, rss_anon(self.process.pid), *arena_space(self.process.pid), reply["PAUSE_USEC"]))

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def close(self):
        self.process.kill()
        self.process.communicate()
        self.daemon.remove()


def summary(rests):
    def median(number):
        return statistics.median(rest[number] for rest in rests)
    return (f"{statistics.median(after / live for live, _, after, *_ in rests):.2f}", f"{median(2) / MIB:.1f} of {median(0) / MIB:.1f} MiB",
            f"{median(1) / MIB:.0f} MiB", f"{median(3) / MIB:.0f} MiB in {median(4):.0f}", f"{median(5) / 1000:.1f} ms")


def bench(build, seconds, work_seconds=8):
    names = ("with handles", "without")
    churners = []
    try:
        for name in names:
            churners.append(Churner(build, work_seconds, name == names[0]))
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline or len(churners[0].rests) < 4:
            for churner in churners:
                churner.rest()
            for churner in churners:
                churner.go_on()
    finally:
        for churner in churners:
            churner.close()
    quarter = max(1, len(churners[0].rests) // 4)
    print(f"churn: {len(churners[0].rests)} rests in {seconds} s; medians of the first and of the last quarter of them")
    lines = [("HANDLES", "QUARTER", "RSS/LIVE AFTER", "RESIDENT", "BEFORE", "ARENA SPACE, HEAPS", "PAUSE")]
    for name, churner in zip(names, churners):
        # The very first rest is of a program that is still filling its ring.
        lines.append((name, "first", *summary(churner.rests[1:][:quarter])))
        lines.append((name, "last", *summary(churner.rests[-quarter:])))
    print_columns(lines)
