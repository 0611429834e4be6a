# SPDX-License-Identifier: MIT
"""memguard against a blind malloc_trim(0) every 1, 10 and 60 seconds and against nothing, on S1 to S4, as ratios from one run.

Each load twice: at a rate that leaves the machine idle most of the time, as services have it, and as fast as it can, where what was given back
is needed again within a second. What is compared: RSS averaged over the load, RSS/live when it is idle, trims, the time spent in them and the longest, minor
faults, throughput and latency (from when an operation was due). Memory and trims are set against trimming every second, the rest against doing
nothing. On a machine that others use, operations for each second of the program's own CPU (trims included) say more than those for each second.
"""
import os
import re
import statistics
import sys
import time

from columns import print_columns
from harness import MIB, World

# Arguments, and operations a second.
LOADS = {
    "s1-lru-cache": (("--size=128M", "--drift=80000"), 4000),
    "s2-request-threads": ((), 40),
    "s3-sweep": (("--clustered", "--rounds=100000", "--pause=1000", "--size=128M"), 50000),
    "s4-large-blocks": ((), 20),
}
VARIANTS = {"nothing": "nothing", "1": "every 1 s", "10": "every 10 s", "60": "every 60 s", "memguard": "memguard"}
POLICY = "[load.process]\nTrimAbove=8M 4%\nMinGain=4M\nCooldownSec=10s\nMaxPause=100ms\n"
ENOUGH_IDLE = 40  # seconds after the load: a unit whose trims were taken back at once is trimmed again when it has slept for 30
AIM = "aim: mean RSS at most 1.05, trims at most 0.10, operations at least 0.99"
HEADER = ("LOAD", "TRIMMED BY", "MEAN RSS", "/1 s", "RSS/LIVE", "TRIMS", "/1 s", "IN TRIMS", "LONGEST", "FAULTS/1000", "/nothing",
          "OP/S", "/nothing", "P99", "OP/CPU-S", "/nothing")


class Watch:
    """RSS while the load runs, and each trim that memguard made: what the last one took is asked for before the next can come."""

    def __init__(self, world, service, managed):
        self.world, self.service, self.managed = world, service, managed
        self.samples, self.trims, self.took_usec, self.longest_usec = [], 0, 0, 0

    def look_at_trims(self):
        row = self.world.status("load.process")
        if row["trims"] > self.trims:
            self.trims = row["trims"]
            self.took_usec += row["last_trim"]["duration_usec"]
            self.longest_usec = max(self.longest_usec, row["last_trim"]["duration_usec"])

    def once(self, number):
        self.samples.append(self.service.rss_anon())
        if self.managed and number % 10 == 9:
            try:
                self.look_at_trims()
            except Exception:  # the unit is not known yet
                pass
        time.sleep(0.2)

    def until_idle(self):
        number = 0
        while "phase idle" not in self.service.output():
            self.once(number)
            number += 1
        mean, cpu_usec = statistics.mean(self.samples), cpu_of(self.service.pid)
        for number in range(ENOUGH_IDLE * 5):
            self.once(number)
        return mean, cpu_usec, self.service.rss_anon()


def cpu_of(pid):
    """User and system time of all its threads, in microseconds."""
    with open(f"/proc/{pid}/stat") as file:
        user, system = file.read().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) * 1_000_000 // os.sysconf("SC_CLK_TCK")


def pairs(line):
    return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", line)}


def run_load(build, name, variant, seconds, paced):
    world = World(build)
    try:
        options, rate = LOADS[name]
        arguments = [f"--seconds={seconds}", *options, *([f"--pace={rate}"] if paced else [])]
        managed = variant == "memguard"
        if managed:
            world.run_daemon(POLICY, IntervalSec="1s", LogLevel="info")
        elif variant != "nothing":
            arguments.append(f"--trim-every={int(variant) * 1000}")
        service = world.service("load", name, *arguments, agent=managed)
        watch = Watch(world, service, managed)
        mean, cpu_usec, final = watch.until_idle()
        found = pairs([line for line in service.output().splitlines() if line.startswith("summary")][0])
        operations = max(found["operations"], 1)
        found.update(mean=mean, final=final, faults=found["minor_faults"] * 1000 / operations,
                     speed=operations * 1e6 / found["duration_usec"], efficiency=operations * 1e6 / max(cpu_usec, 1))
        if managed:
            watch.look_at_trims()
            found.update(breaker=world.status("load.process")["breaker"], trims=watch.trims, trim_usec=watch.took_usec, trim_worst_usec=watch.longest_usec)
        return found
    finally:
        world.close()


def ratio(value, reference):
    return f"{value / reference:.2f}" if reference else "-"


def line_of(name, variant, found, nothing, every_second):
    by = VARIANTS[variant] + (", breaker open" if found.get("breaker") else "")
    return (name, by, f"{found['mean'] / MIB:.0f} MiB", ratio(found["mean"], every_second["mean"]),
            ratio(found["final"], found["live_bytes"]), str(found["trims"]), ratio(found["trims"], every_second["trims"]),
            f"{found['trim_usec'] / 1000:.1f} ms", f"{found['trim_worst_usec'] / 1000:.1f} ms",
            f"{found['faults']:.1f}", ratio(found["faults"], nothing["faults"]), f"{found['speed']:.0f}",
            ratio(found["speed"], nothing["speed"]), f"{found['p99_usec'] / 1000:.1f} ms", f"{found['efficiency']:.0f}", ratio(found["efficiency"], nothing["efficiency"]))


def compare(build, name, seconds, paced):
    """The lines of one load. A variant that would not trim once while the load runs is left out."""
    found = {}
    for variant in VARIANTS:
        if variant.isdigit() and int(variant) >= seconds:
            continue
        print(f"... {name}: {VARIANTS[variant]}", file=sys.stderr, flush=True)
        found[variant] = run_load(build, name, variant, seconds, paced)
    return [line_of(name, variant, result, found["nothing"], found["1"]) for variant, result in found.items()]


def bench(build, seconds):
    for paced in (True, False):
        lines = []
        for name in LOADS:
            lines += compare(build, name, seconds, paced)
        print(f"{seconds} s of load, {'at a fixed rate' if paced else 'as fast as it can'}:")
        print_columns([HEADER, *lines])
    print(AIM, flush=True)
