# SPDX-License-Identifier: MIT
"""The programs of programs.py as systemd units under the installed memguardd: programs_units.py [NAME...]

For a machine that may be littered: the guest of tests/vm, with --programs. The servers are Debian's own units with all their
hardening, given their agent by `memguardctl enroll`; the others are transient services. What came back is measured on the unit's cgroup.
"""
import contextlib
import glob
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import programs  # noqa: E402
from harness import Failure, wait_until  # noqa: E402
from programs import Haproxy, Look, Missing, Nginx, Outcome, Postgres, Redis  # noqa: E402

CONFIG = "/etc/memguard.ini.d/00-bench.conf"
DROPINS = "/run/systemd/system"


def run(*command, check=True):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        raise Failure(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def show(unit, name):
    return run("systemctl", "show", "--value", "-p", name, unit).stdout.strip()


def anon(unit):
    with open(f"/sys/fs/cgroup{show(unit, 'ControlGroup')}/memory.stat", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("anon "))


class Installed:
    """The part of the tests' world that a look needs."""

    def ctl(self, *arguments):
        return run("memguardctl", *arguments, check=False)

    def json(self, *arguments):
        return json.loads(self.ctl("--json=short", *arguments).stdout)


def agent_variables(program):
    return [f"MEMGUARD_THREAD={program.thread}", "MEMGUARD_DELAY=100ms"]


class Transient:
    """What a program of programs.py runs in."""

    def __init__(self, name, program):
        self.unit, self.program = f"bench-{name}.service", program

    def start(self, with_agent):
        library = glob.glob("/usr/lib/*/libmemguard-preload.so")[0]
        variables = [f"LD_PRELOAD={library}", *agent_variables(self.program)] if with_agent else []
        run("systemd-run", "--quiet", f"--unit={self.unit}", "--service-type=exec", "--expand-environment=no",
            f"--property=StandardOutput=append:{self.program.directory}/output", f"--property=StandardError=append:{self.program.directory}/output",
            f"--working-directory={self.program.directory}", *(f"--setenv={variable}" for variable in variables), *self.program.command())

    def clean(self):
        pass


class Shipped:
    """Debian's unit, enrolled as an operator would."""

    def __init__(self, name, program):
        self.unit, self.program = program.unit(), program

    def start(self, with_agent):
        self.program.configure()
        if with_agent:
            variables = "".join(f"Environment={variable}\n" for variable in agent_variables(self.program))
            write(f"{DROPINS}/{self.unit}.d/60-bench.conf", f"[Service]\n{variables}")
            self.program.enroll(self.unit, variables)
        run("systemctl", "restart", self.unit)

    def clean(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{DROPINS}/{self.unit}.d/60-bench.conf")
        self.program.withdraw(self.unit)
        run("systemctl", "daemon-reload")


class Server:
    """What the shipped servers share."""

    def enroll(self, unit, variables):
        run("memguardctl", "enroll", unit)

    def withdraw(self, unit):
        run("memguardctl", "withdraw", unit, check=False)

    def configure(self):
        pass

    def said(self):
        return run("journalctl", "-b", "-n", "20", "--no-pager", "-u", self.unit(), check=False).stdout


class ShippedRedis(Server, Redis):
    def unit(self):
        return "redis-server.service"

    def configure(self):
        self.port, self.cli = 6379, programs.find("", "/usr/bin/redis-cli")


class ShippedNginx(Server, Nginx):
    def unit(self):
        return "nginx.service"

    def configure(self):
        programs.find("", "/usr/sbin/nginx")
        self.port = 80
        write("/var/www/html/large", "".join(f"line {i}\n" for i in range(150000)))
        write("/etc/nginx/conf.d/bench.conf", "gzip_types *;\ngzip_buffers 64 32k;\noutput_buffers 4 1m;\n")


class ShippedHaproxy(Server, Haproxy):
    reason = "its worker lives in a chroot, where memguard's socket is not"

    def unit(self):
        return "haproxy.service"

    def configure(self):
        programs.find("", "/usr/sbin/haproxy")
        self.port = 8080
        path = "/etc/haproxy/haproxy.cfg"
        with open(path, encoding="utf-8") as file:
            shipped = file.read()
        if "frontend bench" not in shipped:
            write(path, f"{shipped}\nfrontend bench\n\tbind 127.0.0.1:{self.port}\n"
                        "\thttp-request return status 200 content-type text/plain string hello\n")


class ShippedPostgres(Server, Postgres):
    """Debian's pg_ctlcluster clears the environment, so enroll refuses: the cluster's file `environment` is the way."""
    environment_before = None

    def cluster(self):
        return next(iter(glob.glob("/etc/postgresql/*/main")), None)

    def unit(self):
        if not self.cluster():
            raise Missing("no cluster of postgresql")
        return f"postgresql@{self.cluster().split('/')[3]}-main.service"

    def configure(self):
        self.environment_before = self.read_environment()

    def read_environment(self):
        with open(f"{self.cluster()}/environment", encoding="utf-8") as file:
            return file.read()

    def enroll(self, unit, variables):
        refused = run("memguardctl", "enroll", unit, check=False)
        if refused.returncode == 0 or "pg_ctlcluster" not in refused.stdout + refused.stderr:
            raise Failure(f"enroll should have refused: {refused.stdout}{refused.stderr}")
        library = glob.glob("/usr/lib/*/libmemguard-preload.so")[0]
        write(f"{self.cluster()}/environment", self.environment_before + f"LD_PRELOAD = '{library}'\n" +
              "".join("{} = '{}'\n".format(*variable.split("=")) for variable in agent_variables(self)))

    def withdraw(self, unit):
        if self.environment_before is not None:
            write(f"{self.cluster()}/environment", self.environment_before)

    def connect(self):
        return ["runuser", "-u", "postgres", "--", "psql", "-X", "-At", "postgres"]


SHIPPED = {"redis-server": ShippedRedis, "nginx": ShippedNginx, "haproxy": ShippedHaproxy, "postgres": ShippedPostgres}


def run_unit(host, between):
    """As programs.run_one() does, for a unit."""
    program, unit = host.program, host.unit
    try:
        host.start(between is not None)
        wait_until(f"{unit} is active", lambda: show(unit, "ActiveState") == "active")
        program.load()
        said = program.health()
        if between:
            between(int(show(unit, "MainPID")))
        said += program.health()
        for client in program.clients:
            client.communicate(timeout=programs.ANSWER_SECONDS)
        run("systemctl", "stop", unit)
        return Outcome(int(show(unit, "ExecMainStatus")), said)
    except Failure as error:
        raise Failure(f"{error}; {program.said()[-1500:]}") from None
    finally:
        run("systemctl", "kill", "-s", "KILL", unit, check=False)
        run("systemctl", "stop", unit, check=False)
        run("systemctl", "reset-failed", unit, check=False)
        host.clean()


def measure(name):
    def fresh(directory):
        if name in SHIPPED:
            return Shipped(name, SHIPPED[name]("", directory))
        return Transient(name, programs.PROGRAMS[name]("", directory))

    outcomes = []
    with tempfile.TemporaryDirectory(prefix="memguard-bench-") as top:
        for number in range(2):
            directory = f"{top}/{number}"
            os.makedirs(directory)
            host = fresh(directory)
            look = Look(Installed(), lambda pid: anon(host.unit)) if number else None
            outcomes.append(run_unit(host, look))
    return programs.cells_of(name, host.program, look, *outcomes)


def main():
    # Emulated, all takes twenty times as long, pauses too.
    programs.READY_SECONDS, programs.ANSWER_SECONDS = 600, 600
    write(CONFIG, "[Daemon]\nIntervalSec=1s\n[Default]\nMaxPause=20s\n")
    run("systemctl", "restart", "memguard.service")
    try:
        return 0 if programs.bench(sys.argv[1:], measure) else 1
    finally:
        os.unlink(CONFIG)


if __name__ == "__main__":
    sys.exit(main())
