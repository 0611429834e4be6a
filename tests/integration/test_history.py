# SPDX-License-Identifier: MIT
"""memguardctl history and plot: samples, trims, --since=, drawings."""
import json
import os
import shutil
import stat
import subprocess
import time

from harness import MIB, Skip, check, check_equal, test, wait_until

QUICK = "TrimAbove=64M\nMinGain=16M\nCooldownSec=1s\nCooldownMaxSec=1min\nMaxPause=1s\n"
BURST = ("c1-arenas", "--blocks=1024")


def trimmed(world, name="web"):
    world.run_daemon(f"[{name}.process]\n{QUICK}")
    service = world.service(name, *BURST).wait_for("phase idle")
    world.wait_trimmed(service, below=20 * MIB)
    return service


def drawable(world, name="web"):
    """The same, with enough samples (one each five seconds) for every line to have two ends."""
    service = trimmed(world, name)

    def has_lines():
        samples = world.json("history", f"{name}.process")["samples"]
        return sum(sample["live_bytes"] is not None for sample in samples) >= 3
    wait_until("the history has lines to draw", has_lines, 60)
    return service


def ctl(world, *arguments, path=None, cwd=None):
    environment = dict(os.environ, NO_COLOR="1", **({"PATH": path} if path is not None else {}))
    return subprocess.run([world.build.memguardctl, f"--runtime-directory={world.runtime}", "--no-pager", *arguments],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90, env=environment,
                          cwd=cwd or world.directory)


def need_gnuplot():
    if not shutil.which("gnuplot"):
        raise Skip("gnuplot is not installed (Debian package gnuplot-nox)")


@test
def history_has_samples_and_trims(world):
    started = time.time()
    trimmed(world)

    def seen():
        history = world.json("history", "web.process")
        return history if history["samples"][-1]["live_bytes"] is not None and history["trims"] else None
    history = wait_until("the history has both", seen)
    check_equal("unit", history["unit"], "web.process")
    check_equal("interval", history["interval_usec"], 250000)
    check(0 < history["history_bytes"] < 4096, f"memory: {history['history_bytes']}")
    samples, trims = history["samples"], history["trims"]
    names = {"at_usec", "step_usec", "anon_bytes", "live_bytes", "retained_bytes", "trim_above_bytes"}
    for sample in samples:
        check_equal("names of a sample", set(sample), names)
        check(started - 10 < sample["at_usec"] / 1e6 < time.time() + 1, f"time: {sample}")
    check_equal("step", samples[-1]["step_usec"], 5000000)
    check_equal("threshold", samples[-1]["trim_above_bytes"], 64 * MIB)
    check(all(a["at_usec"] < b["at_usec"] for a, b in zip(samples, samples[1:])), "the samples are not in order")
    last = world.status("web.process")["last_trim"]
    check_equal("result", trims[-1]["result"], "done")
    check(trims[-1]["reason"] in ("threshold", "mass-free"), f"reason: {trims[-1]}")
    check(abs(trims[-1]["gain_bytes"] - last["gain_bytes"]) < 4096, f"gain: {trims[-1]}, {last}")
    check(trims[-1]["before_bytes"] > 100 * MIB > 20 * MIB > trims[-1]["after_bytes"], f"{trims[-1]}")
    check_equal("pause", trims[-1]["pause_usec"], last["pause_usec"])
    check(abs(trims[-1]["at_usec"] - last["at_usec"]) < 2e6, f"time: {trims[-1]}, {last}")

    text = world.ctl("history", "web.process").stdout
    for word in ("web.process: ", "TIME", "RETAINED", "TRIMABOVE", "TRIMMED AT", "RESULT", "done"):
        check(word in text, f"{word!r} is not in:\n{text}")
    check("TIME" not in world.ctl("history", "web.process", "--no-legend").stdout, "--no-legend")


@test
def history_lasts_over_a_restart_of_the_daemon(world):
    """The unit without an agent is found by walking /proc."""
    trimmed(world)
    world.configure(f"[web.process]\n{QUICK}[bare.process]\nTrimAbove=64M\n")
    world.ctl("reload")
    world.service("bare", *BURST, agent=False).wait_for("phase idle")

    def seen(unit, n_samples):
        history = world.json("history", unit)
        return len(history["samples"]) >= n_samples and history
    units = ("web.process", "bare.process")
    before = {unit: wait_until(f"{unit} has been seen for a while", lambda u=unit: seen(u, 3), 60) for unit in units}
    check(before["web.process"]["trims"], "there is no trim")
    world.stop()
    world.start()
    world.wait_status("is back", "web.process", lambda row: row["agents"] == 1)
    for unit in units:
        after = wait_until(f"the history of {unit} is back", lambda u=unit: seen(u, 3), 60)
        check_equal(f"trims of {unit}", [trim["gain_bytes"] for trim in after["trims"]], [trim["gain_bytes"] for trim in before[unit]["trims"]])
        first, again = (history["samples"][0]["at_usec"] for history in (before[unit], after))
        check(abs(first - again) < 1e6, f"the first sample of {unit}: {first}, {again}")


@test
def history_since(world):
    trimmed(world)
    wait_until("there is a trim", lambda: world.json("history", "web.process")["trims"])
    for since in ("1h", "-1h", "1h ago", "yesterday", "@1"):
        history = world.json("history", "web.process", f"--since={since}")
        check(history["samples"] and history["trims"], f"--since={since}: {history}")
    history = world.json("history", "web.process", "--since=now")
    check(len(history["samples"]) <= 1 and history["trims"] == [], f"--since=now: {history}")
    for since in ("soon", "", "2026-13-01", "1h ago ago", f"@{int(time.time()) + 3600}"):
        done = world.ctl("history", "web.process", f"--since={since}")
        check_equal(f"--since={since}", done.returncode, 2)
        check_equal("lines", len(done.stderr.splitlines()), 1)
    check_equal("no such unit", world.ctl("history", "none.service").returncode, 4)
    check_equal("usage", world.ctl("history").returncode, 2)


@test
def history_is_for_everyone(world):
    if os.geteuid() != 0:
        raise Skip("needs root, to be somebody else")
    trimmed(world)
    done = world.ctl("history", "web.process", "--json=short", user="nobody")
    check_equal(f"exit code ({done.stderr})", done.returncode, 0)
    check(json.loads(done.stdout)["samples"], "no samples for nobody")


@test
def status_tells_the_memory_of_histories(world):
    trimmed(world)
    check("of it history" in world.ctl("status").stdout.splitlines()[0], "the host line does not")


@test
def plot_into_files(world):
    need_gnuplot()
    drawable(world)
    for name, begin in ("web.svg", b"<?xml"), ("web.png", b"\x89PNG"):
        path = f"{world.directory}/{name}"
        with open(path, "w") as file:
            file.write("old")
        done = ctl(world, "plot", "web.process", "-o", path)
        check_equal(f"exit code ({done.stderr})", done.returncode, 0)
        check_equal("said", done.stdout + done.stderr, "")
        with open(path, "rb") as file:
            data = file.read()
        check(data.startswith(begin) and len(data) > 4000, f"{name}: {data[:40]!r}, {len(data)} bytes")
        mask = os.umask(0)
        os.umask(mask)
        check_equal("mode", stat.S_IMODE(os.stat(path).st_mode), 0o666 & ~mask)
    with open(f"{world.directory}/web.svg") as file:
        text = file.read()
    for word in ("web.process, ", "anon", "live", "retained", "TrimAbove=", "trim", "stroke-dasharray"):
        check(word in text, f"{word!r} is not in the drawing")


@test
def plot_on_the_terminal(world):
    need_gnuplot()
    drawable(world)
    done = ctl(world, "plot", "web.process")
    check_equal(f"exit code ({done.stderr})", done.returncode, 0)
    lines = done.stdout.splitlines()
    check(all(len(line) <= 80 for line in lines), f"wider than 80 columns: {lines}")
    check("* anon   # live   $ retained" in done.stdout and "MiB" in done.stdout, f"legend: {done.stdout}")
    check(any("*" in line for line in lines[3:-4]), f"no line of anon:\n{done.stdout}")


@test
def plot_says_what_is_wrong(world):
    trimmed(world)
    empty = f"{world.directory}/empty"
    os.mkdir(empty)
    done = ctl(world, "plot", "web.process", path=empty)
    check_equal("without gnuplot", done.returncode, 1)
    check("gnuplot-nox" in done.stderr, f"the package is not named: {done.stderr!r}")
    done = ctl(world, "plot", "web.process", "-o", f"{empty}/web.svg", path=empty)
    check_equal("without gnuplot", done.returncode, 1)
    check_equal("left behind", os.listdir(empty), [])
    check_equal("suffix", ctl(world, "plot", "web.process", "-o", f"{empty}/web.jpg").returncode, 2)
    done = ctl(world, "plot", "web.process", "-o", f"{empty}/not/web.svg")
    check_equal(f"no directory ({done.stderr})", done.returncode, 1)
    check_equal("no such unit", ctl(world, "plot", "none.service").returncode, 4)
    # A gnuplot that fails half way
    with open(f"{empty}/gnuplot", "w") as file:
        file.write("#!/bin/sh\necho half\nexit 1\n")
    os.chmod(f"{empty}/gnuplot", 0o755)
    with open(f"{empty}/web.svg", "w") as file:
        file.write("old")
    done = ctl(world, "plot", "web.process", "-o", f"{empty}/web.svg", path=f"{empty}:/usr/bin:/bin")
    check_equal("a gnuplot that fails", done.returncode, 1)
    check_equal("left behind", sorted(os.listdir(empty)), ["gnuplot", "web.svg"])
    with open(f"{empty}/web.svg") as file:
        check_equal("the old drawing", file.read(), "old")


@test
def plot_runs_no_names(world):
    """A process chooses its name; gnuplot would run what stands in backquotes."""
    need_gnuplot()
    name = "a`touch ran`'b"
    world.run_daemon("")
    world.service(name, *BURST).wait_for("phase idle")
    unit = wait_until("it is found", lambda: [row["unit"] for row in world.json("status") if "touch" in row["unit"]])[0]
    wait_until("it is measured", lambda: world.json("history", unit)["samples"])
    for arguments in (), ("-o", f"{world.directory}/x.svg"):
        done = ctl(world, "plot", unit, *arguments)
        check_equal(f"exit code ({done.stderr})", done.returncode, 0)
    check(not os.path.exists(f"{world.directory}/ran"), "gnuplot ran a part of a name")
