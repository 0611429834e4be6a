#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the traces beside it: the published cases and the kinds of trouble, as memguardctl simulate reads them.

They are small models, a sample a minute unless the case needs seconds; sizes are those of the originals, scaled."""
import json
import pathlib

MIB = 1 << 20
HERE = pathlib.Path(__file__).parent


def write(name, lines):
    with open(HERE / f"{name}.jsonl", "w", encoding="utf-8") as file:
        for line in lines:
            line = {"unit": f"{name}.service", **line}
            for key, value in line.items():
                if key.endswith("_bytes"):
                    line[key] = int(value * MIB)
                elif key == "processes":
                    line[key] = [{k: int(v * MIB) if k.endswith("_bytes") else v
                                  for k, v in p.items()} for p in value]
            file.write(json.dumps(line, separators=(",", ":")) + "\n")


def seconds(n, step=60):
    return ((t, {"at_usec": t * 1000000}) for t in range(0, n, step))


def s1():
    """LRU caches at capacity: 0.5 GiB an hour of fragmentation, a fifth of it out of reach."""
    for t, at in seconds(4 * 3600):
        free = t / 3600 * 512
        yield {**at, "anon_bytes": 1024 + free, "live_bytes": 1024, "pinned_bytes": min(free / 5, 200),
               "arenas": 8, "free_chunks": 20000}


def s2():
    """Threads made for each request: the floor rises by 2.5 GiB an hour."""
    for t, at in seconds(2 * 3600):
        busy = 40 if t // 60 % 3 else 0
        yield {**at, "anon_bytes": 300 + busy + t / 3600 * 2560, "live_bytes": 300 + busy,
               "arenas": 16, "free_chunks": 3000}


def s3():
    """A sweep each half hour frees 570 of 600 MiB and says so."""
    for t, at in seconds(3 * 3600):
        phase = t % 1800
        live = 30 + 570 * min(phase, 1500) / 1500 if phase < 1740 else 30
        yield {**at, "anon_bytes": 600 if t >= 1500 else live, "live_bytes": live, "arenas": 4,
               "free_chunks": 5000, "checkpoint": phase == 1740,
               "reused_bytes": 23 if phase < 1500 and t > 1800 else 0}


def s4():
    """A burst of large blocks, paused, and gone."""
    for t, at in seconds(2 * 3600):
        live = 7000 if 1800 <= t < 3600 else 500
        yield {**at, "anon_bytes": 7000 if t >= 1800 else 500, "live_bytes": live, "arenas": 8,
               "free_chunks": 40}


def c2():
    """512 MiB freed; glibc's own free bytes go on saying so."""
    for t, at in seconds(660, 5):
        yield {**at, "anon_bytes": 514, "live_bytes": 2, "freeable_bytes": 512, "arenas": 8,
               "free_chunks": 16}


def c3():
    """Each seventh block kept: no trim gets anything."""
    for t, at in seconds(3 * 3600):
        yield {**at, "anon_bytes": 512, "live_bytes": 73, "pinned_bytes": 439, "arenas": 8,
               "free_chunks": 150000}


def c4():
    """1 MiB/s that is never freed."""
    for t, at in seconds(90 * 60, 30):
        yield {**at, "anon_bytes": 84 + t, "live_bytes": 20 + t, "arenas": 8, "free_chunks": 300,
               "reused_bytes": 64}


def c5():
    """375,000 free chunks of 15 KB behind one lock."""
    for t, at in seconds(1800):
        yield {**at, "anon_bytes": 6000, "live_bytes": 400, "arenas": 1, "free_chunks": 375000}


def c6():
    """16 MiB taken and freed each second."""
    for t, at in seconds(300, 2):
        yield {**at, "anon_bytes": 36, "live_bytes": 20, "reused_bytes": 16, "arenas": 1,
               "free_chunks": 4}


def c9():
    """An allocator that cannot be trimmed from outside."""
    for t, at in seconds(1800):
        yield {**at, "anon_bytes": 511, "live_bytes": 20, "can_trim": False}


def c10():
    """Page cache, tmpfs, slab; a heap of 20 MiB."""
    for t, at in seconds(3600):
        yield {**at, "anon_bytes": 20, "live_bytes": 18, "file_bytes": 2048, "shmem_bytes": 300,
               "slab_reclaimable_bytes": 150}


def c11():
    """A master and three children that share 180 retained MiB."""
    for t, at in seconds(900):
        one = {"rss_anon_bytes": 195, "live_bytes": 15, "arenas": 1, "free_chunks": 50}
        yield {**at, "anon_bytes": 195, "processes": [{"pid": 10 + i, **one} for i in range(4)]}


def c14():
    """260 MiB under MemoryHigh=200M, of which 100 are retained."""
    for t, at in seconds(600, 5):
        yield {**at, "anon_bytes": 260, "live_bytes": 160, "pressure": t >= 60, "arenas": 2,
               "free_chunks": 100}


def c15():
    """khugepaged fills 496 MiB of holes within two minutes of each trim."""
    for t, at in seconds(3600, 10):
        yield {**at, "anon_bytes": 512, "live_bytes": 16, "reused_bytes": 41, "arenas": 8,
               "free_chunks": 8000, "anon_thp_bytes": 504}


for case in (s1, s2, s3, s4, c2, c3, c4, c5, c6, c9, c10, c11, c14, c15):
    write(case.__name__, case())
