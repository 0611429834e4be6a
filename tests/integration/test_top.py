# SPDX-License-Identifier: MIT
"""memguardctl top on a terminal: what is seen, each key, each size, each way out."""
import os
import signal
import subprocess

from harness import MIB, check, check_equal, test, wait_until
from screen import Screen

BURST = ("c1-arenas", "--blocks=512")
OBSERVE = "[Default]\nTrimAbove=64M\nMinGain=16M\n[db.process]\nMode=observe\nStatistics=no\n"


def top(world, *arguments, **terminal):
    return Screen([world.build.memguardctl, f"--runtime-directory={world.runtime}", "top", "--interval=200ms", *arguments],
                  **terminal)


def two_units(world):
    """web has 64 MiB to give, of db nobody knows."""
    world.run_daemon(OBSERVE)
    web = world.service("web", *BURST).wait_for("phase idle")
    world.service("db", *BURST).wait_for("phase idle")
    world.wait_status("is measured", "web.process", lambda row: (row["freeable_bytes"] or 0) > 32 * MIB)
    world.wait_status("is found", "db.process", lambda row: row["anon_bytes"] > 32 * MIB)
    return web


def order(lines):
    return [line.split()[0] for line in lines if ".process " in line]


def expect_left(screen, code):
    check_equal("exit code", screen.wait(), code)
    check(screen.is_restored(), "the terminal's modes are not those of before")
    check(b"\x1b[?1049h" not in screen.raw or screen.raw.count(b"\x1b[?1049l") == screen.raw.count(b"\x1b[?1049h"),
          "the second screen is not left")
    check(screen.raw.count(b"\x1b[?25h") == screen.raw.count(b"\x1b[?25l"), "the cursor does not come back")


@test
def top_shows_sorts_and_follows(world):
    web = two_units(world)
    with top(world) as screen:
        screen.wait_text("memguard ", "UNIT", "web.process", "db.process", "q quit")
        screen.wait_for("freeable first, unknown last", lambda lines: order(lines) == ["web.process", "db.process"])
        screen.send("n")
        screen.wait_text("by UNIT,")
        screen.wait_for("by name", lambda lines: order(lines) == ["db.process", "web.process"])
        screen.send("r")
        screen.wait_text("by UNIT reversed")
        screen.wait_for("backwards", lambda lines: order(lines) == ["web.process", "db.process"])
        screen.send("?")
        screen.wait_text("Any key goes back")
        screen.send("x")
        screen.wait_text("by UNIT reversed")
        web.stop()
        screen.wait_for("web is gone", lambda lines: order(lines) == ["db.process"])
        screen.send("q")
        expect_left(screen, 0)


@test
def top_opens_a_unit(world):
    web = two_units(world)
    with top(world) as screen:
        screen.wait_text("web.process", "db.process")
        screen.send("n\x1b[B\x1b[B\r")  # the second by name
        screen.wait_text(" of web.process", str(web.pid), "loaded")
        check("db.process" not in "\n".join(screen.text()), "a process of another unit")
        screen.send("\x1b")
        screen.wait_text("by UNIT, 2 units")
        screen.send("p")
        screen.wait_text(" processes", str(web.pid), "db.process")
        screen.send("p")
        screen.wait_text("by UNIT, 2 units", "VERDICT", "web.process")
        screen.send("\x1b[B\x1b[B\r")
        screen.wait_text(" of web.process")
        web.stop()
        screen.wait_text("web.process has ended", "by UNIT, 1 unit")
        screen.send("q")
        expect_left(screen, 0)


@test
def top_freezes(world):
    web = two_units(world)
    with top(world) as screen:
        screen.wait_text("web.process")
        screen.send(" ")
        screen.wait_text("FROZEN")
        web.stop()
        wait_until("memguardd has seen it", lambda: world.ctl("status", "web.process").returncode == 4)
        for _ in range(10):
            screen.read(0.1)
        check_equal("rows", sorted(order(screen.text())), ["db.process", "web.process"])
        screen.send(" ")
        screen.wait_for("it goes on", lambda lines: order(lines) == ["db.process"])
        screen.send("\x04")
        expect_left(screen, 0)


@test
def top_follows_the_window(world):
    two_units(world)
    with top(world) as screen:
        screen.wait_text("VERDICT", "q quit")
        for columns, rows in (40, 10), (200, 60), (20, 3), (1, 1), (80, 24):
            screen.resize(columns, rows)
            if rows >= 3:
                screen.wait_for(f"{columns}x{rows}", lambda lines: any(line.startswith("web.process") for line in lines))
            if rows >= 8:
                screen.wait_for("the keys below", lambda lines: lines[-1].startswith("q quit"))
            screen.wait_for("the last column is empty", lambda lines: all(len(line) < max(columns, 2) for line in lines))
        screen.resize(200, 60)
        screen.wait_text("REASON")
        screen.send("q")
        expect_left(screen, 0)


@test
def top_knows_its_terminals(world):
    """A serial console's terminal and the kernel's have no second screen; a dumb one gets text alone."""
    two_units(world)
    for term in "vt102", "linux":
        with top(world, term=term) as screen:
            screen.wait_text("web.process", "q quit")
            screen.send("q")
            expect_left(screen, 0)
            check(b"1049" not in screen.raw, f"{term} has no second screen")
            screen.wait_text("web.process")  # what was seen last stays
    with top(world, term="dumb") as screen:
        screen.wait_text("web.process")
        screen.send("n")
        screen.wait_text("by UNIT")
        screen.send("q")
        expect_left(screen, 0)
        check(b"\x1b" not in screen.raw, "a dumb terminal was sent an escape sequence")


@test
def top_has_no_size_on_a_serial_line(world):
    two_units(world)
    with top(world, term="vt102", tells_size=False) as screen:
        screen.wait_text("web.process")
        screen.wait_for("24 rows are assumed", lambda lines: lines[23].startswith("q quit"))
        screen.send("q")
        expect_left(screen, 0)


@test
def top_leaves_by_signals(world):
    two_units(world)
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT:
        with top(world) as screen:
            screen.wait_text("web.process")
            screen.kill(number)
            expect_left(screen, 0)
    with top(world) as screen:
        screen.wait_text("web.process")
        screen.send("\x03")  # what ctrl-c sends, so the modes let it be one
        expect_left(screen, 0)


@test
def top_leaves_with_its_terminal(world):
    two_units(world)
    with top(world) as screen:
        screen.wait_text("web.process")
        screen.hang_up()
        pid, status = os.waitpid(screen.pid, 0)
        screen.code = os.waitstatus_to_exitcode(status)
        check(screen.code >= 0, f"ended by signal {-screen.code}")


@test
def top_leaves_when_the_daemon_goes(world):
    two_units(world)
    for keys in "", " ":
        with top(world) as screen:
            screen.wait_text("web.process")
            screen.send(keys)
            screen.wait_text("FROZEN" if keys else "every 200ms")
            world.stop()
            expect_left(screen, 3)
            screen.wait_text("memguardctl: memguardd went away")
        world.start()
        world.wait_status("is back", "web.process", lambda row: row["agents"] == 1)
    world.stop()
    with top(world) as screen:
        check_equal("without a daemon", screen.wait(), 3)
        check(screen.raw.startswith(b"memguardctl: memguardd is not running"), f"said {screen.raw!r}")
    world.start()


@test
def top_waits_for_a_daemon_that_hangs(world):
    """It says so, and can be left."""
    two_units(world)
    with top(world) as screen:
        screen.wait_text("web.process")
        world.process.send_signal(signal.SIGSTOP)
        try:
            screen.wait_text("NO ANSWER for", "web.process")
            screen.send("n")
            screen.wait_text("by UNIT")
            world.process.send_signal(signal.SIGCONT)
            screen.wait_for("it answers", lambda lines: not any("NO ANSWER" in line for line in lines))
            world.process.send_signal(signal.SIGSTOP)
            screen.wait_text("NO ANSWER for")
            screen.send("q")
            expect_left(screen, 0)
        finally:
            world.process.send_signal(signal.SIGCONT)


@test
def top_leaves_a_line_that_stands_still(world):
    """Nobody reads: what is written has no place to go, and the signal is heard all the same."""
    two_units(world)
    with top(world, columns=200, rows=60) as screen:
        screen.wait_text("web.process")
        for _ in range(100):
            screen.send("\x0c")  # everything again: some kilobytes each
        wait_until("the line is full", lambda: len(open(f"/proc/{screen.pid}/wchan").read()) > 0)
        screen.kill(signal.SIGTERM)
        pid, status = os.waitpid(screen.pid, 0)
        screen.code = os.waitstatus_to_exitcode(status)
        check_equal("exit code", screen.code, 0)
        check(screen.is_restored(), "the terminal's modes are not those of before")


@test
def top_stops_and_goes_on(world):
    two_units(world)
    with top(world) as screen:
        screen.wait_text("web.process")
        screen.kill(signal.SIGTSTP)
        screen.wait_stopped()
        check(screen.is_restored(), "the shell's terminal is not as it was")
        screen.read()
        check(screen.raw.endswith(b"\x1b[?1049l"), "the shell's screen is not as it was")
        screen.resize(100, 30)
        screen.kill(signal.SIGCONT)
        screen.wait_text("web.process", "q quit")
        screen.wait_for("the new size", lambda lines: lines[29].startswith("q quit"))
        screen.send("q")
        expect_left(screen, 0)


@test
def top_without_a_terminal_prints_once(world):
    two_units(world)
    done = world.ctl("top")
    check_equal("exit code", done.returncode, 0)
    check("\x1b" not in done.stdout, "an escape sequence in a pipe")
    lines = done.stdout.splitlines()
    check(lines[0].startswith("memguard ") and lines[1].startswith("UNIT"), f"printed {lines}")
    check_equal("rows", order(lines), ["web.process", "db.process"])
    check_equal(f"notes {done.stderr!r}", len(done.stderr.splitlines()), 1)
    check_equal("usage", world.ctl("top", "--json=short").returncode, 2)
    for interval in "0", "1us", "2d", "soon", "-1s":
        check_equal(f"--interval={interval}", world.ctl("top", f"--interval={interval}").returncode, 2)
    with open(os.devnull, "rb") as nothing:
        done = subprocess.run([world.build.memguardctl, f"--runtime-directory={world.runtime}-not", "top"], stdin=nothing,
                              capture_output=True, text=True, timeout=60)
    check_equal("without a daemon", done.returncode, 3)
