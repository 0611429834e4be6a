# SPDX-License-Identifier: MIT
"""Hostile programs, each run without and with the preloaded agent: exit code and output must be the same."""
import os
import subprocess
import sys
import threading
import time

from fake_daemon import Daemon, Gone

HOST = os.environ["MEMGUARD_TEST_HOST"]
PRELOAD = os.environ["MEMGUARD_TEST_PRELOAD"]
IS_ROOT = os.geteuid() == 0

# name, whether an agent must have connected with follow, with always; needs root
CASES = [
    ("close-all", True, True, False),
    ("fill-table", True, True, False),
    ("close-standard", True, True, False),
    ("mqueue", True, True, False),
    ("list-for-exec", True, True, False),
    ("fork-before-threads", True, True, False),
    ("fork-after-threads", True, True, False),
    ("daemonize", True, True, False),
    ("fork-while-allocating", True, True, False),
    ("short-children", True, True, False),
    ("spawn", True, True, False),
    ("vfork-setuid", True, True, True),
    ("exec-chain", True, True, False),
    ("main-leaves", True, True, False),
    ("exit-at-once", True, True, False),
    ("exit-handlers", True, True, False),
    ("signal-storm", True, True, False),
    ("sigwait", True, True, False),
    ("fault-on-alternate-stack", True, True, False),
    ("abort", True, True, False),
    ("setuid", False, True, True),
    ("capset-setuid", False, True, True),
    ("raw-capset-setuid", False, True, True),
    ("keep-setuid-only", False, True, True),
    ("bounding-set", False, True, True),
    ("keep-capabilities", False, True, True),
    ("raw-setuid", False, True, True),
    ("unshare-user", False, True, False),
    ("unshare-mount", False, True, True),
    ("seccomp-tsync", True, True, True),
    ("seccomp-early", None, None, True),
    ("seccomp-raw", None, None, True),
    ("seccomp-prctl", False, True, True),
    ("seccomp-strict", False, True, False),
    ("chroot", None, True, True),
    ("setuid-with-threads", True, True, True),
    ("thread-limit", None, True, True),
    ("address-space", True, True, False),
    ("locked-memory", True, True, False),
    ("many-allocators", True, True, False),
    ("thread-churn", True, True, False),
    ("errno", True, True, False),
]


class Pest:
    """Serves every agent that comes, in a thread each: statistics, trims, and now and then a closed connection."""

    def __init__(self):
        self.daemon = Daemon()
        self.connected = 0
        self.replies = 0
        self.faults = []
        self.is_over = False
        threading.Thread(target=self.accept_all, daemon=True).start()

    def accept_all(self):
        while not self.is_over:
            try:
                peer = self.daemon.accept(0.2)
            except (OSError, ValueError):
                return
            if peer:
                self.connected += 1
                threading.Thread(target=self.pester, args=(peer, self.connected), daemon=True).start()

    def pester(self, peer, number):
        try:
            for i in range(2000):
                for verb, keys in (("stats", {"FORCE": 1}), ("trim", {"ARENA_TOPS": 1}), ("ping", {})):
                    reply = peer.request(verb, **keys)
                    if reply["VERB"] not in ("stats-reply", "trim-reply", "pong"):
                        self.faults.append(reply)
                    self.replies += 1
                if self.is_over or (number % 2 == 1 and i == 20):
                    break
                time.sleep(0.02)
        except (Gone, TimeoutError, OSError):
            pass
        peer.connection.close()

    def end(self):
        self.is_over = True
        self.daemon.remove()


def run(case, **extra):
    result = subprocess.run([HOST, case], capture_output=True, timeout=60, check=False,
                            stdin=subprocess.DEVNULL, env={**os.environ, **extra})
    return result.returncode, result.stdout, result.stderr


def check(case, mode, expected):
    without = run(case)
    pest = Pest()
    started = time.monotonic()
    with_agent = run(case, LD_PRELOAD=PRELOAD, MEMGUARD_SOCKET=pest.daemon.path, MEMGUARD_DELAY="0", MEMGUARD_THREAD=mode)
    took = time.monotonic() - started
    time.sleep(0.05)
    pest.end()
    complaints = [f"agent sent {fault}" for fault in pest.faults]
    if with_agent != without:
        complaints.append(f"differs:\n  without {without}\n  with    {with_agent}")
    if expected is not None and (pest.connected > 0) != expected:
        complaints.append(f"{pest.connected} agents connected, expected {'some' if expected else 'none'}")
    print(f"{'ok  ' if not complaints else 'FAIL'} {case}: exit {without[0]}, {pest.connected} agents, "
          f"{pest.replies} replies, {took:.1f}s", flush=True)
    for complaint in complaints:
        print("     " + complaint, flush=True)
    return not complaints


def main():
    mode, only = sys.argv[1], sys.argv[2:]
    failed = 0
    for name, follow, always, needs_root in CASES:
        if only and name not in only:
            continue
        if needs_root and not IS_ROOT:
            print(f"skip {name}: needs root")
            if os.environ.get("MEMGUARD_MUST_WORK") == "1":
                failed += 1
            continue
        failed += not check(name, mode, follow if mode == "follow" else always)
    return 1 if failed else 0


sys.exit(main())
