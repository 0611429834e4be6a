# SPDX-License-Identifier: MIT
"""Whether there is a cheaper way than mallinfo2() to know what is live in glibc's heap: what each costs, and how far it is off.

A program (tests/bench/live.c) builds heaps of which it knows the live bytes, frees every second block or run of blocks, and asks in all ways that
break no lock: mallinfo2(), malloc_info(), mallinfo2() in a forked copy, the kernel's numbers of resident memory, and an object before malloc and
free that counts (live_count.c) or samples (live_sample.c). What such an object costs all the time is measured with malloc-load, next to one that
only passes calls on (live_hop.c). malloc_stats() is left out: it is mallinfo2's walk, and prints to the program's stderr. So is reading the arenas' chunk headers
without their locks: a chunk that is split or merged at that moment sends the reader to where no header is, and a block in a
thread's cache looks like a live one. All times are CPU time. Errors are against usable bytes; each block has 8 more of glibc's.
"""
import os
import re
import statistics
import subprocess
import sys

from columns import print_columns

# Free chunks, arenas, blocks of each run that is freed or kept, order of the frees.
HEAPS = ((1000, 1, 1, "random"), (1000, 16, 1, "random"), (100_000, 1, 1, "ordered"), (100_000, 1, 1, "random"), (100_000, 4, 1, "random"),
         (100_000, 16, 1, "random"), (10_000, 4, 64, "random"), (1_000_000, 1, 1, "random"), (1_000_000, 16, 1, "random"))
WAYS = ("mallinfo2", "malloc_info", "snapshot", "smaps", "mincore", "statm", "counters")
LOADS = ((1, 0), (4, 0), (1, 128), (4, 128))
OBJECTS = {"none": "", "passing on": "live-hop.so", "sampling": "live-sample.so", "counting": "live-count.so"}


def run(build, program, *arguments, preload=""):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD"))}
    if preload:
        environment["LD_PRELOAD"] = f"{build.directory}/tests/bench/{preload}"
    done = subprocess.run([f"{build.directory}/tests/bench/{program}", *map(str, arguments)], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise RuntimeError(f"{program}: exit code {done.returncode}: {done.stderr.strip()}")
    return [dict(re.findall(r"(\w+)=(\w+)", line)) for line in done.stdout.splitlines()]


def span(nsec):
    if nsec < 1000:
        return f"{nsec}ns"
    return f"{nsec / 1000:.3g}us" if nsec < 999_500 else f"{nsec / 1e6:.3g}ms" if nsec < 9_995_000 else f"{nsec / 1e6:.0f}ms"


def error(measured, truth):
    return f"{100 * (int(measured) / int(truth) - 1):+.1f}%"


def print_table(title, lines):
    print(f"{title}\n")
    print_columns(lines)
    print(flush=True)


def ask_samples(build, heap):
    """How far samples are off; in a run of their own, since only one object can stand before malloc."""
    found = run(build, "live", *heap, preload="live-sample.so")
    freed = next(line for line in found if line.get("moment") == "freed")
    return error(next(line for line in found if line.get("way") == "counters")["bytes"], freed["truth"])


def describe(chunks, arenas, run_length, order):
    runs = f", runs of {run_length}" if run_length > 1 else ""
    return f"{chunks}, {arenas} arena{'s' * (arenas > 1)}{runs}, {order}"


def bench_heaps(build, quick):
    costs = [("FREE CHUNKS", *(way.upper() for way in WAYS), "A CHUNK", "PAGE WRITTEN AFTER A SNAPSHOT (BEFORE)")]
    errors = [("FREE CHUNKS", "LIVE", "SAMPLES", "MALLINFO2", "SNAPSHOT", "COUNTERS", "SMAPS", "MINCORE", "STATM", "BEFORE THE FREES", "AFTER A TRIM")]
    for heap in HEAPS:
        if quick and heap[0] > 100_000:
            continue
        name = describe(*heap)
        print(f"... live bytes of {name}", file=sys.stderr, flush=True)
        found = run(build, "live", *heap, preload="live-count.so")
        ways = {line["way"]: line for line in found if "way" in line}
        nsec = {name: int(line["nsec"]) for name, line in ways.items()}
        touch = {line["touch"]: span(int(line["nsec"])) for line in found if "touch" in line}
        full, freed, trimmed = (line for line in found if "moment" in line)
        costs.append((name, *(span(nsec[way]) for way in WAYS), span(nsec["mallinfo2"] // int(freed["chunks"])),
                      f"{touch['after']} ({touch['before']})"))
        samples = ask_samples(build, heap) if 1000 < heap[0] <= 100_000 else ""
        errors.append((name, f"{int(freed['truth']) / (1 << 20):.1f}M", samples,
                       *(error(ways[way]["bytes"], freed["truth"]) for way in ("mallinfo2", "snapshot", "counters", "smaps", "mincore")),
                       *(error(moment["statm"], moment["truth"]) for moment in (freed, full, trimmed))))
    print_table("What a look costs (CPU)", costs)
    print_table("How far it is off", errors)


def rounds_of(build, quick, threads, most_bytes):
    """Picoseconds of CPU by object, round by round; each round begins with another object, and the first warms up."""
    operations = 1_000_000 if most_bytes else 400_000
    took = {name: [] for name in OBJECTS}
    for turn in range(5 if quick else 13):
        for index in range(len(OBJECTS)):
            name = list(OBJECTS)[(index + turn) % len(OBJECTS)]
            found = run(build, "malloc-load", threads, operations // threads, 0, most_bytes, preload=OBJECTS[name])
            took[name].append(int(found[0]["cpu_picosec_per_operation"]))
    return {name: values[1:] for name, values in took.items()}


def bench_wrappers(build, quick):
    """The best of all rounds is what a busy machine disturbs least; ratios within one round say how much it did."""
    lines = [("LOAD", "OBJECT", "BEST", "RATIO", "RATIO IN A ROUND (QUARTILES)")]
    for threads, most_bytes in LOADS:
        load = f"{'16 to 128 bytes' if most_bytes else 'mixed sizes'}, {threads} thread{'s' * (threads > 1)}"
        print(f"... malloc and free wrapped: {load}", file=sys.stderr, flush=True)
        took = rounds_of(build, quick, threads, most_bytes)
        bare = took.pop("none")
        lines.append((load, "none", f"{min(bare) / 1000:.1f}ns", "", ""))
        for name, values in took.items():
            low, middle, high = statistics.quantiles([a / b for a, b in zip(values, bare)], n=4)
            lines.append((load, name, f"{min(values) / 1000:.1f}ns", f"{min(values) / min(bare):.3f}", f"{middle:.3f} ({low:.3f} to {high:.3f})"))
    print_table("What an object before malloc and free costs all the time (CPU of a free, a malloc and the load's own work)", lines)


def bench(build, quick):
    bench_heaps(build, quick)
    bench_wrappers(build, quick)
