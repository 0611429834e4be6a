# SPDX-License-Identifier: MIT
"""test_soak.py [SECONDS]: 64 threads allocate and check their blocks while statistics and trims run without a pause.

Ten seconds by default; ten minutes before a release. The program must end as it does without an agent, every request be answered,
and the agent neither lose its connection nor gain descriptors or threads over the time.
"""
import os
import subprocess
import sys
import time

from fake_daemon import Daemon, Gone

HOST = os.environ["MEMGUARD_TEST_HOST"]
SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else 10
CASE = "many-allocators"
THREADS = 1 + 64 + 1  # main, those that allocate, the agent


def agent_task(pid):
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/comm", encoding="ascii") as comm:
            if comm.read() == "memguard\n":
                return f"/proc/{pid}/task/{task}"
    raise AssertionError("no agent thread")


def holdings(pid):
    """Threads of the process, descriptors of the program and of the agent."""
    return tuple(len(os.listdir(path)) for path in (f"/proc/{pid}/task", f"/proc/{pid}/fd", agent_task(pid) + "/fd"))


def pester(peer, pid):
    """Until the program ends. Returns requests answered, those done, and what was held after each round."""
    requests, done, held = 0, 0, []
    try:
        while True:
            for verb, keys in ("stats", {"FORCE": 1}), ("trim", {"ARENA_TOPS": 1}), ("ping", {}):
                reply = peer.request(verb, timeout=120, **keys)
                assert reply["VERB"] in ("stats-reply", "trim-reply", "pong"), reply
                requests += 1
                done += reply.get("RESULT") == "done"
            held.append(holdings(pid))
    except (Gone, OSError):
        return requests, done, held


def main():
    daemon = Daemon()
    environment = {**os.environ, "LD_PRELOAD": os.environ["MEMGUARD_TEST_PRELOAD"], "MEMGUARD_SOCKET": daemon.path,
                   "MEMGUARD_DELAY": "0", "HOST_SECONDS": str(SECONDS)}
    plain = subprocess.run([HOST, CASE], check=False, capture_output=True, env={**os.environ, "HOST_SECONDS": "1"})
    started = time.monotonic()
    with subprocess.Popen([HOST, CASE], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        peer = daemon.accept(60)
        assert peer, "no agent connected"
        requests, done, held = pester(peer, process.pid)
        lasted = time.monotonic() - started
        output, errors = process.communicate(timeout=120)
    assert daemon.accept(0) is None, "the agent came a second time"
    daemon.remove()
    assert (process.returncode, output, errors) == (plain.returncode, plain.stdout, plain.stderr), (plain, process.returncode, output, errors)
    assert lasted >= SECONDS, f"the agent left after {lasted:.1f} s"
    assert done > 0 and held, "no trim was done"
    # The first rounds may see threads that are still to come, the last ones such as have ended.
    descriptors = {counts[1:] for counts in held}
    assert len(descriptors) == 1 and max(threads for threads, *_ in held) <= THREADS, held
    print(f"{lasted:.0f} s: {requests} requests, {done} done, descriptors {descriptors}: {output.decode().strip()}")


main()
