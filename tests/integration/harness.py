# SPDX-License-Identifier: MIT
"""The harness of the integration tests: Python's standard library and nothing else.

A test is a function that takes a World: the real memguardd in proc mode with a private runtime directory, real services under
the real preload agent, the real memguardctl. Nothing here needs root, systemd or a bus. No test asserts a duration: it waits
for a condition, for as long as a slow machine may need (WAIT), and fails with everything that an engineer would ask for next:
what was waited for, what was seen last, the status, the daemon's log and the services' output.
"""
import contextlib
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

WAIT = float(os.environ.get("MEMGUARD_TEST_WAIT", "90"))
MIB = 1 << 20
INTERVAL = 0.25  # IntervalSec= of every daemon here
# For a program (or a forked child) that has one thread: by default the agent waits for the second.
ALWAYS = {"MEMGUARD_THREAD": "always"}

HERE = os.path.dirname(os.path.abspath(__file__))
tests = []


class Failure(Exception):
    pass


class Skip(Exception):
    pass


def test(function):
    tests.append(function)
    return function


def check(condition, text):
    if not condition:
        raise Failure(text)


def check_equal(what, have, want):
    check(have == want, f"{what}: have {have!r}, want {want!r}")


def wait_until(what, probe, timeout=None):
    """Returns the first true value of PROBE; a probe that raises is a probe that is not true yet."""
    deadline = time.monotonic() + (timeout or WAIT)
    seen = None
    while True:
        try:
            seen = probe()
        except (OSError, ValueError, KeyError, TypeError, Failure) as error:
            seen = error
        if seen and not isinstance(seen, Exception):
            return seen
        if time.monotonic() > deadline:
            raise Failure(f"waited {timeout or WAIT:.0f} s for: {what}; seen last: {seen!r}")
        time.sleep(0.05)


def intervals(count):
    """Lets the daemon tick so often. Used where something must NOT happen, so that a slow machine can only weaken a test."""
    time.sleep(count * INTERVAL)


def rss_anon(pid):
    with open(f"/proc/{pid}/statm") as file:
        resident, shared = map(int, file.read().split()[1:3])
    return (resident - shared) * os.sysconf("SC_PAGESIZE")


class Build:
    """Where the programs are: a build directory, or what the environment names (an installed memguard, another build)."""

    def __init__(self, directory):
        self.directory = directory
        self.memguardd = os.environ.get("MEMGUARDD", f"{directory}/src/daemon/memguardd")
        self.memguardctl = os.environ.get("MEMGUARDCTL", f"{directory}/src/ctl/memguardctl")
        self.preload = os.environ.get("MEMGUARD_PRELOAD", f"{directory}/src/agent/libmemguard-preload.so")
        self.exporter = os.environ.get("MEMGUARD_EXPORTER", f"{directory}/src/exporter/memguard-exporter")
        for path in (self.memguardd, self.memguardctl, self.preload, self.exporter):
            if not os.path.exists(path):
                sys.exit(f"{path} is missing: build first (ninja -C {directory})")

    def workload(self, name):
        return f"{self.directory}/tests/workloads/{name}"


class Service:
    """A plain program under the agent. Its executable is copied to the service's name, which makes it a unit of its own."""

    def __init__(self, world, name, program, arguments=(), agent=True, env=None, preload=(), user=None,
                 stdin=False):
        self.world, self.name, self.unit = world, name, f"{name}.process"
        self.output_path = f"{world.directory}/{name}.{len(world.services)}.out"
        executable = f"{world.directory}/bin/{name}"
        if not os.path.exists(executable):
            shutil.copy(program, executable)
        environment = dict(os.environ, MEMGUARD_SOCKET=world.agent_socket, MEMGUARD_DELAY="100ms", **(env or {}))
        libraries = list(preload) + ([world.build.preload] if agent else [])
        if libraries:
            environment["LD_PRELOAD"] = " ".join(libraries)
        with open(self.output_path, "wb") as output:
            self.process = subprocess.Popen([executable, *arguments], env=environment, stdout=output,
                                            stderr=subprocess.STDOUT, cwd=world.directory, user=user,
                                            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL)
        self.pid = self.process.pid
        world.services.append(self)

    def output(self):
        with open(self.output_path, errors="replace") as file:
            return file.read()

    def wait_for(self, text):
        def probe():
            if text in self.output():
                return True
            check(self.process.poll() is None, f"{self.name} ended with {self.process.returncode}: {self.output()[-300:]}")
            return False
        wait_until(f"{self.name} prints {text!r}", probe)
        return self

    def rss_anon(self):
        return rss_anon(self.pid)

    def children(self):
        with open(f"/proc/{self.pid}/task/{self.pid}/children") as file:
            return [int(word) for word in file.read().split()]

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGCONT)
                self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self.process.wait()


class World:
    """One test's daemon, services and directory. Everything it started is gone when it is left, also by SIGTERM."""

    def __init__(self, build):
        signal.signal(signal.SIGTERM, end_cleanly)
        self.build = build
        self.directory = tempfile.mkdtemp(prefix="memguard-test-")
        os.chmod(self.directory, 0o755)
        os.mkdir(f"{self.directory}/bin")
        self.runtime = f"{self.directory}/run"
        self.agent_socket = f"{self.runtime}/agent.sock"
        self.config_path = f"{self.directory}/memguard.ini"
        self.log_path = f"{self.directory}/memguardd.log"
        self.services = []
        self.process = None

    # The daemon

    def configure(self, text="", **daemon):
        """The main file: [Daemon] made fast and deaf to what else goes on on this machine, then TEXT."""
        keys = {"IntervalSec": f"{int(INTERVAL * 1000)}ms", "LogLevel": "debug", "PressureHigh": "100%", **daemon}
        with open(self.config_path, "w") as file:
            file.write("[Daemon]\n" + "".join(f"{key}={value}\n" for key, value in keys.items()) + "\n" + text)

    def start(self, *arguments):
        check(self.process is None, "the daemon runs already")
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [self.build.memguardd, f"--config={self.config_path}", f"--runtime-directory={self.runtime}", "--source=proc",
                 *arguments], stdout=log, stderr=log, stdin=subprocess.DEVNULL)

        def probe():
            check(self.process.poll() is None, f"memguardd ended with {self.process.returncode}")
            return self.ctl("status", "--json=short").returncode == 0
        wait_until("memguardd answers", probe)
        return self

    def run_daemon(self, text="", **daemon):
        self.configure(text, **daemon)
        return self.start()

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        code = self.process.wait(WAIT)
        self.process = None
        return code

    def log(self):
        with open(self.log_path, errors="replace") as file:
            return file.read()

    def log_lines(self, *words):
        return [line for line in self.log().splitlines() if all(word in line for word in words)]

    # The services

    def service(self, name, workload, *arguments, **keywords):
        return Service(self, name, self.build.workload(workload), arguments, **keywords)

    def peer(self, name, behaviour, *arguments):
        """A program that speaks the protocol itself (peer.py), in an interpreter of its own name: a unit of its own."""
        real = os.path.realpath(sys.executable)
        return Service(self, name, real, (f"{HERE}/peer.py", self.agent_socket, behaviour, *arguments), agent=False,
                       env={"PYTHONHOME": sys.base_prefix, "PYTHONDONTWRITEBYTECODE": "1"})

    # memguardctl

    def ctl(self, *arguments, user=None):
        return subprocess.run([self.build.memguardctl, f"--runtime-directory={self.runtime}", "--no-pager", *arguments],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=WAIT, user=user,
                              env=dict(os.environ, NO_COLOR="1"))

    def json(self, *arguments):
        done = self.ctl(*arguments, "--json=short")
        check(done.returncode == 0, f"memguardctl {' '.join(arguments)}: {done.returncode}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def status(self, unit):
        units = self.json("status", unit)
        check(len(units) == 1, f"status {unit}: {len(units)} rows")
        return units[0]

    def wait_status(self, what, unit, probe):
        """Waits until PROBE(row of status) is true; returns that row."""
        def look():
            row = self.status(unit)
            return row if probe(row) else check(False, json.dumps(row))
        return wait_until(f"{unit}: {what}", look)

    def wait_agents(self, unit, count):
        return self.wait_status(f"{count} agents", unit, lambda row: row["agents"] == count)

    def wait_trimmed(self, service, trims=1, below=None):
        row = self.wait_status("is trimmed", service.unit, lambda row: row["trims"] >= trims)
        if below is not None:
            wait_until(f"{service.name} is under {below >> 20} MiB", lambda: service.rss_anon() < below)
        return row

    # The end

    def report(self):
        """What an engineer wants to see of a failed test."""
        yield "status", (self.ctl("status").stdout if self.process and self.process.poll() is None else "(no daemon runs)")
        if os.path.exists(self.log_path):
            yield "memguardd", "\n".join(self.log().splitlines()[-60:])
        for service in self.services[:6]:
            yield f"{service.unit} ({service.process.poll()})", "\n".join(service.output().splitlines()[-12:])

    def close(self):
        for service in self.services:
            if service.process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    service.process.send_signal(signal.SIGCONT)
                    service.process.terminate()
        for service in self.services:
            service.stop()
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


def jemalloc_library():
    for path in glob.glob("/usr/lib/*/libjemalloc.so.2"):
        return path
    raise Skip("libjemalloc.so.2 is not installed (Debian package libjemalloc2)")


def print_block(title, text):
    print(f"    --- {title}")
    for line in text.rstrip().splitlines():
        print(f"    {line}")


def run_one(function, build):
    """Returns "passed", "failed" or "skipped"."""
    world = World(build)
    started = time.monotonic()
    try:
        function(world)
        daemon_died = world.process is not None and world.process.poll() is not None
        check(not daemon_died, f"memguardd ended with {world.process.returncode if daemon_died else 0}")
        print(f"ok {function.__name__} ({time.monotonic() - started:.1f} s)", flush=True)
        return "passed"
    except Skip as reason:
        if os.environ.get("MEMGUARD_MUST_WORK") == "1":
            print(f"not ok {function.__name__}: may not be skipped here: {reason}", flush=True)
            return "failed"
        print(f"skip {function.__name__}: {reason}", flush=True)
        return "skipped"
    except Exception as error:  # any, so that one test never ends the others
        print(f"not ok {function.__name__}: {error}")
        if not isinstance(error, Failure):
            print_block("traceback", traceback.format_exc())
        with contextlib.suppress(Exception):
            for title, text in world.report():
                print_block(title, text)
        sys.stdout.flush()
        return "failed"
    finally:
        world.close()


def end_cleanly(number, frame):
    sys.exit(128 + number)


def run_all(build, patterns):
    chosen = [function for function in tests if not patterns or any(word in function.__name__ for word in patterns)]
    results = [run_one(function, build) for function in chosen]
    print(f"{results.count('passed')} passed, {results.count('failed')} failed"
          + (f", {results.count('skipped')} skipped" if "skipped" in results else ""))
    return 1 if "failed" in results or not chosen else 0
