# SPDX-License-Identifier: MIT
"""What statistics and trims cost in each back-end: for a GiB of free pages, for a million free pieces, and for another thread.

A program of four threads (tests/bench/costs.c) frees what it has taken; one of its threads goes on allocating and measures the longest
time that takes. It is asked for statistics and trimmed by a daemon of a few lines; what it takes is what the agent reports, by the GiB and the
million in its own CPU time, which holds on a busy machine too. The stall of the thread is set against the longest it met in as long a time in which nobody asked for anything.
"""
import glob
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "agent"))
from columns import print_columns  # noqa: E402
from fake_daemon import Daemon, rss_anon  # noqa: E402

MIB = 1 << 20
LIBRARIES = {"glibc": None, "jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4", "mimalloc": "libmimalloc.so.2",
             "mimalloc 3": "libmimalloc.so.3"}
SHAPES = {"large": "16K blocks, all freed", "small": "200 B blocks, every second freed"}


def library(name):
    """What is installed, or what tests/mimalloc3 has fetched."""
    found = glob.glob(f"/usr/lib/*-linux-gnu*/{name}")
    fetched = os.environ.get("MEMGUARD_TEST_MIMALLOC_3", "")
    if fetched.endswith(name):
        found.append(fetched)
    if not found:
        raise RuntimeError(f"{name} is not installed")
    return found[0]


class Heap:
    def __init__(self, build, allocator, shape, mib):
        self.daemon = Daemon()
        preload = [library(LIBRARIES[allocator])] if LIBRARIES[allocator] else []
        environment = {key: value for key, value in os.environ.items() if key not in ("MALLOC_PERTURB_", "MALLOC_CONF")}
        environment.update(LD_PRELOAD=":".join(preload + [build.preload]), MEMGUARD_SOCKET=self.daemon.path, MEMGUARD_DELAY="0",
                           MALLOC_CONF="dirty_decay_ms:-1")
        self.allocator = allocator.split()[0]
        self.process = subprocess.Popen([f"{build.directory}/tests/bench/costs", shape, str(mib)], env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.peer = self.daemon.accept(20)
        if not self.peer or self.process.stdout.readline() != "ready\n":
            raise RuntimeError("the program did not begin")

    def longest_usec(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def request(self, verb, **keys):
        """The reply, how long the probing thread was held up at most, and how long in the same time without."""
        self.longest_usec()
        started = time.monotonic()
        reply = self.peer.request(verb, timeout=120, **keys)
        took = time.monotonic() - started
        during = self.longest_usec()
        time.sleep(max(took, 0.05))
        return reply, during, self.longest_usec()

    def number(self, message, key):
        for i in range(message["HEAPS"]):
            if message[f"HEAP{i}_ALLOCATOR"] == self.allocator:
                return message.get(f"HEAP{i}_{key}")
        return None

    def close(self):
        self.process.kill()
        self.process.communicate()
        self.daemon.remove()


def milliseconds(usec):
    return f"{usec / 1000:.2f}ms" if usec < 10000 else f"{usec / 1000:.0f}ms"


def stall(during, idle):
    return f"{milliseconds(during)} ({milliseconds(idle)})"


def measure(build, allocator, shape, mib):
    heap = Heap(build, allocator, shape, mib)
    try:
        stats, stats_stall, stats_idle = heap.request("stats", FORCE=1)
        chunks = heap.number(stats, "FREE_CHUNKS") if stats["HEAPS"] else None
        before = rss_anon(heap.process.pid)
        trim, trim_stall, trim_idle = heap.request("trim", ARENA_TOPS=1)
        gained = before - rss_anon(heap.process.pid)
        has_stats = stats["RESULT"] == "done" and heap.number(heap.peer.hello, "CAN") is not None
        cost = stats["STATS_COST_USEC"] if has_stats else None
        is_done = trim["RESULT"] == "done" and "trim" in (heap.number(heap.peer.hello, "CAN") or "")
        return (allocator, SHAPES[shape], f"{before / MIB:.0f}M", "-" if chunks is None else f"{chunks / 1e6:.2f}",
                milliseconds(cost) if has_stats else "none",
                "-" if not chunks or chunks < 1000 else milliseconds(cost * 1e6 / chunks), stall(stats_stall, stats_idle) if has_stats else "-",
                milliseconds(trim["DURATION_USEC"]) if is_done else "cannot",
                f"{gained / MIB:.0f}M", milliseconds(trim["CPU_USEC"] * (1 << 30) / gained) if is_done and gained > 64 * MIB else "-",
                milliseconds(trim["PAUSE_USEC"]) if is_done else "-", stall(trim_stall, trim_idle) if is_done else "-")
    finally:
        heap.close()


def bench(build, quick):
    lines = [("ALLOCATOR", "HEAP", "ANON", "FREE PIECES/1E6", "STATISTICS (CPU)", "A MILLION", "STALL (IDLE)", "TRIM", "GAINED", "CPU A GIB", "PAUSE TOLD",
              "STALL (IDLE)")]
    for allocator in LIBRARIES:
        for shape in SHAPES:
            print(f"... costs of {allocator}, {shape}", file=sys.stderr, flush=True)
            try:
                lines.append(measure(build, allocator, shape, (128 if quick else 512) if shape == "large" else (48 if quick else 192)))
            except RuntimeError as error:
                lines.append((allocator, str(error)) + ("",) * (len(lines[0]) - 2))
    print_columns(lines)
