# SPDX-License-Identifier: MIT
"""What must not be made worse: a real leak (C4), and a program whose heap takes long to trim (C5)."""
import re
import signal

from harness import MIB, check, check_equal, intervals, test, wait_until


def numbers(line):
    return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", line)}


@test
def c4_a_leak_is_not_trimmed_away(world):
    """Live memory grows beside a burst that is freed each two seconds: a few trims at most, and the leak is shown as live."""
    world.run_daemon("[web.process]\nTrimAbove=32M\nMinGain=16M\nCooldownSec=20s\nCooldownMaxSec=10min\nMaxPause=10s\n")
    web = world.service("web", "c4-leak", "--rate=2M", "--size=64M", "--period=2", env={"MEMGUARD_THREAD": "always"})
    world.wait_status("is trimmed", "web.process", lambda row: row["trims"] >= 1)
    first = world.status("web.process")["live_bytes"]
    intervals(160)
    row = world.status("web.process")
    check(row["trims"] <= 3, f"{row['trims']} trims of a burst that comes again")
    bursts = [numbers(line)["leaked_bytes"] for line in web.output().splitlines() if line.startswith("phase burst")]
    check(row["live_bytes"] > first + 16 * MIB, f"live does not grow: {first}, then {row['live_bytes']}")
    check(row["live_bytes"] >= bursts[-2] * 0.9, f"live {row['live_bytes']}, leaked {bursts[-2:]}")
    check(row["verdict"] in ("learning", "live-growth"), f"verdict: {row['verdict']}")


@test
def a_heap_outgrows_its_statistics(world):
    """Too dear to be looked at again: that is said, and not that all of it is in use."""
    world.run_daemon("[web.process]\nTrimAbove=64M\nMinGain=16M\nCooldownSec=1s\nMaxPause=50ms\n")
    web = world.peer("web", "costly").wait_for("hello")
    world.wait_status("is known", "web.process", lambda row: row["reason"] == "below-threshold")
    web.signal(signal.SIGUSR1)
    row = world.wait_status("is held for want of statistics", "web.process", lambda row: row["reason"] == "no-statistics")
    check_equal("what is in use", row.get("live_bytes"), None)


@test
def c5_a_heap_that_stalls_is_left_alone(world):
    """Half a million small blocks in one arena: a trim would hold its lock far longer than MaxPause= allows."""
    world.run_daemon("[web.process]\nTrimAbove=64M\nMinGain=16M\nCooldownSec=1s\nMaxPause=50ms\n")
    web = world.service("web", "c5-stall", "--size=512M", "--operations=5000").wait_for("phase built")
    before = web.rss_anon()
    # Either it was predicted, or there are no statistics that MaxPause= allows to take, or the first trim showed it.
    refusals = ("max-pause", "no-statistics", "breaker")
    world.wait_status("is held", "web.process", lambda row: row["reason"] in refusals)
    web.wait_for("summary")
    intervals(8)
    row = world.status("web.process")
    check(row["reason"] in refusals, f"held for another reason: {row}")
    check(row["trims"] <= 1, f"{row['trims']} trims")
    check(row["trims"] == 0 or row["reason"] == "breaker", f"trimmed, and no breaker: {row}")
    check(world.log_lines("web.process: held") or row["reason"] == "breaker", "the log does not say why")
    check_equal("what happened to its memory", row["trims"] > 0 or web.rss_anon() > before / 2, True)
    process = [p for p in world.json("list-processes", "web.process") if p["pid"] == web.pid][0]
    asked = process.get("stats_cost_usec")
    summary = numbers([line for line in web.output().splitlines() if line.startswith("summary")][0])
    print(f"    stall of the program's own thread: p99 {summary['p99_usec']} us, worst {summary['worst_usec']} us; "
          f"last statistics {asked} us")


@test
def c5_resume_closes_the_breaker(world):
    """An overrun opens the breaker: observed, whatever Mode= says, until somebody resumes it."""
    world.run_daemon("[web.process]\nTrimAbove=64M\nMinGain=16M\nCooldownSec=1s\nCooldownMaxSec=2s\nMaxPause=500ms\n")
    web = world.peer("web", "overrun").wait_for("hello")
    row = world.wait_status("has its breaker open", "web.process", lambda row: row["breaker"])
    check_equal("trims", row["trims"], 1)
    wait_until("the log says so", lambda: world.log_lines("web.process", "MaxPause="))
    intervals(20)
    row = world.status("web.process")
    check_equal("trims and reason", (row["trims"], row["reason"]), (1, "breaker"))
    check_equal("resume", world.ctl("resume", "web.process").returncode, 0)
    world.wait_status("is closed", "web.process", lambda row: not row["breaker"])
    check(web.output().count("trim") >= 1, "it was never asked")
