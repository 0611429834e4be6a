# SPDX-License-Identifier: MIT
"""Before there is an agent: survey, and what enroll refuses without asking anybody."""
import json
import os

from harness import MIB, check, check_equal, test, wait_until


def survey_row(world, unit):
    rows = [row for row in world.json("survey") if row["unit"] == unit]
    check_equal(f"rows of {unit}", len(rows), 1)
    return rows[0]


@test
def survey_finds_arenas_without_a_daemon(world):
    world.service("arenas", "c1-arenas", agent=False).wait_for("phase idle")
    row = survey_row(world, "arenas.process")
    check_equal("profit", (row["profit"], row["agents"], row["processes"]), ("likely", 0, 1))
    check_equal("allocators", row["allocators"], ["glibc"])
    check(row["arena_heaps"] >= 8 and row["threads"] >= 9 and row["anon_bytes"] > 400 * MIB, json.dumps(row))
    shown = world.ctl("survey").stdout.splitlines()
    first = next(line.split()[0] for line in shown if ".process" in line or ".service" in line)
    check("arenas.process" in "\n".join(shown) and first != "UNIT", f"{shown[:3]}")
    check("PROFIT is" not in world.ctl("survey", "--no-legend").stdout, "a legend in spite of --no-legend")


@test
def survey_says_who_has_an_agent_already(world):
    world.run_daemon("")
    world.service("web", "c1-arenas", "--blocks=64").wait_for("phase idle")
    wait_until("the agent is seen", lambda: survey_row(world, "web.process")["profit"] == "agent")


@test
def enroll_refuses_by_name_and_says_why(world):
    """Before anything is asked: one line, exit code 1, nothing written."""
    for name, words in (("system.slice", "enroll the services in it"), ("session-1.scope", "LD_PRELOAD"),
                        ("worker@.service", "worker@1.service"), ("../../etc/passwd", "not the name"), ("a b", "not the name"),
                        ("memguard", "itself"), ("redis.process", "in no unit")):
        done = world.ctl("enroll", name, f"--root={world.directory}/root")
        check_equal(f"{name}: exit code, lines", (done.returncode, len(done.stderr.splitlines())), (1, 1))
        check(words in done.stderr, done.stderr)
    check(not os.path.exists(f"{world.directory}/root"), "something was written")
    check_equal("without a name", world.ctl("enroll").returncode, 2)


@test
def withdraw_takes_only_what_enroll_wrote(world):
    """Needs no systemd below a root of its own."""
    root = f"{world.directory}/root"
    path = f"{root}/etc/systemd/system/web.service.d/50-memguard.conf"
    check_equal("nothing there", world.ctl("withdraw", "web", f"--root={root}").returncode, 1)
    os.makedirs(os.path.dirname(path))
    with open(path, "w") as file:
        file.write("[Service]\nEnvironment=LD_PRELOAD=/x.so\n")
    done = world.ctl("withdraw", "web", f"--root={root}")
    check_equal("exit code", done.returncode, 1)
    check("not written by enroll" in done.stderr and os.path.exists(path), done.stderr)
