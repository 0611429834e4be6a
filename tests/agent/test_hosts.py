# SPDX-License-Identifier: MIT
"""Hostile programs, each run without and with the preloaded agent: exit code and output must be the same."""
import os
import subprocess
import sys
import time

from pest import Pest

HOST = os.environ["MEMGUARD_TEST_HOST"]
PRELOAD = os.environ["MEMGUARD_TEST_PRELOAD"]
IS_ROOT = os.geteuid() == 0

# A mode in which nothing can be had: the thread that was asked for is what the sandbox kills for.
LEFT_OUT = object()

# name, whether an agent must have connected with follow, with always; needs root
CASES = [
    ("close-all", True, True, False),
    ("fill-table", True, True, False),
    ("close-standard", True, True, False),
    ("mqueue", False, True, False),
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
    ("setns-user", False, True, True),
    ("unshare-pid", False, True, True),
    ("errno-of-failures", False, True, True),
    ("seccomp-tsync", True, True, True),
    ("seccomp-early", None, None, True),
    ("seccomp-raw", None, None, True),
    ("seccomp-prctl", False, True, True),
    ("seccomp-strict", False, True, False),
    ("seccomp-trap", True, True, True),
    ("seccomp-narrow", True, True, True),
    ("seccomp-early-narrow", None, None, True),
    ("chroot", None, True, True),
    ("setuid-with-threads", True, True, True),
    ("thread-limit", None, True, True),
    ("address-space", True, True, False),
    ("tight-address-space", True, True, False),
    ("locked-memory", True, True, False),
    ("many-allocators", True, True, False),
    ("thread-churn", True, True, False),
    ("errno", True, True, False),
    # No descriptor table of its own to be had (Linux before 5.9): no agent. With always the launcher, still unfiltered, has one.
    ("no-close-range close-all", False, None, True),
    ("no-close-range close-standard", False, None, True),
    ("no-close-range mqueue", False, None, True),
    ("no-close-range fork-after-threads", False, None, True),
    ("no-close-range daemonize", False, None, True),
    ("no-close-range signal-storm", False, None, True),
    ("no-close-range setuid", False, None, True),
    ("no-close-range unshare-user", False, None, True),
    ("no-close-range raw-setuid", False, None, True),
    ("no-close-range main-leaves", False, None, True),
    ("no-close-range errno", False, None, True),
    # Descriptors or calls that a service's sandbox takes from it before it begins.
    ("one-descriptor errno", False, None, False),
    ("one-descriptor fork-after-threads", False, None, False),
    ("kill-socket fork-after-threads", False, None, True),
    ("kill-socket errno", False, None, True),
    ("kill-socket setuid", False, None, True),
    ("kill-clone errno-of-failures", False, LEFT_OUT, True),
    ("kill-prctl fork-after-threads", False, None, True),
    ("kill-close-range fork-after-threads", False, None, True),
    ("kill-signalfd fork-after-threads", False, None, True),
    # The trial under the filter that was there at load must not be made under the one that came later.
    ("kill-signalfd seccomp-early-narrow", False, None, True),
]


SANITIZER = os.environ.get("MEMGUARD_TEST_SANITIZED", "none")
# AddressSanitizer reserves terabytes of addresses, looks for leaks through /proc and a thread of its own, and its allocator's locks go
# through a fork as they are: a child of a program with threads hangs now and then, without any agent.
NOT_BY_ADDRESS = ("address-space", "tight-address-space", "fork-after-threads", "fork-while-allocating", "narrow")
# ThreadSanitizer follows no fork, believes that all threads share one table of descriptors, and has a thread of its own, which a filter kills.
BY_THREAD = ("exit-at-once", "exit-handlers", "signal-storm", "sigwait", "setuid", "bounding-set", "setuid-with-threads", "locked-memory",
             "many-allocators", "thread-churn", "errno")
if "address" in SANITIZER:
    os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"


def is_for_sanitizer(name):
    return not name.endswith(NOT_BY_ADDRESS) if "address" in SANITIZER else name in BY_THREAD if "thread" in SANITIZER else True


def run(case, **extra):
    result = subprocess.run([HOST, *case.split()], capture_output=True, timeout=200, check=False,
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
        expected = follow if mode == "follow" else always
        if expected is LEFT_OUT or (only and name not in only):
            continue
        if not is_for_sanitizer(name):
            continue
        if needs_root and not IS_ROOT:
            print(f"skip {name}: needs root")
            if os.environ.get("MEMGUARD_MUST_WORK") == "1":
                failed += 1
            continue
        failed += not check(name, mode, expected)
    return 1 if failed else 0


sys.exit(main())
