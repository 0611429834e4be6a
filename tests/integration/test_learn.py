# SPDX-License-Identifier: MIT
"""What it learned, told to the operator: advice, and predictions compared with what came of them."""
import os
import re

from harness import MIB, check, check_equal, intervals, jemalloc_library, test

QUICK = "TrimAbove=64M\nMinGain=16M\nCooldownSec=1s\nCooldownMaxSec=1min\nMaxPause=1s\n"
PIECE = {"kind", "confidence", "text"}


def advice(world, unit):
    """The pieces of advice by their kind. Each is complete, and the text is a sentence with nothing left to fill in."""
    pieces = world.json("advise", unit)
    check(isinstance(pieces, list) and pieces, f"no advice at all: {pieces!r}")
    for piece in pieces:
        check(PIECE <= set(piece), f"incomplete: {piece}")
        check(piece["confidence"] in ("low", "medium", "high"), f"confidence: {piece}")
        check(piece["text"].endswith(".") and "%" not in piece["text"], f"text: {piece}")
    return {piece["kind"]: piece for piece in pieces}


@test
def advise_enroll_without_an_agent(world):
    """Its only agent was thrown out: what is retained there nobody knows, and no gain is promised."""
    world.run_daemon("")
    world.peer("web", "garbage", "random+hello").wait_for("closed")
    world.wait_status("is without agent", "web.process", lambda row: row["reason"] == "no-agent")
    pieces = advice(world, "web.process")
    check_equal("kinds", set(pieces), {"enroll"})
    check(pieces["enroll"].get("gain_bytes") is None, f"a gain that nobody knows: {pieces}")


@test
def advise_consent_for_an_observed_unit(world):
    world.run_daemon(f"[Default]\n{QUICK}")
    web = world.service("web", "c1-arenas", "--blocks=1024").wait_for("phase idle")
    world.wait_status("would have been trimmed", "web.process", lambda row: row["would_trim"] >= 1)
    pieces = advice(world, "web.process")
    check("mode-trim" in pieces, f"kinds: {set(pieces)}")
    gain = pieces["mode-trim"]["gain_bytes"]
    check(64 * MIB < gain < web.rss_anon(), f"gain: {gain}")
    text = world.ctl("advise", "web.process").stdout
    check("Mode=trim" in text and "mode-trim" in text, f"the text lacks it: {text}")


@test
def advise_names_max_pause_and_its_price(world):
    """A peer whose statistics cost nothing, and whose 127 MiB in one arena take longer than MaxPause= to trim."""
    world.run_daemon("[web.process]\nTrimAbove=64M\nMinGain=16M\nCooldownSec=1s\nMaxPause=1ms\n")
    world.peer("web", "hang").wait_for("hello")
    world.wait_status("is held", "web.process", lambda row: row["reason"] == "max-pause")
    pieces = advice(world, "web.process")
    check("max-pause" in pieces, f"kinds: {set(pieces)}")
    check(pieces["max-pause"]["value"] > 1000, f"microseconds proposed: {pieces['max-pause']}")
    check(pieces["max-pause"]["gain_bytes"] > 64 * MIB, f"gain: {pieces['max-pause']}")
    check("MaxPause=" in world.ctl("advise", "web.process").stdout, "the text lacks the setting")


@test
def advise_knows_the_allocator_in_use(world):
    """jemalloc without background threads: advised. With them, or where the operator asked for them: not."""
    keys = "Mode=observe\nTrimAbove=64M\nMinGain=16M\nMaxPause=1s\n"
    world.run_daemon(f"[plain.process]\n{keys}[threads.process]\n{keys}")
    burst = ("c1-arenas", "--threads=4", "--blocks=4000")
    library = jemalloc_library()
    world.service("plain", *burst, preload=[library]).wait_for("phase idle")
    world.service("threads", *burst, preload=[library],
                  env={"MALLOC_CONF": "background_thread:true,dirty_decay_ms:-1,muzzy_decay_ms:-1"}).wait_for("phase idle")
    for unit in ("plain.process", "threads.process"):
        world.wait_status("is measured", unit, lambda row: (row["freeable_bytes"] or 0) > 100 * MIB)
    check("background-thread" in advice(world, "plain.process"), "not advised where they are off")
    check("background-thread" not in advice(world, "threads.process"), "advised where they are on")


@test
def advise_restart_for_a_pinned_heap(world):
    world.run_daemon("[web.process]\nTrimAbove=64M\nMinGain=16M\nCooldownSec=2s\nCooldownMaxSec=10min\nMaxPause=1s\n")
    world.service("web", "c3-pinned").wait_for("phase idle")
    world.wait_status("is pinned", "web.process", lambda row: row["verdict"] == "pinned")
    pieces = advice(world, "web.process")
    check("restart" in pieces, f"kinds: {set(pieces)}")
    check(pieces["restart"]["gain_bytes"] > 200 * MIB, f"gain: {pieces['restart']}")
    cpus = os.sysconf("SC_NPROCESSORS_ONLN")
    if "arena-max" in pieces:
        check_equal("arenas proposed", pieces["arena-max"]["value"], cpus)
    check("leak" not in world.ctl("advise", "web.process").stdout.lower(), "the advice speaks of a leak")


@test
def prediction_against_outcome(world):
    """status UNIT says how much of what a dry run predicted came back: here nearly all, and the numbers agree with JSON's."""
    world.run_daemon("[web.process]\nMode=observe\nMaxPause=1s\n")
    web = world.service("web", "c1-arenas", "--blocks=1024").wait_for("phase idle")
    world.wait_status("is measured", "web.process", lambda row: (row["freeable_bytes"] or 0) > 64 * MIB)
    check("Last trim" not in world.ctl("status", "web.process").stdout, "a trim before any")
    intervals(4)
    foreseen = world.json("trim", "web.process", "--dry-run")["expected_bytes"]
    check_equal("exit code", world.ctl("trim", "web.process").returncode, 0)
    check(web.rss_anon() < 20 * MIB, "it was not trimmed")
    last = world.status("web.process")["last_trim"]
    check(abs(last["expected_bytes"] - foreseen) < foreseen / 4, f"foreseen {foreseen}, then expected: {last}")
    share = re.search(r"expected \((\d+)%\)", world.ctl("status", "web.process").stdout)
    check(share is not None, f"no share: {world.ctl('status', 'web.process').stdout}")
    wanted = 100 * last["gain_bytes"] / last["expected_bytes"]
    check(abs(int(share.group(1)) - wanted) <= 1, f"{share.group(0)}: want {wanted:.1f} %")
    check(70 <= wanted <= 130, f"came back: {wanted:.0f} % of what was predicted")
