# SPDX-License-Identifier: MIT
"""memguard-exporter: what a real Prometheus makes of it, without a daemon, and under clients that mean no good."""
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import urllib.parse

from harness import WAIT, Skip, check, check_equal, intervals, jemalloc_library, test, wait_until

TRIM = "TrimAbove=64M\nMinGain=16M\nCooldownSec=1s\nCooldownMaxSec=1min\nMaxPause=1s\n"
SMALL = ("--threads=1", "--blocks=4")
OPENMETRICS = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"}
CLIENTS_MAX = 64  # of src/exporter/clients.h


class Exporter:
    """On a socket that was handed to it, as systemd does it."""

    def __init__(self, world, *options, user=None, program=None):
        listener = socket.create_server(("127.0.0.1", 0))
        self.address = listener.getsockname()
        command = f'exec 3<&{listener.fileno()}; LISTEN_FDS=1 LISTEN_PID=$$ exec "$0" "$@"'
        self.log_path = f"{world.directory}/exporter.log"
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                ["sh", "-c", command, program or world.build.exporter, f"--runtime-directory={world.runtime}", *options],
                pass_fds=[listener.fileno()], stdin=subprocess.DEVNULL, stdout=log, stderr=log, user=user)
        listener.close()

    def request(self, method="GET", path="/metrics", headers=None, body=None):
        connection = http.client.HTTPConnection(*self.address, timeout=WAIT)
        with contextlib.closing(connection):
            connection.request(method, path, headers=headers or {}, body=body)
            response = connection.getresponse()
            return response, response.read().decode()

    def metrics(self):
        response, text = self.request(headers=OPENMETRICS)
        check_equal("status", response.status, 200)
        return parse(text)

    def log(self):
        with open(self.log_path, errors="replace") as file:
            return file.read()

    def stop(self):
        self.process.terminate()
        return self.process.wait(WAIT)


@contextlib.contextmanager
def exporter_of(world, *options, **keywords):
    exporter = Exporter(world, *options, **keywords)
    try:
        yield exporter
        check(exporter.process.poll() is None, f"the exporter ended with {exporter.process.returncode}: {exporter.log()[-1000:]}")
        check_equal("its end", exporter.stop(), 0)
    finally:
        if exporter.process.poll() is None:
            exporter.process.kill()
            exporter.process.wait()


LABEL = r'([a-z_]+)="((?:[^"\\\n]|\\[\\"n])*)"'
SAMPLE = re.compile(rf'^([a-z_]+)(?:\{{((?:{LABEL},?)+)\}})? (-?[0-9]+(?:\.[0-9]+)?)$')


def parse(text):
    """OpenMetrics, strictly: {name: {labels: value}}. Families do not mix, no series comes twice, EOF ends it."""
    lines = text.split("\n")
    check_equal("the end", lines[-2:], ["# EOF", ""])
    family, types, series = None, {}, {}
    for line in lines[:-2]:
        head = re.match(r"^# (HELP|TYPE|UNIT) ([a-z_]+) (.+)$", line)
        if head:
            word, family = head[1], head[2]
            check(word != "HELP" or family not in types, f"{family} comes twice")
            if word == "TYPE":
                types[family] = head[3]
            check(word != "UNIT" or family.endswith("_" + head[3]), line)
            continue
        sample = SAMPLE.match(line)
        check(sample, f"neither comment nor sample: {line!r}")
        suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",)}[types[family]]
        check(any(sample[1] == family + suffix for suffix in suffixes), f"{line} under {family}")
        labels = tuple(sorted(match[:2] for match in re.findall(LABEL, sample[2] or "")))
        check(labels not in series.setdefault(sample[1], {}), f"twice: {line}")
        series[sample[1]][labels] = float(sample[5])
    return series


def one(series, name, **labels):
    found = [value for have, value in series[name].items() if labels.items() <= dict(have).items()]
    check(len(found) == 1, f"{name}{labels}: {len(found)} series")
    return found[0]


# Prometheus

def tool(name):
    path = shutil.which(name)
    if not path:
        raise Skip(f"{name} is not there (Debian package prometheus)")
    return path


@contextlib.contextmanager
def prometheus_of(world, exporter):
    """A real one, with nothing of its own outside of the test's directory. Yields a function that asks it."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = "127.0.0.1:%d" % probe.getsockname()[1]
    config = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
              "scrape_configs": [{"job_name": "memguard", "static_configs": [{"targets": ["%s:%d" % exporter.address]}]}],
              "rule_files": [os.path.join(os.path.dirname(__file__), "..", "..", "conf", "prometheus-alerts.yml")]}
    with open(f"{world.directory}/prometheus.yml", "w") as file:
        json.dump(config, file)  # which is YAML
    with open(f"{world.directory}/prometheus.log", "wb") as log:
        process = subprocess.Popen(
            [tool("prometheus"), f"--config.file={file.name}", f"--storage.tsdb.path={world.directory}/prometheus",
             f"--web.listen-address={address}"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=world.directory)

    def ask(path, **query):
        connection = http.client.HTTPConnection(address, timeout=WAIT)
        with contextlib.closing(connection):
            connection.request("GET", f"/api/v1/{path}?{urllib.parse.urlencode(query)}")
            answer = json.loads(connection.getresponse().read())
        check(answer["status"] == "success", f"{path} {query}: {answer}")
        return answer["data"]

    try:
        wait_until("Prometheus scrapes", lambda: ask("query", query='up{job="memguard"} == 1')["result"])
        yield ask
    finally:
        process.terminate()
        process.wait(WAIT)


def value_of(ask, query):
    result = ask("query", query=query)["result"]
    check(len(result) == 1, f"{query}: {result}")
    return float(result[0]["value"][1])


def shown(row):
    """What status says, as PromQL says it. Of the pseudo-unit web.process, which has one jemalloc."""
    unit = row["unit"]
    numbers = {f"memguard_unit_{name}_bytes": row[f"{name}_bytes"]
               for name in ("anon", "swap", "live", "retained", "freeable", "pinned", "other")}
    numbers["memguard_unit_threshold_bytes"] = row["trim_above_bytes"]
    numbers |= {f"memguard_unit_{name}": row[name] for name in ("processes", "agents")}
    numbers["memguard_unit_trimmed_bytes_total"] = row["trimmed_bytes"]
    queries = {f'{name}{{unit="{unit}"}}': value for name, value in numbers.items()}
    queries[f'sum(memguard_unit_trims_total{{unit="{unit}"}})'] = row["trims"]
    queries[f'memguard_unit_trims_total{{unit="{unit}",result="{row["last_trim"]["result"]}"}}'] = row["trims"]
    queries[f'memguard_unit_trim_pause_seconds_count{{unit="{unit}"}}'] = row["trims"]
    queries[f'memguard_unit_verdict{{unit="{unit}",verdict="{row["verdict"]}"}}'] = 1
    queries[f'memguard_unit_reason{{unit="{unit}",reason="{row["reason"]}"}}'] = 1
    queries[f'memguard_unit_mode{{unit="{unit}",mode="{row["mode"]}"}}'] = 1
    heap = next(heap for heap in row["allocators"] if heap["name"] == "jemalloc")
    for name, key in (("allocated", "live"), ("active", "active"), ("metadata", "metadata"), ("resident", "resident"),
                      ("mapped", "system"), ("address_space", "address_space")):
        check(heap[f"{key}_bytes"] > 0, f"jemalloc's {key}_bytes is {heap[f'{key}_bytes']}")
        queries[f'memguard_heap_{name}_bytes{{unit="{unit}",pid="{heap["pid"]}",allocator="jemalloc"}}'] = heap[f"{key}_bytes"]
    return queries


@test
def prometheus_scrapes_what_status_says(world):
    tool("prometheus")
    world.run_daemon(f"[web.process]\n{TRIM}")
    web = world.service("web", "c1-arenas", preload=[jemalloc_library()]).wait_for("phase idle")
    world.wait_trimmed(web)
    with exporter_of(world) as exporter, prometheus_of(world, exporter) as ask:
        def same():
            row = world.status("web.process")
            different = {query: (value, value_of(ask, query)) for query, value in shown(row).items()
                         if value_of(ask, query) != value}
            return check(not different, f"status and Prometheus: {different}") or True
        wait_until("Prometheus says what status says", same)
        held = value_of(ask, 'sum(memguard_unit_held_seconds_total{unit="web.process"})')
        check(held > 0, f"held for {held} s")
        check(value_of(ask, 'memguard_unit_trim_pause_seconds_bucket{unit="web.process",le="+Inf"}') >= 1, "no pause")
        check(value_of(ask, "memguard_daemon_cpu_seconds_total") > 0, "the daemon has cost nothing")
        targets = ask("targets")["activeTargets"]
        check_equal("errors of the scrape", [target["lastError"] for target in targets], [""])
        rules = ask("rules")["groups"][0]["rules"]
        wait_until("the alerts are evaluated", lambda: all(
            rule["health"] == "ok" for rule in ask("rules")["groups"][0]["rules"]))
        check(len(rules) >= 6, f"{len(rules)} alerts")
        world.stop()
        wait_until("the alert on a missing daemon wakes up", lambda: [
            alert for alert in ask("alerts")["alerts"] if alert["labels"]["alertname"] == "MemguardDown"])


# Without a daemon

@test
def scrapes_without_a_daemon_are_answered(world):
    with exporter_of(world) as exporter:
        check_equal("memguard_up", one(exporter.metrics(), "memguard_up"), 0)
        world.run_daemon("")
        wait_until("the daemon is up", lambda: one(exporter.metrics(), "memguard_up") == 1)
        world.stop(signal.SIGKILL)
        wait_until("the daemon is down", lambda: one(exporter.metrics(), "memguard_up") == 0)
        series = exporter.metrics()
        check(not [name for name in series if name.startswith(("memguard_unit", "memguard_heap", "memguard_daemon"))],
              f"old numbers: {sorted(series)}")
        check_equal("lines of the log", len(exporter.log().splitlines()), 3)


@test
def a_stopped_daemon_is_not_waited_for(world):
    world.run_daemon("")
    with exporter_of(world, "--timeout=500ms") as exporter:
        check_equal("memguard_up", one(exporter.metrics(), "memguard_up"), 1)
        world.process.send_signal(signal.SIGSTOP)
        try:
            wait_until("the daemon counts as down", lambda: one(exporter.metrics(), "memguard_up") == 0)
        finally:
            world.process.send_signal(signal.SIGCONT)
        wait_until("the daemon is up again", lambda: one(exporter.metrics(), "memguard_up") == 1)


# How much, and for whom

@test
def what_is_beyond_the_limits_is_counted(world):
    world.run_daemon("")
    for name, count in (("small", 1), ("large", 3)):
        for _ in range(count):
            world.service(name, "c1-arenas", "--threads=1", f"--blocks={64 * count}")
    world.wait_agents("small.process", 1)
    world.wait_agents("large.process", 3)
    with exporter_of(world, "--max-units=1", "--max-processes=2") as exporter:
        def look():
            series = exporter.metrics()
            units = {dict(labels)["unit"] for labels in series["memguard_unit_anon_bytes"]}
            pids = {dict(labels)["pid"] for labels in series["memguard_heap_info"]}
            left_out = (one(series, "memguard_exporter_units_left_out"), one(series, "memguard_exporter_processes_left_out"))
            return check((units, len(pids), left_out) == ({"large.process"}, 2, (1, 2)),
                         f"{units}, {pids}, left out {left_out}") or True
        wait_until("the largest unit is shown, the rest counted", look)


@test
def anybody_may_be_the_exporter(world):
    if os.geteuid() != 0:
        raise Skip("needs root to become somebody else")
    world.run_daemon("")
    os.chmod(world.runtime, 0o755)
    world.service("web", "c1-arenas", *SMALL)
    world.wait_agents("web.process", 1)
    program = shutil.copy(world.build.exporter, f"{world.directory}/bin/exporter")  # the build's directory may be root's alone
    with exporter_of(world, user=65534, program=program) as exporter:
        wait_until("nobody sees the unit", lambda: one(exporter.metrics(), "memguard_unit_agents", unit="web.process") == 1)


@test
def a_lost_agent_is_seen(world):
    """The process goes on, its agent's connection does not."""
    world.run_daemon("")
    world.peer("lost", "garbage", "random+hello").wait_for("closed")
    with exporter_of(world) as exporter:
        wait_until("the agent is missed", lambda: one(exporter.metrics(), "memguard_unit_agents_lost", unit="lost.process") == 1)


@test
def names_do_not_break_out(world):
    """Of a unit (its program's file name) and of an allocator (whatever an agent says)."""
    world.run_daemon("")
    world.peer('a"} 1 # b\\', "quotes").wait_for("hello")
    with exporter_of(world) as exporter:
        def look():
            versions = {dict(labels)["version"]: dict(labels) for labels in exporter.metrics()["memguard_heap_info"]}
            check(len(versions) == 2, f"{versions}")
            return versions
        labels = wait_until("both heaps are shown", look)['1\\"} 1 # EOF \\\\']
        check_equal("unit, heap", (labels["unit"], labels["heap"]), ('a\\"} 1 # b\\\\.process', "1"))


@test
def the_older_format_is_for_promtool(world):
    world.run_daemon(f"[web.process]\n{TRIM}")
    web = world.service("web", "c1-arenas", preload=[jemalloc_library()]).wait_for("phase idle")
    world.wait_trimmed(web)
    with exporter_of(world) as exporter:
        response, text = exporter.request()
        check_equal("type", response.getheader("Content-Type"), "text/plain; version=0.0.4; charset=utf-8")
        done = subprocess.run([tool("promtool"), "check", "metrics"], input=text, capture_output=True, text=True, timeout=WAIT)
        check_equal("promtool", (done.returncode, done.stdout, done.stderr), (0, "", ""))


# Clients that mean no good

def is_served(exporter):
    check_equal("memguard_up", one(exporter.metrics(), "memguard_up"), 1)


def receive_all(client):
    data = b""
    with contextlib.suppress(ConnectionError):
        while part := client.recv(65536):
            data += part
    return data


@test
def http_is_answered_as_it_should(world):
    world.run_daemon("")
    with exporter_of(world) as exporter:
        for method, path, status in (("GET", "/", 200), ("GET", "/metrics?x=1", 200), ("HEAD", "/metrics", 200),
                                     ("GET", "/nothing", 404), ("GET", "/metrics/..", 404), ("POST", "/metrics", 405),
                                     ("DELETE", "/metrics", 405), ("PUT", "/", 405)):
            response, text = exporter.request(method, path, body=b"x" * 100000 if method == "POST" else None)
            check_equal(f"{method} {path}", response.status, status)
            check_equal(f"{method} {path}: connection", response.getheader("Connection"), "close")
            if method == "HEAD":
                check(text == "" and int(response.getheader("Content-Length")) > 1000, "HEAD is no GET without a body")
            if status == 405:
                check_equal("Allow", response.getheader("Allow"), "GET, HEAD")
        is_served(exporter)


@test
def garbage_costs_its_own_connection(world):
    world.run_daemon("")
    with exporter_of(world) as exporter:
        for data in (b"\0" * 5000, b"\xff\n\n", b"GET\r\n\r\n", b"GET /metrics HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01",
                     b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
                     b"GET /metrics HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 20000 + b"\r\n",
                     b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\nx",
                     b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: " + b"application/openmetrics-text," * 300 + b"\r\n\r\n"):
            with socket.create_connection(exporter.address, timeout=WAIT) as client:
                with contextlib.suppress(OSError):  # it may have hung up already
                    client.sendall(data)
                    client.shutdown(socket.SHUT_WR)
                receive_all(client)
            is_served(exporter)


@test
def silent_clients_keep_nobody_out(world):
    """Twice as many as it serves at a time, each with half a request: the oldest are hung up on, a scraper gets through."""
    world.run_daemon("")
    with exporter_of(world) as exporter, contextlib.ExitStack() as stack:
        clients = []
        for number in range(2 * CLIENTS_MAX):
            client = stack.enter_context(socket.create_connection(exporter.address, timeout=WAIT))
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n" if number % 2 else b"G")
            clients.append(client)
        is_served(exporter)
        check_equal("what the oldest got", receive_all(clients[0]), b"")
        held = len(os.listdir(f"/proc/{exporter.process.pid}/fd"))
        check(held < CLIENTS_MAX + 20, f"{held} descriptors")


@test
def a_slow_client_is_hung_up_on(world):
    """A byte now and then is no way to stay: the connection has its time, however lively it is."""
    world.run_daemon("")
    with exporter_of(world) as exporter:
        with socket.create_connection(exporter.address, timeout=WAIT) as client:
            client.sendall(b"GET /metrics HTTP/1.1\r\n")

            def is_closed():
                try:
                    client.sendall(b"X: y\r\n")
                    client.settimeout(0.5)
                    return client.recv(1) == b""
                except TimeoutError:
                    return False
                except ConnectionError:
                    return True
            wait_until("the slow client's time is over", is_closed)
        is_served(exporter)


@test
def readers_that_do_not_read_keep_nobody_out(world):
    world.run_daemon("")
    for _ in range(20):
        world.service("many", "c1-arenas", *SMALL)
    world.wait_agents("many.process", 20)
    with exporter_of(world) as exporter, contextlib.ExitStack() as stack:
        for _ in range(2 * CLIENTS_MAX):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.settimeout(WAIT)
            client.connect(exporter.address)
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        is_served(exporter)
        intervals(8)
        is_served(exporter)


@test
def the_daemon_is_asked_once_a_second_at_most(world):
    world.run_daemon("")
    with exporter_of(world) as exporter:
        reads = {one(exporter.metrics(), "memguard_exporter_read_seconds") for _ in range(200)}
        seen = len(world.log_lines("bus client of uid"))
        check(len(reads) < 100 and seen < 100, f"{len(reads)} reads, {seen} connections for 200 scrapes")


@test
def it_says_why_it_cannot_start(world):
    def run(*arguments, **environment):
        done = subprocess.run([world.build.exporter, *arguments], capture_output=True, text=True, timeout=WAIT,
                              stdin=subprocess.DEVNULL, env={**os.environ, **environment})
        check_equal(f"{arguments}: lines on stderr", len(done.stderr.splitlines()), 1)
        return done.returncode, done.stderr
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for arguments, code, word in (((), 1, "memguard-exporter.socket"), (("--listen=nowhere",), 1, "nowhere"),
                                      (("--listen=127.0.0.1:99999",), 1, "99999"),
                                      (("--listen=127.0.0.1:%d" % taken.getsockname()[1],), 1, "in use"),
                                      (("--timeout=0",), 2, "--timeout"), (("--timeout=11s",), 2, "--timeout"),
                                      (("--max-units=-1",), 2, "--max-units"), (("--max-units=",), 2, "--max-units"),
                                      (("x",), 2, "x")):
            returncode, text = run(*arguments)
            check(returncode == code and word in text, f"{arguments}: {returncode}, {text!r}")
