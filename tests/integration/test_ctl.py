# SPDX-License-Identifier: MIT
"""The operator's side: observe, trim by hand, dry run, pause, reload, explain, exit codes."""
import contextlib
import json
import os
import pwd
import signal
import subprocess

from harness import ALWAYS, MIB, Skip, check, check_equal, intervals, test, wait_until

QUICK = "TrimAbove=64M\nMinGain=16M\nCooldownSec=1s\nCooldownMaxSec=1min\nMaxPause=1s\n"
BURST = ("c1-arenas", "--blocks=1024")


def one_line_on_stderr(done):
    check(done.stdout == "", f"stdout: {done.stdout!r}")
    check_equal(f"lines of {done.stderr!r}", len(done.stderr.splitlines()), 1)


def on_a_terminal(world, *arguments, **env):
    """What memguardctl with a terminal as its standard output shows there."""
    ours, theirs = os.openpty()
    ctl = subprocess.Popen([world.build.memguardctl, *arguments], stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL, env={**os.environ, **env})
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # EIO: everybody has closed it
        while piece := os.read(ours, 4096):
            shown += piece
    os.close(ours)
    return ctl.wait(), shown.decode().replace("\r", "")


@test
def a_pager_that_is_missing_swallows_nothing(world):
    config = f"{world.directory}/paged.ini"
    with open(config, "w") as file:
        file.write("[web.service]\nTrimAbove=1G\n")
    for env in ({"SYSTEMD_PAGER": "there-is-no-such-pager"}, {"PATH": "/nonexistent", "SYSTEMD_PAGER": "more"}, {"SYSTEMD_PAGER": ""}, {"SYSTEMD_PAGER": "tail -n 1"}):
        code, shown = on_a_terminal(world, "cat-config", config, **env)
        check_equal(f"exit code with {env}", code, 0)
        check("TrimAbove=1G" in shown, f"shown with {env}: {shown!r}")


@test
def observe_never_trims(world):
    """A unit without a section of its own is measured and judged and left alone."""
    world.run_daemon(f"[Default]\n{QUICK}")
    web = world.service("web", *BURST).wait_for("phase idle")
    row = world.wait_status("would have been trimmed", "web.process", lambda row: row["would_trim"] >= 1)
    check_equal("mode", row["mode"], "observe")
    check_equal("reason", row["reason"], "observed")
    intervals(8)
    row = world.status("web.process")
    check_equal("trims", row["trims"], 0)
    check(web.rss_anon() > 100 * MIB, "an observed unit was trimmed")
    check(row["freeable_bytes"] > 64 * MIB, f"freeable: {row}")


@test
def off_is_left_alone(world):
    world.run_daemon(f"[Default]\n{QUICK}[web.process]\nMode=off\n")
    web = world.service("web", *BURST).wait_for("phase idle")
    intervals(8)
    row = world.status("web.process")
    check_equal("mode", row["mode"], "off")
    check_equal("reason", row["reason"], "off")
    check_equal("would_trim", row["would_trim"], 0)
    check(web.rss_anon() > 100 * MIB, "a unit that is off was trimmed")


@test
def trim_by_hand_and_dry_run(world):
    """Works in observe mode; --dry-run only says what it would bring, and it is about right."""
    world.run_daemon("")
    web = world.service("web", *BURST).wait_for("phase idle")
    world.wait_status("is measured", "web.process", lambda row: (row["freeable_bytes"] or 0) > 64 * MIB)
    dry = world.json("trim", "web.process", "--dry-run")
    dry = dry[0] if isinstance(dry, list) else dry
    check(dry["expected_bytes"] > 64 * MIB, f"dry run: {dry}")
    check(world.ctl("trim", "web.process", "--dry-run").stdout.strip() != "", "a dry run that says nothing")
    intervals(4)
    check(web.rss_anon() > 100 * MIB, "a dry run trimmed")
    check_equal("trims", world.status("web.process")["trims"], 0)
    before = web.rss_anon()
    done = world.ctl("trim", "web.process")
    check_equal(f"exit code ({done.stderr})", done.returncode, 0)
    check(web.rss_anon() < 20 * MIB, f"came back: {before >> 20} -> {web.rss_anon() >> 20} MiB")
    gain = world.status("web.process")["last_trim"]["gain_bytes"]
    check(abs(gain - dry["expected_bytes"]) < before / 4, f"predicted {dry['expected_bytes']}, gained {gain}")
    check(world.log_lines("web.process: trimmed", "by hand"), "the log does not say by whom")


@test
def max_pause_binds_the_hand_too(world):
    """A trim by hand overrides thresholds, never MaxPause=."""
    world.run_daemon("[web.process]\nMode=observe\nMaxPause=1us\n")
    web = world.service("web", *BURST).wait_for("phase idle")
    world.wait_agents("web.process", 1)
    intervals(8)
    done = world.ctl("trim", "web.process")
    check(done.returncode == 1, f"exit code {done.returncode}: {done.stdout} {done.stderr}")
    check(web.rss_anon() > 100 * MIB, "trimmed in spite of MaxPause=")


@test
def trim_by_hand_without_an_answer_fails(world):
    world.run_daemon("[web.process]\nMode=observe\nMaxPause=10s\n", AgentTimeoutSec="1s")
    web = world.peer("web", "hang").wait_for("hello")
    world.wait_status("is measured", "web.process", lambda row: (row["freeable_bytes"] or 0) > 64 * MIB)
    done = world.ctl("trim", "web.process")
    check_equal("exit code", (done.returncode, done.stdout), (1, ""))
    check("web.process was not trimmed" in done.stderr and "answer" in done.stderr, f"says: {done.stderr}")
    check(web.rss_anon() > 100 * MIB, "the peer lost its memory")


@test
def pause_and_resume(world):
    world.run_daemon(f"[web.process]\n{QUICK}")
    web = world.service("web", *BURST, "--wait", env=ALWAYS).wait_for("phase start")
    world.wait_agents("web.process", 1)
    check_equal("pause", world.ctl("pause", "web.process").returncode, 0)
    web.signal(signal.SIGUSR1)
    web.wait_for("phase idle")
    world.wait_status("is held", "web.process", lambda row: row["reason"] == "paused" and row["anon_bytes"] > 100 * MIB)
    intervals(8)
    check_equal("trims", world.status("web.process")["trims"], 0)
    check(web.rss_anon() > 100 * MIB, "trimmed while paused")
    check_equal("resume", world.ctl("resume", "web.process").returncode, 0)
    world.wait_trimmed(web, below=20 * MIB)


@test
def pause_all_outlives_the_daemon(world):
    world.run_daemon(f"[web.process]\n{QUICK}")
    check_equal("pause --all", world.ctl("pause", "--all").returncode, 0)
    world.stop()
    world.start()
    web = world.service("web", *BURST).wait_for("phase idle")
    world.wait_status("is held", "web.process", lambda row: row["reason"] == "paused" and row["anon_bytes"] > 100 * MIB)
    one = world.ctl("resume", "web.process")
    check_equal("resume of one unit", (one.returncode, one.stderr), (0, "memguardctl: everything is still paused: memguardctl resume --all\n"))
    every = world.ctl("resume", "--all")
    check_equal("resume --all", (every.returncode, every.stderr), (0, ""))
    world.wait_trimmed(web, below=20 * MIB)


@test
def a_broken_reload_changes_nothing(world):
    world.run_daemon("[web.process]\nMode=observe\nTrimAbove=64M\nMinGain=16M\nMaxPause=1s\n")
    web = world.service("web", *BURST).wait_for("phase idle")
    world.wait_status("is observed", "web.process", lambda row: row["would_trim"] >= 1)
    world.configure("[web.process]\nMode=trim\nTrimAbove=lots\n")
    done = world.ctl("reload")
    check_equal("exit code", done.returncode, 1)
    check(f"{world.config_path}:" in done.stderr and "TrimAbove" in done.stderr, f"file, line and key: {done.stderr!r}")
    world.process.send_signal(signal.SIGHUP)
    wait_until("the log says so too", lambda: len(world.log_lines("configuration rejected")) >= 1)
    intervals(8)
    row = world.status("web.process")
    check_equal("mode", row["mode"], "observe")
    check_equal("trim above", row["trim_above_bytes"], 64 * MIB)
    check_equal("trims", row["trims"], 0)
    world.configure(f"[web.process]\n{QUICK}")
    done = world.ctl("reload")
    check_equal(f"exit code ({done.stderr})", done.returncode, 0)
    world.wait_trimmed(web, below=20 * MIB)


@test
def a_reload_by_signal(world):
    world.run_daemon("[web.process]\nMode=observe\nTrimAbove=64M\nMinGain=16M\nMaxPause=1s\n")
    web = world.service("web", *BURST).wait_for("phase idle")
    world.wait_agents("web.process", 1)
    world.configure(f"[web.process]\n{QUICK}")
    world.process.send_signal(signal.SIGHUP)
    world.wait_trimmed(web, below=20 * MIB)


@test
def explain_names_the_condition_that_decides(world):
    # The burst comes before the daemon, which else would see a mass free: that makes a trim due whatever TrimAbove= says.
    world.service("web", *BURST).wait_for("phase idle")
    world.run_daemon("[web.process]\nTrimAbove=100G\nMinGain=16M\nMaxPause=1s\n")
    world.wait_status("is held", "web.process", lambda row: row["reason"] == "below-threshold"
                      and (row["retained_bytes"] or 0) > 64 * MIB)
    intervals(2)
    told = world.json("explain", "web.process")
    told = told[0] if isinstance(told, list) else told
    check_equal("action", told["action"], "hold")
    check_equal("reason", told["reason"], "below-threshold")
    failing = [condition for condition in told["conditions"] if condition["state"] == "fails"]
    check_equal("conditions that fail", [condition["name"] for condition in failing], ["below-threshold"])
    check_equal("wanted", failing[0]["want"], 100 << 30)
    check(failing[0]["have"] > 64 * MIB, f"measured: {failing[0]}")
    setting = [setting for setting in told["settings"] if setting["key"] == "TrimAbove"][0]
    with open(world.config_path) as file:
        line = file.read().splitlines().index("TrimAbove=100G") + 1
    check_equal("where it was set", (setting["file"], setting["line"]), (world.config_path, line))
    text = world.ctl("explain", "web.process").stdout
    check("below-threshold" in text and f"{world.config_path}:{line}" in text, f"the text lacks it: {text}")


@test
def exit_codes(world):
    check_equal("no daemon", world.ctl("status").returncode, 3)
    world.run_daemon("")
    check_equal("fine", world.ctl("status").returncode, 0)
    check_equal("unknown command", world.ctl("dance").returncode, 2)
    check_equal("unknown option", world.ctl("--dance").returncode, 2)
    check_equal("an argument missing", world.ctl("trim").returncode, 2)
    check_equal("an argument too many", world.ctl("reload", "now").returncode, 2)
    for command in (("status",), ("trim",), ("explain",), ("pause",), ("list-processes",)):
        done = world.ctl(*command, "nonesuch.process")
        check_equal(f"{command[0]}: no such unit", done.returncode, 4)
        one_line_on_stderr(done)
    check_equal("bad level", world.ctl("log-level", "loud").returncode in (1, 2), True)
    for command in ("--help", "--version"):
        check_equal(command, world.ctl(command).returncode, 0)


@test
def an_empty_name_is_never_every_unit(world):
    world.run_daemon("")
    for command in ("pause", "resume", "trim", "explain", "advise", "history", "plot", "list-processes", "status", "enroll", "withdraw"):
        done = world.ctl(command, "")
        check_equal(f"{command} with an empty name ({done.stderr.strip()})", done.returncode, 2)
        one_line_on_stderr(done)
    check_equal("among names", world.ctl("status", "web.process", "").returncode, 2)
    check_equal("with --all", world.ctl("pause", "--all", "").returncode, 2)
    check("PAUSED" not in world.ctl("status").stdout, "an empty name has paused every unit")


@test
def options_that_a_verb_does_not_have_are_refused(world):
    root = f"{world.directory}/root"
    dropin = f"{root}/etc/systemd/system/foo.service.d/50-memguard.conf"
    os.makedirs(os.path.dirname(dropin))
    with open(dropin, "w") as file:
        file.write('# Written by memguardctl enroll; "memguardctl withdraw foo.service" takes it away.\n')
    for option, arguments in (("print", ("withdraw", "--print", f"--root={root}", "foo")), ("dry-run", ("--dry-run", "withdraw", f"--root={root}", "foo")),
                              ("dry-run", ("enroll", "--dry-run", f"--root={root}", "foo")), ("dry-run", ("pause", "--dry-run", "web.process")),
                              ("print", ("resume", "--print", "--all")), ("dry-run", ("reload", "--dry-run")), ("all", ("trim", "--all", "web.process")),
                              ("config", ("status", "--config=memguard.ini")), ("output", ("history", "web.process", "-o", "web.svg")),
                              ("since", ("explain", "web.process", "--since=1h")), ("interval", ("status", "--interval=1s")),
                              ("restart", ("survey", "--restart")), ("user", ("trim", "--user", "web.process")), ("all", ("--all",))):
        done = world.ctl(*arguments)
        verb = next((word for word in arguments if not word.startswith("-")), "status")
        check_equal(f"exit code of {arguments}", done.returncode, 2)
        check_equal(f"what {arguments} says", done.stderr, f"memguardctl: {verb} has no --{option}\n")
    check(os.path.exists(dropin), "a refused withdraw has taken a file away")


@test
def no_daemon_is_one_clear_line(world):
    for command in (("status",), ("trim", "web.process"), ("reload",), ("status", "--json=short")):
        done = world.ctl(*command)
        check_equal(" ".join(command), done.returncode, 3)
        one_line_on_stderr(done)
    world.run_daemon("")
    world.stop()
    check_equal("after it has stopped", world.ctl("status").returncode, 3)
    world.start()
    world.stop(signal.SIGKILL)
    check_equal("after it was killed", world.ctl("status").returncode, 3)


@test
def looking_is_for_all_acting_is_not(world):
    if os.geteuid() != 0:
        raise Skip("needs a second user to be")
    nobody = pwd.getpwnam("nobody").pw_uid
    world.run_daemon("")
    world.service("web", *BURST).wait_for("phase idle")
    world.wait_agents("web.process", 1)
    if world.ctl("--version", user=nobody).returncode != 0:
        raise Skip("the build directory is closed to other users")
    check_equal("status", world.ctl("status", user=nobody).returncode, 0)
    for command in (("trim", "web.process"), ("reload",), ("pause", "--all"), ("resume", "--all"), ("log-level", "debug")):
        done = world.ctl(*command, user=nobody)
        check_equal(f"{' '.join(command)} as nobody ({done.stderr.strip()})", done.returncode, 5)
        one_line_on_stderr(done)
    check_equal("trims", world.status("web.process")["trims"], 0)


@test
def withdraw_without_rights_says_so(world):
    nobody = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None
    if world.ctl("--version", user=nobody).returncode != 0:
        raise Skip("the build directory is closed to other users")
    directory = f"{world.directory}/root/etc/systemd/system/foo.service.d"
    os.makedirs(directory)
    with open(f"{directory}/50-memguard.conf", "w") as file:
        file.write('# Written by memguardctl enroll; "memguardctl withdraw foo.service" takes it away.\n')
    os.chmod(directory, 0o555)
    done = world.ctl("withdraw", f"--root={world.directory}/root", "foo", user=nobody)
    os.chmod(directory, 0o755)
    check_equal(f"exit code ({done.stderr.strip()})", done.returncode, 5)
    one_line_on_stderr(done)
    check_equal("files", os.listdir(directory), ["50-memguard.conf"])


def made_up_cgroup(world, path, pid):
    """As the kernel would show it below --cgroup-root=."""
    directory = f"{world.directory}/cgroup{path}"
    os.makedirs(directory)
    for name, text in {"cgroup.procs": f"{pid}\n", "memory.stat": f"anon {16 * MIB}\nfile 0\nshmem 0\n", "memory.current": f"{16 * MIB}\n",
                       "memory.swap.current": "0\n", "memory.high": "max\n", "memory.max": "max\n", "memory.events": "low 0\nhigh 0\nmax 0\noom 0\n",
                       "cgroup.events": "populated 1\nfrozen 0\n", "cpu.stat": "usage_usec 1000\n"}.items():
        with open(f"{directory}/{name}", "w") as file:
            file.write(text)


@test
def a_cgroup_tells_units_of_one_name_apart(world):
    paths = [f"/user.slice/user-{user}.slice/user@{user}.service/app.slice/app.service" for user in (1001, 1002)]
    sleepers = [subprocess.Popen(["sleep", "infinity"]) for _ in paths]
    try:
        for path, sleeper in zip(paths, sleepers):
            made_up_cgroup(world, path, sleeper.pid)
        with open(f"{world.directory}/cgroup/cgroup.controllers", "w") as file:
            file.write("cpu memory pids\n")
        world.configure()
        world.start("--source=cgroup", f"--cgroup-root={world.directory}/cgroup")
        wait_until("both are known", lambda: len(world.json("status")) == 2)
        for path, sleeper in zip(paths, sleepers):
            shown = world.ctl("status", path)
            check_equal(f"exit code ({shown.stderr.strip()})", shown.returncode, 0)
            ours = [row["pid"] for row in world.json("list-processes", path)]
            check_equal("processes of the cgroup", ours, [sleeper.pid])
            words = shown.stdout.split()
            pids = [other.pid for other in sleepers if str(other.pid) in words]
            check_equal(f"processes shown for {path}: {shown.stdout}", pids, [sleeper.pid])
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()


@test
def list_processes(world):
    world.run_daemon("")
    web = world.service("web", *BURST).wait_for("phase idle")
    world.wait_agents("web.process", 1)
    rows = world.json("list-processes")
    ours = [row for row in rows if row["pid"] == web.pid]
    check_equal("rows of the process", len(ours), 1)
    check_equal("agent", ours[0]["agent"], "loaded")
    check_equal("unit", ours[0]["unit"], "web.process")
    check("glibc" in json.dumps(ours[0]["allocators"]), f"allocators: {ours[0]}")


@test
def check_config_and_cat_config(world):
    world.configure(f"[web.process]\n{QUICK}")
    good = world.ctl("check-config", world.config_path)
    check_equal(f"a good file ({good.stderr})", good.returncode, 0)
    world.configure("[web.process]\nMaxPause=soon\nTrimAbove=\n[Daemon\n")
    bad = world.ctl("check-config", world.config_path)
    check_equal("a bad file", bad.returncode, 1)
    check("MaxPause" in bad.stderr + bad.stdout, f"the key is not named: {bad}")
    check_equal("a missing file", world.ctl("check-config", f"{world.directory}/none.ini").returncode, 1)
    named = world.ctl("check-config", f"--config={world.config_path}")
    check_equal("by --config=", (named.returncode, named.stderr), (bad.returncode, bad.stderr))
    check("MaxPause=soon" in world.ctl("cat-config", f"--config={world.config_path}").stdout, "cat-config shows another file than --config=")
    for verb in ("check-config", "cat-config"):
        check_equal(f"{verb}: two files", world.ctl(verb, world.config_path, f"--config={world.config_path}").returncode, 2)


@test
def log_level(world):
    world.run_daemon("")
    check_equal("as configured", world.ctl("log-level").stdout.strip(), "debug")
    check_equal("set", world.ctl("log-level", "info").returncode, 0)
    check_equal("as set", world.ctl("log-level").stdout.strip(), "info")
