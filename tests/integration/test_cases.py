# SPDX-License-Identifier: MIT
"""What memguard must do about each kind of fault, on real processes: C1, C2, C3, C6, C7 and the published cases S2 to S4."""
from harness import (ALWAYS, MIB, check, check_equal, intervals, jemalloc_library, rss_anon, test, wait_until)

# Thresholds small enough that a workload of half a GiB is far above them, cool-downs short enough for a test.
QUICK = "TrimAbove=64M\nMinGain=16M\nCooldownSec=1s\nCooldownMaxSec=1min\nMaxPause=1s\n"


@test
def c1_thread_arenas(world):
    """512 MiB freed by eight living threads come back by one trim, and the log says so."""
    world.run_daemon(f"[web.process]\n{QUICK}")
    web = world.service("web", "c1-arenas").wait_for("phase idle")
    row = world.wait_trimmed(web, below=20 * MIB)
    last = row["last_trim"]
    check(last["before_bytes"] > 400 * MIB, f"before: {last}")
    check(last["after_bytes"] < 20 * MIB, f"after: {last}")
    check(last["gain_bytes"] >= last["before_bytes"] - last["after_bytes"], f"gain: {last}")
    check(last["duration_usec"] > 0 and last["pause_usec"] is not None, f"times: {last}")
    check_equal("lines about the trim", len(world.log_lines("web.process: trimmed")), 1)
    intervals(8)
    check_equal("trims", world.status("web.process")["trims"], 1)


@test
def c1_without_agent_nothing_happens(world):
    """The same program without an agent, though with a section: shown as such, with what is unknown left unknown, and left alone."""
    web = world.service("web", "c1-arenas", agent=False).wait_for("phase idle")
    world.run_daemon(f"[web.process]\n{QUICK}")
    row = world.wait_status("is seen", "web.process", lambda row: row["anon_bytes"] > 400 * MIB)
    check_equal("agents", row["agents"], 0)
    for name in ("live_bytes", "retained_bytes", "freeable_bytes"):
        check_equal(name, row[name], None)
    intervals(8)
    row = world.status("web.process")
    check_equal("trims", row["trims"], 0)
    check_equal("reason", row["reason"], "no-agent")
    check(web.rss_anon() > 400 * MIB, "somebody trimmed it")


@test
def c2_stale_counter(world):
    """After a trim glibc's free bytes still say 512 MiB; memguard must neither believe nor show it."""
    world.run_daemon(f"[web.process]\n{QUICK}")
    web = world.service("web", "c1-arenas").wait_for("phase idle")
    world.wait_trimmed(web, below=20 * MIB)
    for _ in range(40):
        row = world.status("web.process")
        check_equal("trims", row["trims"], 1)
        most = row["anon_bytes"] + (row["swap_bytes"] or 0) - row["live_bytes"]
        check(row["retained_bytes"] <= max(most, 0), f"retained beyond what is resident: {row}")
        check(row["freeable_bytes"] <= max(most, 0), f"freeable beyond what is resident: {row}")
        intervals(1)


@test
def the_parts_always_add_up(world):
    """anon + swap = live + freeable + pinned + other, while a load runs."""
    world.run_daemon(f"[web.process]\n{QUICK}")
    web = world.service("web", "s1-lru-cache", "--seconds=6", "--size=64M")
    world.wait_agents("web.process", 1)
    for _ in range(20):
        row = world.status("web.process")
        if row["live_bytes"] is not None:
            parts = sum(row[name] for name in ("live_bytes", "freeable_bytes", "pinned_bytes", "other_bytes"))
            check_equal(f"sum of {row}", parts, row["anon_bytes"] + (row["swap_bytes"] or 0))
        intervals(1)
    web.wait_for("phase idle")


@test
def c3_pinned(world):
    """A trim that brings nothing is tried, recognised, and not repeated in a hurry. Nobody calls it a leak."""
    world.run_daemon("[web.process]\nTrimAbove=64M\nMinGain=16M\nCooldownSec=2s\nCooldownMaxSec=10min\nMaxPause=1s\n")
    web = world.service("web", "c3-pinned").wait_for("phase idle")
    row = world.wait_status("is pinned", "web.process", lambda row: row["verdict"] == "pinned")
    check(row["last_trim"] is not None, "pinned without an attempt")
    check(row["last_trim"]["gain_bytes"] < 16 * MIB, f"gain: {row['last_trim']}")
    check(row["freeable_bytes"] < row["retained_bytes"] / 4, f"still promises what did not come: {row}")
    check(row["pinned_bytes"] > 200 * MIB, f"pinned bytes: {row}")
    check(web.rss_anon() > 400 * MIB, "a pinned heap shrank: the workload is wrong")
    first = row["last_trim"]["at_usec"]
    intervals(6)
    check_equal("time of the last attempt", world.status("web.process")["last_trim"]["at_usec"], first)
    check("leak" not in world.log().lower(), "the log speaks of a leak")


@test
def c6_refault_backs_off(world):
    """What comes back is needed again at once: fewer and fewer attempts."""
    world.run_daemon("[web.process]\nTrimAbove=4M\nMinGain=4M\nCooldownSec=1s\nCooldownMaxSec=10min\nMaxPause=1s\n")
    world.service("web", "c6-refault", "--seconds=3600", "--period=500", env=ALWAYS)
    row = world.wait_status("is trimmed", "web.process", lambda row: row["trims"] >= 1)
    row = world.wait_status("backs off", "web.process", lambda row: row["reason"] in ("regrowth", "cooldown", "pinned"))
    wait_until("regrowth is seen", lambda: world.status("web.process")["reason"] == "regrowth")
    intervals(40)
    trims = world.status("web.process")["trims"]
    check(trims <= 6, f"{trims} trims of memory that is in use again at once")


@test
def c7_idle_jemalloc(world):
    """An idle jemalloc without background threads never gives back by itself. Its stats.retained is address space."""
    world.run_daemon(f"[web.process]\n{QUICK}")
    web = world.service("web", "c1-arenas", "--threads=4", "--blocks=4000", preload=[jemalloc_library()])
    web.wait_for("phase idle")
    row = world.wait_trimmed(web, below=15 * MIB)
    names = {allocator["name"] for allocator in row["allocators"]}
    check("jemalloc" in names, f"allocators: {names}")
    check(row["last_trim"]["expected_bytes"] > 100 * MIB, f"expected: {row['last_trim']}")
    row = world.wait_status("freeable is gone", "web.process", lambda row: row["freeable_bytes"] < 16 * MIB)
    check(row["retained_bytes"] < 16 * MIB, f"address space was counted: {row}")
    intervals(8)
    check_equal("trims", world.status("web.process")["trims"], 1)


@test
def s2_request_threads(world):
    """The arenas of threads long gone, their tops included. On a slow machine trims begin under load: that puts off the last one."""
    world.run_daemon(f"[web.process]\n{QUICK.replace('CooldownMaxSec=1min', 'CooldownMaxSec=5s')}")
    web = world.service("web", "s2-request-threads", "--operations=1000").wait_for("phase idle")
    world.wait_trimmed(web)
    wait_until("the arenas' tops came back as well", lambda: web.rss_anon() < 48 * MIB)


@test
def s3_clustered_sweep(world):
    """Survivors that are neighbours: the pages between them come back."""
    world.run_daemon(f"[web.process]\n{QUICK}")
    web = world.service("web", "s3-sweep", "--clustered", "--rounds=1").wait_for("phase idle")
    world.wait_trimmed(web, below=80 * MIB)


@test
def s4_large_blocks(world):
    """The mmap threshold has climbed, the load has dropped: nearly all of the heap comes back."""
    world.run_daemon(f"[web.process]\n{QUICK}")
    web = world.service("web", "s4-large-blocks", "--operations=1500").wait_for("phase idle")
    world.wait_trimmed(web, below=128 * MIB)


@test
def c10_files_and_shared_maps_are_no_heap(world):
    """Page cache, small files, a shared map and tmpfs beside a heap that is all in use: nothing to do."""
    world.run_daemon("[web.process]\nTrimAbove=1M 1%\nMinGain=1M\nCooldownSec=1s\nMaxPause=1s\n")
    web = world.service("web", "c10-not-heap", "--scale=4", f"--directory={world.directory}", env=ALWAYS).wait_for("phase idle")
    row = world.wait_status("is measured", "web.process", lambda row: row["live_bytes"] and row["live_bytes"] > 18 * MIB)
    intervals(8)
    row = world.status("web.process")
    check_equal("trims", row["trims"], 0)
    check(18 * MIB < row["anon_bytes"] < 26 * MIB, f"anon: {row}")
    check(row["retained_bytes"] < 2 * MIB, f"retained: {row}")
    web.stop()


@test
def c11_prefork(world):
    """A master that retains memory and forks: an agent in each of them, and all of them give it back."""
    world.run_daemon(f"[web.process]\n{QUICK}")
    check_equal("pause", world.ctl("pause", "--all").returncode, 0)
    web = world.service("web", "c11-prefork", env=ALWAYS).wait_for("phase idle")
    world.wait_agents("web.process", 4)
    family = [web.pid, *web.children()]
    check_equal("processes", len(family), 4)
    check(all(rss_anon(pid) > 150 * MIB for pid in family), "the workload does not share what it retains")
    check_equal("resume", world.ctl("resume", "--all").returncode, 0)
    wait_until("all four have given it back", lambda: all(rss_anon(pid) < 20 * MIB for pid in family))
