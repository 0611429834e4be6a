# SPDX-License-Identifier: MIT
"""Agents that hang, lie, flood, send garbage or vanish: each costs its own connection, and nobody else anything."""
import os
import signal
import subprocess
import sys

import peer as fake
from harness import ALWAYS, HERE, MIB, Skip, check, check_equal, intervals, test, wait_until

QUICK = "TrimAbove=64M\nMinGain=16M\nCooldownSec=1s\nCooldownMaxSec=1min\nMaxPause=1s\n"
BOTH = f"[good.process]\n{QUICK}[bad.process]\nTrimAbove=16M\nMinGain=8M\nCooldownSec=1s\nCooldownMaxSec=1min\nMaxPause=1s\n"


def good_one_is_served(world, trims=1):
    """The proof that nobody else was hurt: an ordinary service is trimmed as ever."""
    good = world.service("good", "c1-arenas", "--blocks=1024").wait_for("phase idle")
    world.wait_trimmed(good, below=20 * MIB)
    check_equal("trims", world.status("good.process")["trims"], trims)
    good.stop()


@test
def an_agent_that_never_answers(world):
    world.run_daemon(BOTH, AgentTimeoutSec="1s")
    bad = world.peer("bad", "hang").wait_for("trim")
    good_one_is_served(world)
    wait_until("the log names the peer", lambda: world.log_lines("bad.process", "answer"))
    world.wait_status("backs off", "bad.process", lambda row: row["trims"] == 0 or row["last_trim"]["gain_bytes"] == 0)
    check(bad.process.poll() is None, "the peer died")
    check(bad.rss_anon() > 100 * MIB, "the peer lost its memory")


@test
def an_answer_that_comes_too_late(world):
    """A late reply is dropped and counted; it is never taken for the reply to a later request."""
    world.run_daemon(BOTH, AgentTimeoutSec="1s")
    world.peer("bad", "late").wait_for("trim")
    intervals(20)
    row = world.status("bad.process")
    check(row["last_trim"] is None or row["last_trim"]["gain_bytes"] < 8 * MIB, f"a late reply counted: {row}")
    good_one_is_served(world)


@test
def a_stopped_service_comes_back(world):
    """SIGSTOP freezes a real agent in the middle of things; after SIGCONT it is served as if nothing had been."""
    world.run_daemon(BOTH, AgentTimeoutSec="1s")
    bad = world.service("bad", "c1-arenas", "--blocks=1024", "--wait", env=ALWAYS).wait_for("phase start")
    world.wait_agents("bad.process", 1)
    bad.signal(signal.SIGSTOP)
    good_one_is_served(world)
    bad.signal(signal.SIGCONT)
    bad.signal(signal.SIGUSR1)
    bad.wait_for("phase idle")
    world.wait_trimmed(bad, below=20 * MIB)


@test
def a_liar_gains_nothing(world):
    """Claims of a terabyte to give back and of a great success: the numbers shown are the kernel's."""
    world.run_daemon(BOTH)
    bad = world.peer("bad", "liar").wait_for("hello")
    world.wait_agents("bad.process", 1)
    world.wait_status("is tried or held", "bad.process", lambda row: row["live_bytes"] is not None)
    bad.wait_for("trim")
    row = world.wait_status("the round is over", "bad.process", lambda row: row["last_trim"] is not None)
    check(row["last_trim"]["gain_bytes"] < 8 * MIB, f"believed a liar: {row['last_trim']}")
    check((row["trimmed_bytes"] or 0) < 8 * MIB, f"counted a liar's word: {row}")
    check(row["retained_bytes"] <= row["anon_bytes"], f"more retained than there is: {row}")
    good_one_is_served(world)


@test
def garbage_costs_the_connection(world):
    """Each malformed datagram, before and after hello."""
    world.run_daemon(BOTH)
    peers = []
    for number, kind in enumerate(fake.GARBAGE):
        for when in ("", "+hello"):
            peers.append((kind + when, world.peer(f"bad{number}{'h' if when else ''}", "garbage", kind + when)))
    for kind, bad in peers:
        try:
            bad.wait_for("closed")
        except Exception as error:
            raise type(error)(f"{kind}: {error}") from None
    good_one_is_served(world)


@test
def an_unknown_verb_costs_nothing(world):
    """A newer agent's verb is answered `unsupported`, as memguard-protocol(7) has it, and the connection lives."""
    world.run_daemon(BOTH)
    bad = world.peer("bad", "unknown-verb").wait_for("unsupported 77").wait_for("stats")
    intervals(4)
    check("closed" not in bad.output(), "an unknown verb cost the connection")
    good_one_is_served(world)


@test
def a_flood_costs_the_connection(world):
    world.run_daemon(BOTH)
    world.peer("bad", "flood").wait_for("closed")
    good_one_is_served(world)


@test
def a_mute_peer_and_a_slow_reader(world):
    """One never says hello, one never reads: neither makes the daemon wait."""
    world.run_daemon(BOTH, AgentTimeoutSec="1s")
    world.peer("mute", "mute").wait_for("connected")
    world.peer("bad", "slow-reader").wait_for("hello")
    intervals(8)
    good_one_is_served(world)


@test
def one_process_with_hundreds_of_connections(world):
    world.run_daemon(BOTH)
    world.peer("bad", "many-connections", "300").wait_for("opened")
    good_one_is_served(world)
    check(world.status("bad.process")["agents"] <= 1, "one process counts as several agents")


@test
def a_peer_that_vanishes_in_mid_request(world):
    world.run_daemon(BOTH)
    bad = world.peer("bad", "hang").wait_for("trim")
    bad.process.kill()
    bad.process.wait()
    good_one_is_served(world)
    code = world.ctl("status", "bad.process").returncode
    check(code in (0, 4), f"status of a vanished unit: {code}")


@test
def the_python_client(world):
    """The protocol from its manual page alone: a client of at most 40 lines connects and is served."""
    path = f"{HERE}/protocol_client.py"
    if not os.path.exists(path):
        raise Skip("tests/integration/protocol_client.py is not there")
    with open(path) as file:
        lines = file.read().splitlines()
    check(len(lines) <= 40, f"{len(lines)} lines")
    world.run_daemon("")
    client = subprocess.Popen([sys.executable, path, world.agent_socket], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, env=dict(os.environ, MEMGUARD_SOCKET=world.agent_socket))
    try:
        unit = os.path.basename(os.path.realpath(sys.executable)) + ".process"
        row = world.wait_status("knows the client", unit, lambda row: row["agents"] == 1 and row["live_bytes"] is not None)
        check(row["processes"] >= 1, f"no process: {row}")
    finally:
        client.kill()
        client.communicate()
