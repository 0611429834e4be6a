# SPDX-License-Identifier: MIT
"""The memory-pressure protocol with the daemon as provider: who is told, who is not, and that nobody ever sees a hang-up.

The test is the service manager too: it holds the listening socket and the descriptor store, as systemd does.
"""
import array
import base64
import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading

from harness import HERE, Service, check, check_equal, intervals, test, wait_until

ON = {"PressureClients": "300"}


def token_of(unit):
    return base64.b64encode(f"memguard 1 {unit}\n".encode()).decode()


def client(world, name, behaviour, *arguments, token=None, user=None):
    """A program of its own name, as a drop-in starts it."""
    real = os.path.realpath(sys.executable)
    token = token_of(f"{name}.process") if token is None else token
    return Service(world, name, real, (f"{HERE}/pressure_client.py", behaviour, *arguments), agent=False, user=user,
                   env={"PYTHONHOME": sys.base_prefix, "PYTHONDONTWRITEBYTECODE": "1",
                        "MEMORY_PRESSURE_WATCH": f"{world.runtime}/pressure.sock", "MEMORY_PRESSURE_WRITE": token})


def lines(program, word):
    return [line for line in program.output().splitlines() if line.startswith(word)]


def clients(world, unit):
    """None where the unit is not known any more: without a client nothing makes it one in proc mode."""
    done = world.ctl("status", unit, "--json=short")
    return json.loads(done.stdout)[0]["pressure_clients"] if done.returncode == 0 else None


def wait_clients(world, unit, count):
    return world.wait_status(f"{count} clients of memory pressure", unit, lambda row: row["pressure_clients"] == count)


def trim(world, unit):
    """By hand: what `memguardctl trim` says, or None where nobody was told."""
    done = world.ctl("trim", unit)
    return done.stdout if done.returncode == 0 else None


def wait_told(world, program, times):
    wait_until(f"{program.name} has been told {times} times", lambda: len(lines(program, "told")) == times)


def tell(world, program, unit=None):
    """One more byte, and it is read."""
    times = len(lines(program, "told"))
    check(trim(world, unit or program.unit), f"{program.name} is not told: {world.log()[-400:]}")
    wait_told(world, program, times + 1)


@test
def it_is_off_by_default(world):
    world.run_daemon("")
    check(not os.path.exists(f"{world.runtime}/pressure.sock"), "there is a socket that nobody asked for")
    world.configure(**ON)
    check_equal("exit code of reload", world.ctl("reload").returncode, 0)
    web = client(world, "web", "plain").wait_for("ready")
    wait_clients(world, "web.process", 1)
    # Off again: nobody new, but who is there is served.
    world.configure()
    check_equal("exit code of reload", world.ctl("reload").returncode, 0)
    late = client(world, "late", "plain").wait_for("ready")
    tell(world, web)
    intervals(4)
    check_equal("status of one that came too late", world.ctl("status", late.unit).returncode, 4)
    check_equal("what it was told", late.output(), "ready\n")


@test
def a_client_is_told_by_hand(world):
    world.run_daemon("", **ON)
    web = client(world, "web", "plain").wait_for("ready")
    wait_clients(world, web.unit, 1)
    check("would ask" in world.ctl("trim", "--dry-run", web.unit).stdout, "a dry run predicts")
    intervals(2)
    check_equal("told by a dry run", lines(web, "told"), [])
    result = world.json("trim", web.unit)
    check_equal("result", result["result"], "told")
    check_equal("asked", result["asked"], 1)
    wait_told(world, web, 1)
    check_equal("bytes of an event", lines(web, "told"), ["told 1"])
    said = wait_until("its effect is in the journal", lambda: world.log_lines("web.process: told of memory pressure (by-hand): 1 client"))
    check_equal("lines about it", len(said), 1)
    tell(world, web)
    web.stop()
    wait_until("its place is free", lambda: world.ctl("status", web.unit).returncode == 4)


@test
def tokens_right_and_wrong(world):
    """None of these is hung up on, and only who speaks for its own unit is told anything."""
    world.run_daemon("", **ON)
    good = [client(world, "bits", "by-bytes"), client(world, "half", "half-closed"),
            client(world, "nul", "plain", token=base64.b64encode(b"memguard 1 nul.process\0").decode())]
    bad = [client(world, "other", "plain", token=token_of("bits.process")),
           client(world, "liar", "plain", token=token_of("")),
           client(world, "slice", "plain", token=token_of("*.process")),
           client(world, "twice", "plain", token=base64.b64encode(b"memguard 1 twice.process\nx").decode()),
           client(world, "psi", "plain", token=base64.b64encode(b"some 200000 2000000\0").decode()),
           client(world, "none", "plain", token=""),
           client(world, "garbage", "garbage"),
           client(world, "long", "plain", token=base64.b64encode(b"memguard 1 " + b"a" * 4000 + b"\n").decode()),
           client(world, "silent", "silent"),
           client(world, "halves", "in-halves")]
    for program in good:
        wait_clients(world, program.wait_for("ready").unit, 1)
    for program in bad[:-1]:
        program.wait_for("ready")
    bad[-1].wait_for("waits")
    for program in good:
        tell(world, program)
    intervals(4)
    for program in bad:
        check(trim(world, program.unit) is None, f"{program.name} counts as a client")
        check_equal(f"lines of {program.name}", [lines(program, "told"), lines(program, "hangup")], [[], []])
    check_equal("complaints", len(world.log_lines("other[", "the token of another unit")), 1)
    for program in (b for b in bad if b.name in ("liar", "slice", "twice", "psi", "garbage", "long")):
        check_equal(f"complaints about {program.name}", len(world.log_lines(f"{program.name}[", "what is no token")), 1)
    bad[-1].signal(signal.SIGUSR1)
    wait_clients(world, bad[-1].unit, 1)
    tell(world, bad[-1])


@test
def one_that_never_reads(world):
    """A byte that is unread says all that a second one could; others are told meanwhile."""
    world.run_daemon("", **ON)
    deaf = client(world, "deaf", "deaf").wait_for("waits")
    web = client(world, "web", "plain").wait_for("ready")
    wait_clients(world, deaf.unit, 1)
    wait_clients(world, web.unit, 1)
    check(trim(world, deaf.unit), "the first byte is sent")
    for _ in range(3):
        check(trim(world, deaf.unit) is None, "a second byte while the first is unread")
        tell(world, web)
    deaf.signal(signal.SIGUSR1)
    wait_told(world, deaf, 1)
    check_equal("what was waiting for it", lines(deaf, "told"), ["told 1"])
    tell(world, deaf)


@test
def two_hundred_clients(world):
    world.run_daemon("", **ON)
    crowd = client(world, "crowd", "crowd", "200")
    wait_until("all are connected", lambda: len(lines(crowd, "ready")) == 200)
    wait_clients(world, crowd.unit, 200)
    check_equal("told", world.json("trim", crowd.unit)["asked"], 200)
    wait_told(world, crowd, 200)
    check_equal("bytes", set(lines(crowd, "told")), {"told 1"})
    for child in crowd.children():
        os.kill(child, signal.SIGKILL)
    wait_until("nobody is a client", lambda: not clients(world, crowd.unit))


@test
def more_than_the_limit_wait_quietly(world):
    world.run_daemon("", PressureClients="2")
    first = [client(world, name, "plain").wait_for("ready") for name in ("one", "two")]
    for program in first:
        wait_clients(world, program.unit, 1)
    third = client(world, "three", "plain").wait_for("ready")
    wait_until("it is said", lambda: world.log_lines("all that PressureClients= allows"))
    intervals(4)
    check_equal("lines of the one that waits", third.output(), "ready\n")
    first[0].stop()
    wait_clients(world, third.unit, 1)
    tell(world, third)
    tell(world, first[1])


@test
def one_process_with_many_connections(world):
    world.run_daemon("", **ON)
    web = client(world, "web", "plain").wait_for("ready")
    wait_clients(world, web.unit, 1)
    greedy = client(world, "greedy", "greedy", "40").wait_for("ready")
    wait_until("most are refused", lambda: lines(greedy, "ended 36"))
    wait_clients(world, greedy.unit, 4)
    check_equal("ended", len(lines(greedy, "ended")), 36)
    tell(world, web)


class ServiceManager:
    """What systemd is to the daemon: it listens before the daemon is there, and holds what it is given, until the other end hangs up."""

    def __init__(self, world):
        self.world = world
        os.mkdir(world.runtime)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(f"{world.runtime}/pressure.sock")
        self.listener.listen(4096)
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(f"{world.directory}/notify")
        self.stored = []
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                data, control, _, _ = self.notify.recvmsg(4096, socket.CMSG_SPACE(4))
                for _, _, sent in control:
                    fds = array.array("i")
                    fds.frombytes(sent)
                    if b"FDSTORE=1" in data and b"FDNAME=pressure-client" in data:
                        self.stored.extend(fds)
                    else:
                        for fd in fds:
                            os.close(fd)

    def drop_hung_up(self):
        poll = select.poll()
        for fd in self.stored:
            poll.register(fd, 0)
        for fd, _ in poll.poll(0):
            self.stored.remove(fd)
            os.close(fd)

    def start(self):
        self.drop_hung_up()
        # High up first: the daemon finds them from 3 on, which may be in use here.
        kept = [fcntl.fcntl(fd, fcntl.F_DUPFD, 1000) for fd in [self.listener.fileno(), *self.stored]]
        names = ":".join(["pressure"] + ["pressure-client"] * len(self.stored))

        def hand_over():
            for number, fd in enumerate(kept):
                os.dup2(fd, 3 + number)
            os.environ["LISTEN_PID"] = str(os.getpid())

        # The shell is the process that the daemon becomes: its pid is the one in LISTEN_PID.
        command = ["/bin/sh", "-c", 'LISTEN_PID=$$ exec "$0" "$@"', self.world.build.memguardd, f"--config={self.world.config_path}",
                   f"--runtime-directory={self.world.runtime}", "--source=proc"]
        with open(self.world.log_path, "ab") as log:
            self.world.process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, close_fds=False, preexec_fn=hand_over,
                env=dict(os.environ, LISTEN_FDS=str(len(kept)), LISTEN_FDNAMES=names, NOTIFY_SOCKET=f"{self.world.directory}/notify"))
        for fd in kept:
            os.close(fd)
        wait_until("memguardd answers", lambda: self.world.ctl("status").returncode == 0)


def is_untouched(program):
    """Since it was ready: nothing has woken it but what it was told."""
    check_equal(f"hang-ups of {program.name}", lines(program, "hangup"), [])
    check(program.process.poll() is None, f"{program.name} has ended")


@test
def nobody_notices_a_daemon_that_goes_and_comes(world):
    """Killed, stopped, started: clients neither spin nor end, and are told again by the next daemon."""
    world.configure(**ON)
    manager = ServiceManager(world)
    manager.start()
    web = client(world, "web", "plain").wait_for("ready")
    wrong = client(world, "wrong", "plain", token=token_of("web.process")).wait_for("ready")
    halves = client(world, "halves", "in-halves").wait_for("waits")
    crowd = client(world, "crowd", "crowd", "50")
    wait_clients(world, web.unit, 1)
    wait_clients(world, crowd.unit, 50)
    wait_until("all are in the store", lambda: len(manager.stored) == 53)
    tell(world, web)
    before = web.output()
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
        world.stop(number)
        late = client(world, f"late{number}{len(world.services)}", "plain").wait_for("ready")
        check_equal("lines without a daemon", web.output(), before)
        manager.start()
        wait_clients(world, web.unit, 1)
        wait_clients(world, crowd.unit, 50)
        # Who came while there was no daemon has waited at the socket.
        wait_clients(world, late.unit, 1)
        tell(world, late)
        tell(world, web)
        before = web.output()
        check(trim(world, wrong.unit) is None, "a wrong token is right for the next daemon")
        for program in (web, wrong, halves, late, crowd):
            is_untouched(program)
    halves.signal(signal.SIGUSR1)
    wait_clients(world, halves.unit, 1)
    tell(world, halves)
    check_equal("told in the end", world.json("trim", crowd.unit)["asked"], 50)


@test
def an_unread_byte_outlives_the_daemon(world):
    """The next daemon adds no second one, for the connection itself says that it is there."""
    world.configure(**ON)
    manager = ServiceManager(world)
    manager.start()
    deaf = client(world, "deaf", "deaf").wait_for("waits")
    wait_clients(world, deaf.unit, 1)
    check(trim(world, deaf.unit), "the first byte is sent")
    world.stop(signal.SIGKILL)
    manager.start()
    wait_clients(world, deaf.unit, 1)
    check(trim(world, deaf.unit) is None, "a second byte while the first is unread")
    deaf.signal(signal.SIGUSR1)
    wait_told(world, deaf, 1)
    check_equal("what was waiting for it", lines(deaf, "told"), ["told 1"])
    # A client that ends leaves the store and the daemon.
    deaf.stop()
    wait_until("it is gone", lambda: world.ctl("status", deaf.unit).returncode == 4)
