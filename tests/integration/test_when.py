# SPDX-License-Identifier: MIT
"""When=: a trim that is due in every other way waits for its moment, and is made when that comes."""
import signal

from harness import MIB, check, check_equal, intervals, test

# Above every threshold at once, so that the moment alone decides.
DUE = "TrimAbove=64M\nMinGain=16M\nCooldownSec=1s\nMaxPause=10s\n"


def conditions(world, unit):
    return {condition["name"]: condition["state"] for condition in world.json("explain", unit)["conditions"]}


def held_for_its_moment(world, unit):
    row = world.wait_status("waits for its moment", unit, lambda row: row["reason"] == "when")
    check(row["retained_bytes"] > 64 * MIB, f"nothing to wait with: {row}")
    states = conditions(world, unit)
    check_equal("the condition that fails", [name for name, state in states.items() if state == "fails"], ["when"])


@test
def when_idle(world):
    """Not while it burns CPU, for longer than idleness has to last; soon after it has stopped."""
    world.run_daemon(f"[web.process]\nWhen=idle\n{DUE}")
    web = world.peer("web", "patient", "busy").wait_for("hello")
    held_for_its_moment(world, "web.process")
    intervals(160)
    row = world.status("web.process")
    check_equal("trims while busy", (row["trims"], row["reason"]), (0, "when"))
    web.signal(signal.SIGUSR1)
    row = world.wait_trimmed(web)
    check(row["last_trim"]["gain_bytes"] > 100 * MIB, f"gain: {row['last_trim']}")


@test
def when_idle_of_a_whole_unit(world):
    """One busy process keeps its idle sibling from being trimmed: they are one unit, and wait together."""
    world.run_daemon(f"[web.process]\nWhen=idle\n{DUE}")
    world.peer("web", "patient", "busy").wait_for("hello")
    world.peer("web", "patient", "idle").wait_for("hello")
    world.wait_agents("web.process", 2)
    held_for_its_moment(world, "web.process")
    intervals(160)
    check_equal("trims", world.status("web.process")["trims"], 0)


@test
def when_checkpoint(world):
    """However idle it is: not before the program has said so, once for each time it says so."""
    world.run_daemon(f"[web.process]\nWhen=checkpoint\n{DUE}")
    web = world.peer("web", "patient", "checkpoint").wait_for("hello")
    held_for_its_moment(world, "web.process")
    intervals(20)
    check_equal("trims before any checkpoint", world.status("web.process")["trims"], 0)
    web.signal(signal.SIGUSR1)
    row = world.wait_trimmed(web)
    check(row["last_trim"]["gain_bytes"] > 100 * MIB, f"gain: {row['last_trim']}")
    intervals(20)
    check_equal("trims after one checkpoint", world.status("web.process")["trims"], 1)


@test
def when_pressure_alone(world):
    """A quiet host never trims such a unit; an operator's hand does."""
    world.run_daemon(f"[web.process]\nWhen=pressure\n{DUE}", PressureHigh="100%")
    web = world.peer("web", "patient", "idle").wait_for("hello")
    held_for_its_moment(world, "web.process")
    intervals(20)
    check_equal("trims", world.status("web.process")["trims"], 0)
    check_equal("exit code", world.ctl("trim", "web.process").returncode, 0)
    check(web.rss_anon() < 64 * MIB, "by hand nothing came back")


@test
def when_checkpoint_of_a_real_program(world):
    """A program that looks memguard_checkpoint() up at run time, under the preload object: trimmed after its sweep, not before."""
    world.run_daemon(f"[web.process]\nWhen=checkpoint\n{DUE}")
    web = world.service("web", "s3-sweep", "--clustered", "--rounds=1", "--checkpoint").wait_for("phase idle")
    row = world.wait_trimmed(web, below=100 * MIB)
    check_equal("trims", row["trims"], 1)
    check(row["last_trim"]["before_bytes"] > 150 * MIB, f"before the sweep: {row['last_trim']}")


@test
def checkpoint_between_two_ticks(world):
    """What a sweep has freed is asked for before the program takes it again, however far the next tick is."""
    world.run_daemon(f"[web.process]\nMode=trim\n{DUE}", IntervalSec="1h")
    web = world.peer("web", "patient", "checkpoint").wait_for("hello")
    world.wait_agents("web.process", 1)
    web.signal(signal.SIGUSR1)
    row = world.wait_trimmed(web)
    check(row["last_trim"]["gain_bytes"] > 100 * MIB, f"gain: {row['last_trim']}")
