# SPDX-License-Identifier: MIT
"""Real programs from Debian's packages under the preloaded agent, each with a load that leaves freed memory behind.

Each runs twice, without and with the agent: starts, passes its own health check, serves its load, passes the check again, is ended by
SIGTERM. What it said and its exit code must be the same. With the agent it is trimmed once in between, by hand, as `memguardctl trim`
does. Nothing is installed and no service of the host is touched: a program that is not there is left out, unless --root= names a
directory where packages were unpacked (apt-get download, dpkg -x).
"""
import collections
import contextlib
import glob
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

from harness import MIB, Failure, World, rss_anon, wait_until

NOBODY = 65534
POLICY = "[Default]\nMaxPause=2s\n"
READY_SECONDS = 45  # Java compiles first
ANSWER_SECONDS = 60
TERM_WAIT = 20
REST_SECONDS = 5

PYTHON = r"""
import multiprocessing, os, signal, sys, threading, time
kept = []
def churn(n):
    blocks = [bytearray(3000 + i % 5000) for i in range(n * 8)]
    objects = [{i: str(i)} for i in range(n * 20)]
    kept.extend(blocks[::60])
    return len(blocks) + len(objects)
def end(*_):
    os._exit(3)
if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    pool = multiprocessing.Pool(2)
    threads = [threading.Thread(target=churn, args=(400,)) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    print("health", sum(pool.map(churn, [300] * 8)), flush=True)
    pool.close(); pool.join()
    signal.signal(signal.SIGTERM, end)
    print("ready", flush=True)
    while True:
        time.sleep(1)
"""

PERL = r"""
$| = 1; $SIG{TERM} = sub { exit 5 };
sub churn { my %h; $h{$_} = "x" x 300 for 1 .. 200000; return scalar keys %h }
print "health ", churn(), "\nready\n";
select undef, undef, undef, 1 while 1;
"""

NODE = r"""
process.on('SIGTERM', () => process.exit(6));
let blocks = [];
for (let i = 0; i < 3000; i++) blocks.push(Buffer.alloc(60000 + i, 1));
let objects = []; for (let i = 0; i < 300000; i++) objects.push({ i, text: 'text ' + i });
const hash = require('zlib').gzipSync(JSON.stringify(objects)).length > 0;
console.log('health', blocks.length, objects.length, hash);
blocks = objects = null;
if (global.gc) global.gc();
console.log('ready');
setInterval(() => {}, 1000);
"""

JAVA = r"""
import java.util.*; import java.nio.*;
public class Load {
    static long churn() { List<byte[]> blocks = new ArrayList<>(); for (int i = 0; i < 2000; i++) blocks.add(new byte[50000]); return blocks.size(); }
    public static void main(String[] a) throws Exception {
        long[] sum = new long[8]; Thread[] threads = new Thread[8];
        for (int i = 0; i < 8; i++) { int n = i; threads[i] = new Thread(() -> {
            java.util.zip.Deflater[] native_ = new java.util.zip.Deflater[60];
            for (int j = 0; j < native_.length; j++) { native_[j] = new java.util.zip.Deflater(); native_[j].setInput(new byte[100000]); native_[j].deflate(new byte[1000]); }
            sum[n] = churn(); for (var d : native_) d.end(); }); threads[i].start(); }
        for (Thread t : threads) t.join();
        System.gc();
        System.out.println("health " + Arrays.stream(sum).sum()); System.out.println("ready");
        Thread.sleep(1000000);
    }
}
"""


class Missing(Exception):
    pass


def find(root, *names):
    """The first of NAMES (patterns) that there is: below ROOT, else on this host."""
    for base in ([root] if root else []) + [""]:
        for name in names:
            for path in sorted(glob.glob(base + name)):
                if os.access(path, os.X_OK):
                    return path
    raise Missing(f"{names[0]} is not installed")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def get(port, path="/", times=1):
    """The status and length of the answer to the last of so many requests on one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_SECONDS)
    for _ in range(times):
        connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
        answer = connection.getresponse()
        length = len(answer.read())
    connection.close()
    return answer.status, length


def get_many(port, path, clients, times):
    """A client that a slow machine keeps waiting gives up: it was load enough."""
    def client():
        with contextlib.suppress(OSError, http.client.HTTPException):
            get(port, path, times)
    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Program:
    """What runs in DIRECTORY; .output is a file that all it says goes to."""
    thread = "follow"
    user = None
    reason = ""  # why little or nothing comes back, where that is known

    def __init__(self, root, directory):
        self.root, self.directory, self.environment = root, directory, {}
        self.clients = []

    def write(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def said(self):
        with open(os.path.join(self.directory, "output"), errors="replace") as file:
            return file.read()

    def load(self):
        wait_until("the program is ready", lambda: "ready\n" in self.said(), READY_SECONDS)

    def health(self):
        return self.said()


class Python3(Program):
    def command(self):
        return [find(self.root, "/usr/bin/python3"), "-c", PYTHON]


class Perl(Program):
    thread = "always"

    def command(self):
        return [find(self.root, "/usr/bin/perl"), "-e", PERL]


class Node(Program):
    reason = "its objects live on V8's own heap"

    def command(self):
        return [find(self.root, "/usr/bin/node", "/usr/bin/nodejs"), "--expose-gc", "-e", NODE]


class Java(Program):
    reason = "the Java heap is the JVM's; only its own C++ side uses malloc"

    def command(self):
        return [find(self.root, "/usr/bin/java"), "-XX:+UseSerialGC", "-Xmx512m", self.write("Load.java", JAVA)]


class Redis(Program):
    def command(self):
        self.port = free_port()
        self.cli = find(self.root, "/usr/bin/redis-cli")
        return [find(self.root, "/usr/bin/redis-server", "/usr/bin/redis-check-rdb"), "--port", str(self.port), "--save", "",
                "--appendonly", "no", "--daemonize", "no", "--logfile", "/dev/null", "--jemalloc-bg-thread", "no",
                "--lazyfree-lazy-user-flush", "no"]

    def ask(self, *words):
        done = subprocess.run([self.cli, "-p", str(self.port), *words], capture_output=True, text=True, timeout=ANSWER_SECONDS, check=False,
                              env={**os.environ, **self.environment})
        return done.stdout.strip()

    def load(self):
        wait_until("redis answers", lambda: self.ask("PING") == "PONG", READY_SECONDS)
        self.ask("EVAL", "for i = 1, 150000 do redis.call('SET', 'k' .. i, string.rep('x', 700)) end return 1", "0")
        self.loaded = self.ask("DBSIZE")
        self.ask("EVAL", "for i = 1, 150000 do if i % 50 ~= 0 then redis.call('DEL', 'k' .. i) end end return 1", "0")

    def health(self):
        return self.ask("PING") + self.loaded + " " + self.ask("DBSIZE") + str(len(self.ask("GET", "k50")))


class Nginx(Program):
    thread = "always"
    reason = "its pools go back to glibc as each request ends, and glibc gives the top back itself"

    def command(self):
        self.port = free_port()
        os.makedirs(f"{self.directory}/html")
        with open(f"{self.directory}/html/large", "w", encoding="ascii") as file:
            file.write("".join(f"line {i}\n" for i in range(150000)))
        os.chmod(self.directory, 0o755)
        self.write("nginx.conf", f"""
            daemon off; worker_processes 2; pid {self.directory}/pid; error_log /dev/null;
            events {{ worker_connections 512; }}
            http {{ access_log off; gzip on; gzip_types *; gzip_buffers 64 32k; output_buffers 4 1m; sendfile off;
                client_body_temp_path {self.directory}/b; proxy_temp_path {self.directory}/p; fastcgi_temp_path {self.directory}/f;
                uwsgi_temp_path {self.directory}/u; scgi_temp_path {self.directory}/s;
                server {{ listen 127.0.0.1:{self.port}; root {self.directory}/html; }} }}""")
        return [find(self.root, "/usr/sbin/nginx"), "-p", self.directory, "-c", f"{self.directory}/nginx.conf", "-e", "/dev/null"]

    def load(self):
        wait_until("nginx answers", lambda: get(self.port, "/large")[0] == 200, READY_SECONDS)
        get_many(self.port, "/large", 20, 2)

    def health(self):
        return str(get(self.port, "/large")) + str(get(self.port, "/none")[0])


class Haproxy(Program):
    reason = "it keeps its buffers in pools of its own"

    def command(self):
        self.port = free_port()
        return [find(self.root, "/usr/sbin/haproxy"), "-db", "-f", self.write("haproxy.cfg", f"""
            global
                nbthread 2
                maxconn 2000
            defaults
                mode http
                timeout client 20s
                timeout server 20s
                timeout connect 5s
            frontend all
                bind 127.0.0.1:{self.port}
                http-request return status 200 content-type text/plain string "hello"
""")]

    def load(self):
        wait_until("haproxy answers", lambda: get(self.port)[0] == 200, READY_SECONDS)
        get_many(self.port, "/", 200, 10)

    def health(self):
        return str(get(self.port))


class Postgres(Program):
    thread = "always"
    user = NOBODY

    def command(self):
        binaries = os.path.dirname(find(self.root, "/usr/lib/postgresql/*/bin/postgres"))
        self.psql = os.path.join(binaries, "psql")
        data, self.port = f"{self.directory}/data", free_port()
        os.chown(self.directory, NOBODY, NOBODY)
        subprocess.run([f"{binaries}/initdb", "-D", data, "-U", "bench", "-A", "trust", "-N", "--no-locale"], user=self.user, group=self.user,
                       check=True, capture_output=True, cwd=self.directory)
        return [f"{binaries}/postgres", "-D", data, "-p", str(self.port), "-k", self.directory, "-c", "work_mem=256MB", "-c", "fsync=off",
                "-c", "max_parallel_workers_per_gather=0", "-c", "shared_buffers=16MB", "-c", "listen_addresses="]

    def connect(self):
        return [self.psql, "-h", self.directory, "-p", str(self.port), "-U", "bench", "-At", "postgres"]

    def ask(self, text):
        return subprocess.run([*self.connect(), "-c", text], capture_output=True, text=True, timeout=ANSWER_SECONDS, check=False).stdout.strip()

    def load(self):
        """A pool of connections that stay: what each backend has sorted and hashed, it has freed."""
        wait_until("postgres answers", lambda: self.ask("select 1") == "1", READY_SECONDS)
        query = ("select count(*) from (select md5(i::text) m from generate_series(1, 150000) i order by m) s;\n"
                 "select count(*) from (select i % 100000 k, array_agg(md5(i::text)) from generate_series(1, 150000) i group by 1) s;\n")
        for _ in range(3):
            client = subprocess.Popen(self.connect(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.clients.append(client)
            client.stdin.write(query)
            client.stdin.flush()
        self.answers = [client.stdout.readline() + client.stdout.readline() for client in self.clients]

    def health(self):
        return self.ask("select version()") + "".join(self.answers)


PROGRAMS = {"python3": Python3, "redis-server": Redis, "java": Java, "nginx": Nginx, "node": Node, "perl": Perl, "postgres": Postgres,
            "haproxy": Haproxy}
Outcome = collections.namedtuple("Outcome", "code said")


def tree(pid):
    pids = [pid]
    for parent in pids:
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{task}/children", encoding="ascii") as file:
                    pids += map(int, file.read().split())
    return pids


def anon_of(pid):
    total = 0
    for one in tree(pid):
        with contextlib.suppress(OSError):
            total += rss_anon(one)
    return total


def run_one(program, environment, between):
    """Starts PROGRAM, loads it, calls BETWEEN with its pid, and ends it."""
    command = program.command()
    environment = {key: value for key, value in {**os.environ, **program.environment, **environment}.items() if key != "MALLOC_PERTURB_"}
    with open(f"{program.directory}/output", "wb") as output:
        process = subprocess.Popen(command, env=environment, cwd=program.directory, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT,
                                   user=program.user, group=program.user)
    try:
        program.load()
        said = program.health()
        between(process.pid)
        said += program.health()
        for client in program.clients:
            client.communicate(timeout=20)
        process.terminate()
        return Outcome(process.wait(TERM_WAIT), said)
    except Failure as error:
        raise Failure(f"{error}; {program.said()[-300:]}") from None
    finally:
        for pid in reversed(tree(process.pid) if process.poll() is None else []):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        process.wait()


def rows_of(world, pids):
    return [row for row in world.json("list-processes") if row["pid"] in pids]


def loaded_rows(world, pids):
    return [row for row in rows_of(world, pids) if row["agent"] == "loaded"]


def sum_live(rows):
    """Unknown while the duty limit keeps a process from being measured again: what it said during the load says nothing of now."""
    if any(row["live_bytes"] is None or row["stats_age_usec"] > REST_SECONDS * 1e6 for row in rows):
        return "-"
    return f"{sum(row['live_bytes'] for row in rows) / MIB:.0f}M"


def describe_allocators(rows):
    found = {}
    for row in rows:
        for heap in row["allocators"] or []:
            name = f"{heap['name']} {heap['version'].split('-')[0]}" + ("" if heap["serves_malloc"] or heap["name"] != "glibc" else " beside")
            found[name] = True
    return ", ".join(found) or "none"


def count_threads(pids):
    return sum(len(os.listdir(f"/proc/{pid}/task")) for pid in pids if os.path.exists(f"/proc/{pid}/task"))


class Look:
    """What memguard sees of a program and brings: called between its load and its end. ANON: the bytes of a process tree."""

    def __init__(self, world, anon=anon_of):
        self.world, self.anon, self.cells, self.results = world, anon, None, set()

    def trim(self, unit):
        """The reply, whatever it was."""
        asked = self.world.ctl("trim", unit, "--json=short")
        reply = json.loads(asked.stdout) if asked.stdout else {"result": asked.stderr.strip() or "no answer", "pause_usec": 0}
        self.results.add(reply["result"] if reply.get("processes", 1) else "nothing was retained")
        return reply

    def __call__(self, pid):
        pids = tree(pid)
        wait_until("an agent is there", lambda: loaded_rows(self.world, pids), READY_SECONDS)
        time.sleep(REST_SECONDS)
        rows = loaded_rows(self.world, pids)
        before = self.anon(pid)
        done = [self.trim(unit) for unit in sorted({row["unit"] for row in rows})]
        after = self.anon(pid)
        self.gained = before - after
        self.cells = (describe_allocators(rows), f"{len(rows)}/{len(pids)}", str(count_threads(pids)), f"{before / MIB:.0f}M", sum_live(rows),
                      f"{after / MIB:.0f}M", f"{self.gained / MIB:.0f}M", f"{max(row['pause_usec'] or 0 for row in done) / 1000:.1f}ms")


def why_little(program, look):
    refusals = ", ".join(sorted(look.results - {"done"}))
    if look.gained >= 8 * MIB:
        return refusals
    return "; ".join(text for text in (refusals, program.reason) if text)


def cells_of(name, program, look, plain, with_agent):
    """Whether it ran the same, and its line."""
    is_same = plain == with_agent
    verdict = f"same ({plain.code})" if is_same else f"DIFFERS: {plain} and {with_agent}"
    return is_same, (name, *look.cells, verdict, why_little(program, look))


def bench_one(build, name, root):
    with tempfile.TemporaryDirectory(prefix="memguard-bench-") as directory:
        def fresh(number):
            path = os.path.join(directory, str(number))
            os.makedirs(path)
            os.chmod(directory, 0o755)
            program = PROGRAMS[name](root, path)
            if root:
                program.environment["LD_LIBRARY_PATH"] = ":".join(glob.glob(root + "/usr/lib/*-linux-gnu"))
            return program
        plain = run_one(fresh(0), {}, lambda pid: None)
        world = World(build)
        try:
            world.run_daemon(POLICY, IntervalSec="500ms", LogLevel="warning")
            program, look = fresh(1), Look(world)
            with_agent = run_one(program, {"LD_PRELOAD": build.preload, "MEMGUARD_SOCKET": world.agent_socket, "MEMGUARD_DELAY": "100ms",
                                           "MEMGUARD_THREAD": program.thread}, look)
        finally:
            world.close()
    return cells_of(name, program, look, plain, with_agent)


def bench(names, measure):
    """A table of what MEASURE(name) says of each: whether it ran the same, and its cells. Returns whether all did."""
    lines, failed = [("PROGRAM", "ALLOCATORS", "AGENTS", "THREADS", "ANON", "LIVE", "AFTER", "GAINED", "PAUSE", "EXIT, ANSWERS", "WHY LITTLE")], False
    for name in names or PROGRAMS:
        started = time.monotonic()
        try:
            is_same, cells = measure(name)
            failed |= not is_same
        except Missing as reason:
            cells = (name, f"left out: {reason}")
        except Exception as error:  # any: the others are worth having
            failed, cells = True, (name, f"failed: {error!r}")
        lines.append(cells + ("",) * (len(lines[0]) - len(cells)))
        print(f"... {name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    widths = [max(len(line[i]) for line in lines if line[2]) for i in range(len(lines[0]))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip(), flush=True)
    return not failed
