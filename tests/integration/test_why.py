# SPDX-License-Identifier: MIT
"""Why a process has no agent (C12): every kind that runs without systemd, all in one unit, each with its own answer."""
import os
import shutil
import stat

from harness import Service, Skip, check, check_equal, test, wait_until

NOBODY = 65534


def variant(world, kind, program, *arguments, mode=0o755, **keywords):
    """A process of the unit "kind": its executable has that name, in a directory of its own."""
    os.makedirs(f"{world.directory}/{kind}", exist_ok=True)
    os.makedirs(f"{world.directory}/bin/{kind}", exist_ok=True)
    executable = f"{world.directory}/bin/{kind}/kind"
    if not os.path.exists(executable):
        shutil.copy(program, executable)
        os.chmod(executable, mode)
    service = Service(world, f"{kind}/kind", program, arguments, **keywords)
    service.unit = "kind.process"
    return service


def program(world, path):
    found = f"{world.build.directory}/tests/{path}"
    if not os.path.exists(found):
        raise Skip(f"{os.path.basename(found)} was not built (musl-gcc, a static libc)")
    return found


def ordinary(world, kind="ordinary", **keywords):
    return variant(world, kind, world.build.workload("c12-cannot-load"), "threads", **keywords).wait_for("phase idle")


def row_of(world, service):
    """The process's row, asked for its unit and among all: the same."""
    rows = [row for row in world.json("list-processes", "kind.process") if row["pid"] == service.pid]
    every = [row for row in world.json("list-processes") if row["pid"] == service.pid]
    check_equal("rows of one process", (len(rows), len(every)), (1, 1))
    check_equal("agent, by unit and among all", rows[0]["agent"], every[0]["agent"])
    check_equal("unit", every[0]["unit"], "kind.process")
    check(len(rows[0]["agent_reason"]) > 10, f"no sentence: {rows[0]}")
    return rows[0]


def begin(world):
    """A unit is known once one of its processes has an agent."""
    world.run_daemon("")
    first = ordinary(world)
    wait_until("the ordinary one is loaded", lambda: row_of(world, first)["agent"] == "loaded")
    return first


def expect_state(world, service, want):
    row = wait_until(f"{service.name} is {want}", lambda: (row := row_of(world, service))["agent"] == want and row)
    check(service.process.poll() is None, f"{service.name} has ended: {service.output()}")
    check("agent_version" not in row or row["agent_version"] is None or want in ("loaded", "outdated"), f"a peer: {row}")
    return row


@test
def why_programs_without_our_loader(world):
    begin(world)
    static = variant(world, "static", program(world, "unit/programs/sleeper-static"), stdin=True)
    expect_state(world, static, "static")


@test
def why_another_libc(world):
    """musl loads the library all the same where it can; either answer is true, "not configured" is not."""
    musl = program(world, "unit/programs/sleeper-musl")
    begin(world)
    service = variant(world, "musl", musl, stdin=True)
    wait_until("musl is told", lambda: row_of(world, service)["agent"] in ("other-libc", "single-threaded", "loaded"))


@test
def why_secure_exec(world):
    if os.getuid() != 0:
        raise Skip("a set-uid copy takes root to make")
    begin(world)
    service = variant(world, "setuid", world.build.workload("c12-cannot-load"), "threads", mode=0o4755, user=NOBODY)
    service.wait_for("phase idle")
    check(os.stat(f"/proc/{service.pid}/exe").st_mode & stat.S_ISUID, "the copy is not set-uid")
    with open(f"/proc/{service.pid}/status") as status:
        uids = next(line for line in status if line.startswith("Uid:")).split()[1:3]
    if uids != [str(NOBODY), "0"]:
        raise Skip(f"{world.directory} is mounted nosuid")
    expect_state(world, service, "secure-exec")


@test
def why_an_agent_that_is_told_not_to(world):
    begin(world)
    c12 = world.build.workload("c12-cannot-load")
    for kind, arguments, environment, want in (
            ("disabled", ["threads"], {"MEMGUARD_DISABLE": "1"}, "disabled"),
            ("never", ["threads"], {"MEMGUARD_THREAD": "never"}, "no-thread"),
            ("waits", ["single"], {}, "single-threaded"),
            ("always", ["single"], {"MEMGUARD_THREAD": "always"}, "loaded")):
        expect_state(world, variant(world, kind, c12, *arguments, env=environment).wait_for("phase idle"), want)


@test
def why_a_preload_that_does_not_happen(world):
    begin(world)
    expect_state(world, ordinary(world, "cleared", agent=False), "preload-lost")
    expect_state(world, ordinary(world, "missing", agent=False, preload=("/nonexistent/libmemguard-preload.so",)), "not-found")


@test
def why_a_socket_out_of_reach(world):
    begin(world)
    c12 = world.build.workload("c12-cannot-load")
    filtered = variant(world, "filtered", c12, "filtered").wait_for("phase idle")
    expect_state(world, filtered, "socket-blocked")


@test
def why_not_for_one_that_closes_everything(world):
    """The agent's descriptors are its own: it stays."""
    begin(world)
    closes = variant(world, "closes", world.build.workload("c12-cannot-load"), "closes").wait_for("phase idle")
    expect_state(world, closes, "loaded")


@test
def why_in_words(world):
    """The table says it in a word, a line below in a sentence, and --no-legend leaves that away."""
    begin(world)
    ordinary(world, "cleared", agent=False)
    shown = world.ctl("list-processes", "kind.process").stdout
    check("preload-lost: the unit sets LD_PRELOAD" in shown, shown)
    check("preload-lost:" not in world.ctl("list-processes", "kind.process", "--no-legend").stdout, "a legend in spite of all")
    check("loaded:" not in shown, f"what is well is explained: {shown}")


@test
def why_an_agent_of_before_the_upgrade(world):
    world.run_daemon("")
    old = world.peer("old", "version", "0.0.9")
    rows = wait_until("the peer is listed", lambda: world.json("list-processes", "old.process"))
    check_equal("agent", [row["agent"] for row in rows if row["pid"] == old.pid], ["outdated"])


@test
def why_a_process_that_ends_meanwhile(world):
    """Processes come and go while they are looked at: what is gone is left out, and nobody minds."""
    begin(world)
    c12 = world.build.workload("c12-cannot-load")
    for _ in range(5):
        services = [variant(world, f"short{i}", c12, "threads", agent=False) for i in range(4)]
        for service in services:
            service.process.kill()
            world.json("list-processes", "kind.process")
        for service in services:
            service.process.wait()
    check_equal("processes that are left", len(world.json("list-processes", "kind.process")), 1)
