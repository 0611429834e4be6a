# SPDX-License-Identifier: MIT
"""Before there is an agent: survey, and what enroll refuses without asking anybody."""
import json

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
