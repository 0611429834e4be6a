# SPDX-License-Identifier: MIT
"""What the agent does over its socket, in unmodified programs: C1, other allocators, requests good and bad."""
import glob
import os
import signal
import subprocess
import sys
import time

from fake_daemon import Daemon, Gone, encode, rss_anon

HOST = os.environ["MEMGUARD_TEST_HOST"]
PRELOAD = os.environ["MEMGUARD_TEST_PRELOAD"]
WORKLOADS = os.environ["MEMGUARD_TEST_WORKLOADS"]
TALKATIVE = os.environ["MEMGUARD_TEST_TALKATIVE"]
STAND_IN = os.environ["MEMGUARD_TEST_STAND_IN"]
UNEVEN_SPANS = os.environ["MEMGUARD_TEST_UNEVEN_SPANS"]
MUST_WORK = os.environ.get("MEMGUARD_MUST_WORK") == "1"
MIB = 1 << 20


class Service:
    """A program under the preloaded agent, with a daemon of its own."""

    def __init__(self, *command, preload="", **extra):
        self.daemon = Daemon()
        environment = {key: value for key, value in os.environ.items() if key not in ("MALLOC_PERTURB_", "MALLOC_CONF")}
        environment.update({"LD_PRELOAD": preload + PRELOAD, "MEMGUARD_SOCKET": self.daemon.path,
                            "MEMGUARD_DELAY": "200ms", **extra})
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
        self.peer = None

    def __enter__(self):
        self.peer = self.daemon.accept(20)
        assert self.peer, "no agent connected"
        assert self.peer.pid == self.process.pid, (self.peer.pid, self.process.pid)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()
        self.daemon.remove()

    def settle(self, at_least, seconds=60):
        """Waits until the burst is over: RssAnon above AT_LEAST and no longer moving."""
        before, deadline = 0, time.monotonic() + seconds
        while time.monotonic() < deadline:
            now = rss_anon(self.process.pid)
            if now >= at_least and now == before and self.is_idle():
                return now
            before = now
            time.sleep(0.5)
        raise AssertionError(f"RssAnon is {now}, expected a resting {at_least}")

    def is_idle(self):
        def ticks():
            with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as stat:
                return sum(map(int, stat.read().rpartition(")")[2].split()[11:13]))
        before = ticks()
        time.sleep(0.5)
        return ticks() == before


def library(name):
    found = glob.glob(f"/usr/lib/*-linux-gnu*/{name}")
    if not found:
        print(f"skip: {name} is not installed")
        assert not MUST_WORK, name
    return found[0] if found else None


def workload(name):
    path = os.path.join(WORKLOADS, name)
    if not os.path.exists(path):
        print(f"skip: {name} is not built")
        assert not MUST_WORK, name
        return None
    return path


def heap(message, allocator):
    for i in range(message["HEAPS"]):
        if message[f"HEAP{i}_ALLOCATOR"] == allocator:
            prefix = f"HEAP{i}_"
            return {key.removeprefix(prefix): value for key, value in message.items() if key.startswith(prefix)}
    raise AssertionError(f"no {allocator} in {message}")


def test_thread_arenas():
    with Service(workload("c1-arenas")) as service:
        before = service.settle(500 * MIB)
        stats = heap(service.peer.request("stats", FORCE=1), "glibc")
        assert stats["LIVE_BYTES"] < 4 * MIB and stats["HANDLES"] == 8, stats
        reply = service.peer.request("trim", ARENA_TOPS=1)
        after = rss_anon(service.process.pid)
        assert reply["RESULT"] == "done" and after < 20 * MIB, (before, after, reply)
        assert abs(reply["BEFORE_BYTES"] - before) < 4 * MIB and reply["AFTER_BYTES"] < 20 * MIB, reply
        assert reply["PAUSE_USEC"] <= reply["DURATION_USEC"], reply
        print(f"     {before >> 20} -> {after >> 20} MiB, {reply['DURATION_USEC']} us, pause {reply['PAUSE_USEC']} us")


def test_tops_matter():
    """Where blocks of some MiB come and go, malloc_trim() alone leaves the tops."""
    with Service(workload("s4-large-blocks"), "--seconds=4") as service:
        before = service.settle(60 * MIB)
        stats = heap(service.peer.request("stats", FORCE=1), "glibc")
        service.peer.request("trim", ARENA_TOPS=0)
        alone = rss_anon(service.process.pid)
        service.peer.request("trim", ARENA_TOPS=1)
        after = rss_anon(service.process.pid)
        assert after < stats["LIVE_BYTES"] * 1.35 + 8 * MIB and after <= alone + MIB, (before, alone, after, stats)
        print(f"     {before >> 20} -> {alone >> 20} without tops -> {after >> 20} MiB for {stats['LIVE_BYTES'] >> 20} live")


def test_tops_behind_free_pieces():
    """glibc prefers any free piece that is large enough to the top; here there are several."""
    with Service(workload("s2-request-threads"), "--size=512M", "--operations=10000", MALLOC_ARENA_MAX="2") as service:
        before = service.settle(60 * MIB)
        stats = heap(service.peer.request("stats", FORCE=1), "glibc")
        service.peer.request("trim", ARENA_TOPS=1)
        after = rss_anon(service.process.pid)
        assert after < stats["LIVE_BYTES"] * 1.03 + 2 * MIB, (before, after, stats)
        print(f"     {before >> 20} -> {after >> 20} MiB for {stats['LIVE_BYTES'] >> 20} live")


def test_jemalloc():
    path = library("libjemalloc.so.2")
    if not path:
        return
    with Service(workload("c1-arenas"), preload=path + ":") as service:
        before = service.settle(300 * MIB)
        hello = heap(service.peer.hello, "jemalloc")
        assert hello["SERVES_MALLOC"] == 1 and "background_thread:false" in hello["OPTIONS"], hello
        assert heap(service.peer.hello, "glibc")["SERVES_MALLOC"] == 0, service.peer.hello
        stats = heap(service.peer.request("stats", FORCE=1), "jemalloc")
        assert stats["FREEABLE_BYTES"] > 200 * MIB, stats
        service.peer.request("trim")
        after = rss_anon(service.process.pid)
        assert after < 20 * MIB, (before, after)
        tuned = service.peer.request("tune", BACKGROUND_THREAD=1)
        assert tuned["RESULT"] == "done" and tuned["BACKGROUND_THREAD"] == 1, tuned
        assert "background_thread:true" in heap(tuned, "jemalloc")["OPTIONS"], tuned
        assert service.peer.request("tune", BACKGROUND_THREAD=0)["BACKGROUND_THREAD"] == 0
        print(f"     {before >> 20} -> {after >> 20} MiB")


def test_two_heaps():
    path = workload("c8-two-heaps")
    if not path:
        return
    with Service(path) as service:
        before = service.settle(300 * MIB)
        jemalloc = heap(service.peer.hello, "jemalloc")
        assert jemalloc["PREFIX"] == "_rjem_" and "not in effect" in jemalloc["NOTICE"], jemalloc
        assert heap(service.peer.hello, "glibc")["SERVES_MALLOC"] == 1
        service.peer.request("trim", ARENA_TOPS=1)
        after = rss_anon(service.process.pid)
        assert after < 20 * MIB, (before, after)
        print(f"     {before >> 20} -> {after >> 20} MiB")


def test_tcmalloc():
    path = library("libtcmalloc_minimal.so.4")
    if not path:
        return
    with Service(workload("c1-arenas"), preload=path + ":") as service:
        before = service.settle(450 * MIB)
        stats = heap(service.peer.request("stats", FORCE=1), "tcmalloc")
        service.peer.request("trim")
        after = rss_anon(service.process.pid)
        assert after < 60 * MIB, (before, after)
        assert abs(before - after - stats["FREEABLE_BYTES"]) < 16 * MIB, (before, after, stats)
        print(f"     {before >> 20} -> {after >> 20} MiB")


def test_tcmalloc_credit():
    """A call of tcmalloc's releases whole spans; what it released too much makes the next calls do nothing, also those of a later trim."""
    path = library("libtcmalloc_minimal.so.4")
    if not path:
        return
    for trims in (1, 2):
        with Service(UNEVEN_SPANS, preload=path + ":", MEMGUARD_THREAD="always", TCMALLOC_RELEASE_RATE="0") as service:
            assert service.process.stdout.readline() == b"one large span is free\n"
            if trims == 2:
                service.peer.request("trim")
                after = rss_anon(service.process.pid)
                assert 90 * MIB < after < 130 * MIB, after
            service.process.send_signal(signal.SIGUSR1)
            assert service.process.stdout.readline() == b"all are free\n"
            before = rss_anon(service.process.pid)
            assert before > (90 if trims == 2 else 450) * MIB, before
            reply = service.peer.request("trim")
            after = rss_anon(service.process.pid)
            assert reply["RESULT"] == "done" and after < 16 * MIB, (trims, before, after, reply)
            stats = heap(service.peer.request("stats", FORCE=1), "tcmalloc")
            assert stats["FREEABLE_BYTES"] == 0, stats
            print(f"     {before >> 20} -> {after >> 20} MiB")


def test_mimalloc():
    path = library("libmimalloc.so.2")
    if not path:
        return
    with Service(workload("c1-arenas"), preload=path + ":") as service:
        before = service.settle(450 * MIB)
        assert "cannot trim from here" in heap(service.peer.hello, "mimalloc")["NOTICE"], service.peer.hello
        assert "trim" not in service.peer.hello["CAN"].split(","), service.peer.hello
        reply = service.peer.request("trim")
        assert reply["RESULT"] == "unsupported" and "cannot trim from here" in reply["REASON"], reply
        assert rss_anon(service.process.pid) > before - 16 * MIB


def test_mimalloc_3():
    """Given back from the agent's thread, which has never allocated anything."""
    path = os.environ.get("MEMGUARD_TEST_MIMALLOC_3")
    if not path:
        print("skip: no mimalloc 3 (tests/mimalloc3 fetches one, where the mirror has the testing release)")
        return
    for command, burst, at_most in ((("c1-arenas",), 450, 60), (("s4-large-blocks", "--seconds=4"), 100, 140)):
        with Service(workload(command[0]), *command[1:], preload=path + ":") as service:
            before = service.settle(burst * MIB)
            hello = heap(service.peer.hello, "mimalloc")
            assert hello["SERVES_MALLOC"] == 1 and hello["CAN"] == "trim" and hello["VERSION"].startswith("3."), hello
            reply = service.peer.request("trim")
            after = rss_anon(service.process.pid)
            assert reply["RESULT"] == "done" and after < at_most * MIB and after < before / 2, (before, after, reply)
            print(f"     {before >> 20} -> {after >> 20} MiB, pause {reply['PAUSE_USEC']} us")


def test_mimalloc_versions():
    """Which ones are asked to collect, by the number that they tell."""
    for number, version, reaches in ((0, "0.0.0", False), (187, "1.8.7", False), (209, "2.0.9", False), (224, "2.2.4", False),
                                     (20300, "2.3.0", False), (300, "3.0.0", True), (314, "3.1.4", True), (30403, "3.4.3", True),
                                     (-1, "0.0.0", False)):
        with Service(STAND_IN, str(number), MEMGUARD_DELAY="0") as service:
            hello = heap(service.peer.hello, "mimalloc")
            assert hello["VERSION"] == version and hello["SERVES_MALLOC"] == 0, hello
            assert (hello.get("CAN") == "trim") == reaches and ("cannot trim" in hello.get("NOTICE", "")) != reaches, hello
            service.peer.request("trim")
            collected = service.process.stdout.readline() if reaches else b""
            service.process.kill()
            assert collected + service.process.stdout.read() == (b"collected\n" if reaches else b""), number


def test_requests():
    with Service(HOST, "idle", MEMGUARD_DELAY="0") as service:
        peer = service.peer
        assert peer.hello["PROTOCOL"] == 1 and peer.hello["MODE"] == "preload", peer.hello
        assert peer.request("ping") == {"VERB": "pong", "ID": 1}
        assert peer.request("levitate")["VERB"] == "unsupported"
        assert peer.request("hello", PROTOCOL=1, HEAPS=0, MODE="x")["VERB"] == "unsupported"
        peer.send("unsupported", ID=9)
        assert peer.request("trim", DEADLINE_USEC=0)["RESULT"] in ("partial", "done")
        assert peer.request("tune", BACKGROUND_THREAD=1)["RESULT"] == "unsupported"
        assert peer.request("stats", FORCE=1)["RESULT"] == "done"
        refused = peer.request("stats", LIMIT_USEC=0)
        assert refused["RESULT"] == "refused" and refused["REASON"].startswith("duty"), refused
        assert refused["HEAPS"] == 0 and "STATS_COST_USEC" in refused, refused


def test_bad_daemon():
    """Whatever comes, the agent closes, and comes back later."""
    bad = [b"", b"VERB=stats", b"VERB=stats\n", b"\n", b"ID=1\nVERB=stats\n", b"VERB=stats\nID=x\n", b"VERB=stats\nID=1\nID=1\n",
           b"VERB=trim\nID=18446744073709551616\n", b"\xff\xfe\n", b"A" * 5000, b"VERB=ping\nID=1\n" + b"X=1\n" * 2000]
    with Service(HOST, "idle", MEMGUARD_DELAY="0") as service:
        for datagram in bad[1:3]:
            service.peer.connection.send(datagram)
            try:
                reply = service.peer.receive(5)
                raise AssertionError(f"{datagram} was answered {reply}")
            except Gone:
                pass
            if datagram == bad[2]:
                break
            service.peer = service.daemon.accept(10)
            assert service.peer, f"no agent came back after {datagram}"
    for datagram in bad[3:]:
        with Service(HOST, "idle", MEMGUARD_DELAY="0") as service:
            service.peer.connection.send(datagram)
            try:
                reply = service.peer.receive(5)
                raise AssertionError(f"{datagram} was answered {reply}")
            except Gone:
                pass


def test_texts_too_long():
    """What does not fit a message is left out, and the agent serves; it does not come back again and again."""
    with Service(TALKATIVE, MEMGUARD_DELAY="0") as service:
        for message in service.peer.hello, service.peer.request("tune", BACKGROUND_THREAD=1):
            talkative = heap(message, "jemalloc")
            assert "too long" in talkative["NOTICE"] and "VERSION" not in talkative and "OPTIONS" not in talkative, message
            assert talkative["CAN"] == "trim,tune", message
        assert service.peer.request("stats", FORCE=1)["RESULT"] == "done"
        assert service.peer.request("ping")["VERB"] == "pong"
        assert service.daemon.accept(1.5) is None, "the agent came a second time"


def test_descriptor_sent_along():
    import array
    import socket
    with Service(HOST, "idle", MEMGUARD_DELAY="0") as service:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))]
        service.peer.connection.sendmsg([encode("ping", ID=7)], rights)
        assert service.peer.receive()["ID"] == 7
        tasks = f"/proc/{service.process.pid}/task"
        agent = [task for task in os.listdir(tasks) if open(f"{tasks}/{task}/comm", encoding="ascii").read() == "memguard\n"]
        assert len(agent) == 1, agent
        own = [os.readlink(f"{tasks}/{agent[0]}/fd/{fd}") for fd in os.listdir(f"{tasks}/{agent[0]}/fd")]
        main = os.listdir(f"{tasks}/{service.process.pid}/fd")
        assert sorted(main, key=int) == ["0", "1", "2"], main
        assert len(own) == 7 and not any("/dev/" in target for target in own), own


def test_daemon_restart():
    with Service(HOST, "idle", MEMGUARD_DELAY="0") as service:
        stats = service.peer.request("stats", FORCE=1)
        service.daemon.close()
        service.peer.connection.close()
        time.sleep(0.1)
        service.daemon.listen()
        again = service.daemon.accept(10)
        assert again and again.pid == service.process.pid, "the agent did not come back"
        for key in "STATS_COST_USEC", "STATS_COST_BYTES", "HEAP0_FREE_CHUNKS":
            assert again.hello[key] == stats[key], (key, again.hello, stats)


def test_children_switch():
    """MEMGUARD_CHILDREN=no: the program itself has an agent, what it starts has not."""
    daemon = Daemon()
    environment = {**os.environ, "LD_PRELOAD": PRELOAD, "MEMGUARD_SOCKET": daemon.path, "MEMGUARD_DELAY": "150ms",
                   "MEMGUARD_THREAD": "always", "MEMGUARD_CHILDREN": "no"}
    result = subprocess.run(["/bin/sh", "-c", "sleep 0.8; env | grep -c LD_PRELOAD; exit 0"], env=environment, check=True,
                            capture_output=True, text=True)
    assert result.stdout.strip() == "0" and result.stderr == "", result
    assert daemon.accept(1) and daemon.accept(1) is None
    daemon.remove()


def test_switched_off():
    for extra in {"MEMGUARD_DISABLE": "1"}, {"MEMGUARD_THREAD": "never"}, {"MEMGUARD_SOCKET": "/" + "x" * 200}:
        daemon = Daemon()
        environment = {**os.environ, "LD_PRELOAD": PRELOAD, "MEMGUARD_SOCKET": daemon.path, "MEMGUARD_DELAY": "0", **extra}
        result = subprocess.run([HOST, "errno"], env=environment, check=True, capture_output=True, text=True)
        assert result.stdout == "4711 4712\n" and result.stderr == "", result
        assert daemon.accept(0) is None, extra
        daemon.remove()


def main():
    wanted = sys.argv[1:]
    for name, test in list(globals().items()):
        if name.startswith("test_") and (not wanted or name in wanted):
            test()
            print(f"ok   {name}", flush=True)


main()
