# SPDX-License-Identifier: MIT
"""The daemon's own life: many agents, restarts under load, a second daemon, a unit that breaks, a service that forks."""
import ctypes
import json
import os
import signal
import subprocess

from harness import ALWAYS, MIB, WAIT, check, check_equal, intervals, test, wait_until

QUICK = "TrimAbove=64M\nMinGain=16M\nCooldownSec=1s\nCooldownMaxSec=1min\nMaxPause=1s\n"
SMALL = ("--threads=1", "--blocks=4")


@test
def two_hundred_agents_at_once(world):
    world.run_daemon("")
    for _ in range(200):
        world.service("many", "c1-arenas", *SMALL)
    row = world.wait_agents("many.process", 200)
    check_equal("processes", row["processes"], 200)
    web = world.service("web", "c1-arenas", "--blocks=1024").wait_for("phase idle")
    # In a crowd first statistics are spread over half a minute.
    world.wait_status("is measured", "web.process", lambda row: (row["freeable_bytes"] or 0) > 64 * MIB)
    done = world.ctl("trim", "web.process")
    check_equal(f"exit code ({done.stderr})", done.returncode, 0)
    wait_until("is trimmed by hand meanwhile", lambda: web.rss_anon() < 20 * MIB)
    for service in world.services:
        service.signal(signal.SIGTERM)
    wait_until("all are gone", lambda: world.ctl("status", "many.process").returncode == 4
               or world.status("many.process")["agents"] == 0)


def restart_with_agents(world, number):
    world.run_daemon(f"[web.process]\n{QUICK}")
    for _ in range(50):
        world.service("many", "c1-arenas", *SMALL)
    web = world.service("web", "c1-arenas", "--blocks=1024", "--wait", env=ALWAYS).wait_for("phase start")
    world.wait_agents("many.process", 50)
    code = world.stop(number)
    if number == signal.SIGTERM:
        check_equal("exit code", code, 0)
    for service in world.services:
        check(service.process.poll() is None, f"{service.name} did not survive the daemon")
    world.start()
    world.wait_agents("many.process", 50)
    world.wait_agents("web.process", 1)
    web.signal(signal.SIGUSR1)
    web.wait_for("phase idle")
    world.wait_trimmed(web, below=20 * MIB)


@test
def restart_while_fifty_agents_are_connected(world):
    restart_with_agents(world, signal.SIGTERM)


@test
def killed_while_fifty_agents_are_connected(world):
    restart_with_agents(world, signal.SIGKILL)


@test
def agents_wait_for_a_daemon(world):
    """A service that was there first is found when the daemon comes, and works on when it has gone."""
    world.configure(f"[web.process]\n{QUICK}")
    web = world.service("web", "c1-arenas", "--blocks=1024").wait_for("phase idle")
    check(web.process.poll() is None, "the service needs a daemon")
    world.start()
    world.wait_trimmed(web, below=20 * MIB)
    world.stop()
    intervals(4)
    check(web.process.poll() is None, "the service did not survive the daemon")
    check_equal("its exit code", web.stop(), 0)


@test
def one_of_two_units_breaks(world):
    """A unit that dies, restarts and dies again changes no decision about its neighbour."""
    world.run_daemon(f"[good.process]\n{QUICK}[bad.process]\n{QUICK}")
    good = world.service("good", "c1-arenas", "--rounds=3", "--pause=3000")
    for _ in range(6):
        bad = world.service("bad", "c1-arenas", "--blocks=256")
        intervals(2)
        bad.process.kill()
        bad.process.wait()
    good.wait_for("phase idle")
    row = world.wait_status("each burst was trimmed", "good.process", lambda row: row["anon_bytes"] < 20 * MIB)
    check(row["trims"] >= 1, f"trims: {row}")
    errors = [line for line in world.log().splitlines() if line.startswith(("<3>", "<2>", "<1>", "<0>"))]
    check(not errors, f"a process that ends is no error: {errors[:3]}")


@test
def a_restarted_service_starts_a_new_history(world):
    world.run_daemon(f"[web.process]\n{QUICK}")
    web = world.service("web", "c1-arenas", "--blocks=1024").wait_for("phase idle")
    world.wait_trimmed(web, below=20 * MIB)
    web.stop()
    wait_until("the unit is gone", lambda: world.ctl("status", "web.process").returncode == 4)
    world.service("web", *("c1-arenas", *SMALL))
    row = world.wait_agents("web.process", 1)
    check_equal("trims", row["trims"], 0)


@test
def a_second_daemon_is_kept_out(world):
    world.run_daemon("")
    done = subprocess.run([world.build.memguardd, f"--config={world.config_path}", f"--runtime-directory={world.runtime}",
                           "--source=proc"], capture_output=True, text=True, timeout=WAIT, stdin=subprocess.DEVNULL)
    check(done.returncode != 0, "two daemons in one directory")
    check(str(world.process.pid) in done.stderr, f"does not say whose it is: {done.stderr!r}")
    check_equal("the first one answers", world.ctl("status").returncode, 0)


@test
def a_bad_configuration_stops_the_start(world):
    world.configure("[web.process]\nTrimAbov=64M\n")
    done = subprocess.run([world.build.memguardd, f"--config={world.config_path}", f"--runtime-directory={world.runtime}",
                           "--source=proc"], capture_output=True, text=True, timeout=WAIT, stdin=subprocess.DEVNULL)
    check(done.returncode != 0, "started with an unknown key")
    check(f"{world.config_path}:" in done.stderr and "TrimAbov" in done.stderr, f"names neither file nor key: {done.stderr!r}")
    check("TrimAbove" in done.stderr, f"does not name the nearest key: {done.stderr!r}")


@test
def the_daemon_is_quiet_and_small(world):
    """Idle it logs nothing at info, and its own memory is in its status."""
    world.run_daemon("", LogLevel="info")
    for _ in range(10):
        world.service("many", "c1-arenas", *SMALL)
    world.wait_agents("many.process", 10)
    intervals(8)
    before = len(world.log().splitlines())
    intervals(40)
    lines = world.log().splitlines()[before:]
    check(len(lines) <= 1, f"{len(lines)} lines in 10 idle seconds: {lines[:5]}")


@test
def descriptors_and_memory_do_not_grow(world):
    """200 short-lived agents later the daemon holds as many descriptors as before."""
    world.run_daemon("", LogLevel="info")

    def generation():
        services = [world.service("many", "c1-arenas", *SMALL) for _ in range(25)]
        world.wait_agents("many.process", 25)
        for service in services:
            service.stop()
        wait_until("all are gone", lambda: world.ctl("status", "many.process").returncode == 4
                   or world.status("many.process")["agents"] == 0)

    def descriptors():
        return len(os.listdir(f"/proc/{world.process.pid}/fd"))

    generation()
    before = descriptors()
    for _ in range(3):
        generation()
    wait_until("descriptors are closed", lambda: descriptors() <= before + 2)


@test
def the_host_line_is_complete(world):
    world.run_daemon("")
    world.service("web", "c1-arenas", *SMALL)
    world.wait_agents("web.process", 1)
    first = world.ctl("status").stdout.splitlines()[0]
    for word in ("memguard ", "unit", "Self:", "CPU", "PSI"):
        check(word in first, f"{word!r} is missing in {first!r}")
    rows = world.json("status")
    names = {"unit", "source", "cgroup", "mode", "anon_bytes", "swap_bytes", "live_bytes", "retained_bytes", "freeable_bytes",
             "pinned_bytes", "other_bytes", "shmem_bytes", "file_bytes", "trim_above_bytes", "verdict", "slope_bytes_per_hour",
             "reason", "processes", "agents", "trims", "trimmed_bytes", "would_trim", "last_trim", "allocators"}
    for row in rows:
        check(names <= row.keys(), f"{json.dumps(row)}: missing {names - row.keys()}")
    check_equal("source", world.status("web.process")["source"], "proc")


def send_command(pid, value):
    """systemd's command signal; Python's standard library has no sigqueue(3)."""
    queue = ctypes.CDLL(None, use_errno=True).sigqueue
    queue.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_void_p)
    check_equal("sigqueue", queue(pid, signal.SIGRTMIN + 18, value), 0)


@test
def trims_itself_when_told(world):
    world.run_daemon("")
    pid = world.process.pid
    send_command(pid, 0x300)
    wait_until("says what it brought", lambda: world.log_lines("trimmed itself by request: anon ", " -> "))
    send_command(pid, 0x301)
    os.kill(pid, signal.SIGRTMIN + 18)
    wait_until("ignores other commands", lambda: len(world.log_lines("SIGRTMIN+18", "ignored")) == 2)
    check_equal("lines about it", len(world.log_lines("trimmed itself")), 1)
    check_equal("the daemon lives on", world.ctl("status").returncode, 0)
