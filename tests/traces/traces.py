#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs each trace through memguardctl simulate and looks at what the policy made of it."""
import json
import pathlib
import subprocess
import sys

CTL, HERE = sys.argv[1], pathlib.Path(sys.argv[2])
MIB = 1 << 20

# trims (from, to), least given back in MiB, verdict, reason it was held by most of the time, most peak in MiB
EXPECTED = {
    "s1": ((10, 60), 1000, "flat", "below-threshold", 1500),
    "s2": ((8, 30), 4000, "flat", "below-threshold", 900),
    "s3": ((6, 6), 3300, "held", "below-threshold", 601),
    "s4": ((1, 1), 6400, "held", "below-threshold", 7001),
    "c2": ((1, 1), 512, "learning", "below-threshold", 514),
    "c3": ((2, 5), 0, "pinned", "pinned", 512),
    "c4": ((1, 2), 64, "leak-suspected", "below-threshold", 5500),
    "c5": ((0, 0), 0, "flat", "max-pause", 6000),
    "c6": ((2, 4), 32, "learning", "regrowth", 36),
    "c9": ((0, 0), 0, "flat", "cannot-trim", 511),
    "c10": ((0, 0), 0, "held", "below-threshold", 20),
    "c11": ((1, 1), 180, "learning", "below-threshold", 195),
    "c14": ((1, 1), 100, "learning", "below-min-gain", 260),
    "c15": ((2, 7), 400, "refilled", "refilled", 512),
}


def simulate(*arguments, stdin=None):
    return subprocess.run([CTL, "--json=short", *arguments], input=stdin, text=True,
                          capture_output=True, check=False)


def check_case(case, trims, least, verdict, held, peak):
    done = simulate(f"--config={HERE / 'traces.ini'}", "simulate", str(HERE / f"{case}.jsonl"))
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    (unit,) = result["units"]
    assert trims[0] <= unit["trims"] <= trims[1], unit
    assert unit["trimmed_bytes"] >= least * MIB, unit
    assert unit["verdict"] == verdict, unit
    assert unit["held_mostly"] == held, unit
    assert unit["peak_anon_simulated_bytes"] <= peak * MIB, unit
    assert unit["mean_anon_simulated_bytes"] <= unit["mean_anon_bytes"], unit
    assert sum(e["event"] == "trim" for e in result["events"]) == unit["trims"], result["events"]
    changes = sum(e["event"] == "verdict" for e in result["events"])
    assert changes <= 3, [e for e in result["events"] if e["event"] == "verdict"]


def check_errors():
    line = '{"at_usec":1,"unit":"a.service","anon_bytes":5}\n'
    hostile = {
        "": 0,
        "\n\r\n": 0,
        line: 0,
        line.rstrip(): 0,
        line.replace("\n", "\r\n"): 0,
        line + "{": 1,
        "[]\n": 1,
        "nonsense\n": 1,
        '{"unit":"a.service"}\n': 1,
        '{"at_usec":1}\n': 1,
        '{"at_usec":-1,"unit":"a"}\n': 1,
        '{"at_usec":1.5,"unit":"a"}\n': 1,
        '{"at_usec":99999999999999999999,"unit":"a"}\n': 1,
        '{"at_usec":1,"unit":""}\n': 1,
        '{"at_usec":1,"unit":"%s"}\n' % ("a" * 255): 0,
        '{"at_usec":1,"unit":"%s"}\n' % ("a" * 256): 1,
        '{"at_usec":1,"unit":"a","anon_bytes":"5"}\n': 1,
        '{"at_usec":1,"unit":"a","anon_bytes":null}\n': 0,
        '{"at_usec":1,"unit":"a","pressure":1}\n': 1,
        '{"at_usec":1,"unit":"a","activity":"lazy"}\n': 1,
        '{"at_usec":1,"unit":"a","activity":7}\n': 1,
        '{"at_usec":1,"unit":"a","processes":{}}\n': 1,
        '{"at_usec":1,"unit":"a","processes":[]}\n': 0,
        '{"at_usec":1,"unit":"a","processes":[3]}\n': 1,
        '{"at_usec":1,"unit":"a","processes":[%s]}\n' % ",".join(["{}"] * 256): 0,
        '{"at_usec":1,"unit":"a","processes":[%s]}\n' % ",".join(["{}"] * 257): 1,
        '{"at_usec":1,"unit":"a","unit":"b"}\n': 1,
        line + '{"at_usec":0,"unit":"a.service","anon_bytes":5}\n': 0,
    }
    for text, want in hostile.items():
        done = simulate(f"--config={HERE / 'traces.ini'}", "simulate", "-", stdin=text)
        assert done.returncode == want, (text, done.returncode, done.stderr)
        assert bool(done.stderr) == bool(want), (text, done.stderr)
    done = simulate("--config=/nonexistent.ini", "simulate", "-", stdin=line)
    assert done.returncode == 1 and "nonexistent" in done.stderr, done.stderr
    done = simulate(f"--config={HERE / 'traces.ini'}", "simulate", "/nonexistent.jsonl")
    assert done.returncode == 1 and "nonexistent" in done.stderr, done.stderr
    assert simulate("simulate").returncode == 2


def units_of(*samples):
    """Of lines AT_USEC, ANON: the only unit, and the events."""
    text = "".join(json.dumps({"at_usec": at, "unit": "a.service", "anon_bytes": anon}) + "\n" for at, anon in samples)
    done = simulate(f"--config={HERE / 'traces.ini'}", "simulate", "-", stdin=text)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    return result["units"][0], result["events"]


def check_means():
    half, most = 512 * MIB, (1 << 63) - 1
    cases = [
        ([(i * 1900000, half) for i in range(9)], half),
        ([(i * 500000, half) for i in range(9)], half),
        ([(0, 1000), (1, 1000)], 1000),
        ([(0, half), (10, None), (20, half), (30, None)], half),
        ([(0, 0), (10, 4000), (40, 8000)], 7000),
        ([(10, 4000), (0, 4000), (10, 4000)], 4000),
        ([(0, 0), (most - 1, most), (most, most)], most),
        ([(0, half)], None),
        ([(7, half), (7, half)], None),
        ([(0, half), (10, None)], None),
        ([(0, None), (10, None)], None),
    ]
    for samples, want in cases:
        unit, _ = units_of(*samples)
        assert unit["mean_anon_bytes"] == unit["mean_anon_simulated_bytes"] == want, (samples, unit)
        peak = max((anon for _, anon in samples if anon is not None), default=None)
        assert unit["peak_anon_bytes"] == unit["peak_anon_simulated_bytes"] == peak, (samples, unit)


def check_unknown():
    for anon in (None, 4096):
        _, events = units_of((0, anon))
        for event in events:
            assert event["anon_bytes"] == anon, event
            assert event["live_bytes"] is event["retained_bytes"] is event["freeable_bytes"] is None, event
        assert events
    shown = subprocess.run([CTL, f"--config={HERE / 'traces.ini'}", "--no-pager", "simulate", "-"], input='{"at_usec":1,"unit":"a.service"}\n',
                           text=True, capture_output=True, check=True).stdout
    assert "anon -, live -, retained -, freeable -" in shown, shown


for name, want in EXPECTED.items():
    check_case(name, *want)
check_errors()
check_means()
check_unknown()
text = subprocess.run([CTL, f"--config={HERE / 'traces.ini'}", "--no-pager", "simulate",
                       str(HERE / "s3.jsonl")], text=True, capture_output=True, check=True).stdout
assert "mass-free" in text and "600M -> 30M" in text, text
