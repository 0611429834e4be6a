#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""memguard-replay on real programs: test_runs.py --build=DIR [PATTERN...]

Whatever a test does to the harness, afterwards the samples so far are there, the message says what it was, and no process is left.
No test asserts a duration or a size that depends on the machine.
"""
import contextlib
import csv
import glob
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
WAIT = 120
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


class Replay:
    """A directory for the results, and a mark in the environment by which every process of a test is found again."""

    def __init__(self, build):
        self.build = build
        self.directory = tempfile.mkdtemp(prefix="memguard-replay-test-")
        self.output = f"{self.directory}/out"
        self.mark = f"REPLAY_TEST={uuid.uuid4()}"

    def environment(self):
        name, value = self.mark.split("=")
        return {key: os.environ[key] for key in os.environ
                if not key.startswith(("MALLOC_", "LD_PRELOAD"))} | {name: value}

    def command(self, *arguments, program):
        return [f"{self.build}/src/replay/memguard-replay", "run", "-o", self.output, "--no-scope", "--sample=100ms",
                "--floor=200ms", "--warmup=200ms", "--duration=4s", "--max-slope=100000G", *arguments, "--", *program]

    def start(self, *arguments, program, **more):
        return subprocess.Popen(self.command(*arguments, program=program), env=self.environment(), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, **more)

    def run(self, *arguments, program, **more):
        process = self.start(*arguments, program=program, **more)
        process.out, process.err = process.communicate(timeout=WAIT)
        return process

    def report(self, *arguments, directory=None):
        process = subprocess.run([f"{self.build}/src/replay/memguard-replay", "report", *arguments, directory or self.output],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=WAIT)
        process.out, process.err = process.stdout, process.stderr
        return process

    def workload(self, name, *arguments):
        return [f"{self.build}/tests/workloads/{name}", *arguments]

    def text(self, variant, round=1):
        with open(f"{self.output}/{variant}.{round}.csv") as file:
            return file.read()

    def samples(self, variant, round=1):
        return list(csv.DictReader(line for line in self.text(variant, round).splitlines() if not line.startswith("#")))

    def strays(self):
        found = []
        for path in glob.glob("/proc/[0-9]*/environ"):
            with contextlib.suppress(OSError), open(path, "rb") as file:
                if self.mark.encode() in file.read():
                    with open(f"/proc/{path.split('/')[2]}/cmdline", "rb") as command:
                        found.append(command.read().replace(b"\0", b" ").decode())
        return [command for command in found if command]

    def close(self):
        shutil.rmtree(self.directory, ignore_errors=True)


def expect(process, code, *texts):
    check(process.returncode == code, f"exit code {process.returncode}, not {code}\n{process.out}\n{process.err}")
    for text in texts:
        check(text in process.out + process.err, f"nobody says {text!r}\n{process.out}\n{process.err}")


def shell(text):
    return ["sh", "-c", text]


def wait_for(what, probe):
    deadline = time.monotonic() + WAIT
    while not probe():
        check(time.monotonic() < deadline, f"waited in vain for: {what}")
        time.sleep(0.05)


# The whole way


@test
def three_variants(replay):
    ini = "TrimAbove=8M,MinGain=4M,CooldownSec=1s,MaxPause=10s,IntervalSec=200ms"
    process = replay.run("--variant=glibc", "--variant=arena2", f"--variant=memguard:name=memguard,{ini}", "--idle=6s",
                         "--duration=12s", "--floor=500ms",
                         program=replay.workload("s2-request-threads", "--seconds=11", "--size=64M"))
    expect(process, 0, "memguard", "flat")
    model = json.loads(replay.report("--json=short", "--max-slope=100000G").out)
    glibc, arena2, memguard = model["variants"]
    check([v["variant"] for v in model["variants"]] == ["glibc", "arena2", "memguard"], "another order")
    for variant in model["variants"]:
        check(variant["floors"] >= 15 and variant["peak_bytes"] >= variant["mean_bytes"] > 0, f"no numbers: {variant}")
        check(variant["live_bytes"] > 0 and variant["operations_per_second"] > 0, f"the summary was not taken: {variant}")
    check(glibc["trims"] == 0 and memguard["trims"] > 0, "memguard never trimmed")
    check(any(sample["live_bytes"] for sample in replay.samples("memguard")), "the agent's live never came")
    check(not any(sample["live_bytes"] for sample in replay.samples("glibc")), "live without an agent")
    check(os.path.getsize(f"{replay.output}/chart.svg") > 2000 if shutil.which("gnuplot") else True, "no chart")


@test
def rounds_are_interleaved(replay):
    expect(replay.run("--variant=glibc", "--variant=arena2", "--repeat=2", "--duration=200ms", program=["sleep", "60"]), 2)
    order = sorted((int(line.split("=")[1]), os.path.basename(path))
                   for path in glob.glob(f"{replay.output}/*.csv")
                   for line in open(path) if line.startswith("# sequence="))
    check([name for _, name in order] == ["glibc.1.csv", "arena2.1.csv", "glibc.2.csv", "arena2.2.csv"], f"{order}")


@test
def load_and_ready(replay):
    ready = f"{replay.directory}/ready"
    process = replay.run(f"--ready=test -e {ready}", "--load=echo summary operations=5 live_bytes=7; kill -0 $MEMGUARD_REPLAY_PID",
                         "--idle=300ms", program=shell(f"sleep 0.5; touch {ready}; exec sleep 60"))
    expect(process, 2)
    phases = [sample["phase"] for sample in replay.samples("glibc")]
    check(phases[0] == "start" and phases[-1] == "idle", f"{phases}")
    check("# told=live_bytes=7 operations=5" in replay.text("glibc"), "the load's summary is not there")
    check("# end=finished" in replay.text("glibc"), replay.text("glibc"))


@test
def exit_codes_and_baseline(replay):
    growing = shell("python3 -c '\nimport time\nblocks = []\nwhile True: blocks.append(bytearray(1 << 20)); time.sleep(0.02)'")
    expect(replay.run("--max-slope=1G", "--duration=8s", "--floor=400ms", program=growing), 1, "growing", "only one allocator")
    before, replay.output = replay.output, f"{replay.directory}/second"
    expect(replay.run("--max-slope=1G", "--duration=8s", "--floor=400ms", program=["sleep", "60"]), 0, "flat")
    expect(replay.report("--max-slope=1G", f"--baseline={before}"), 0, "Against the baseline")
    expect(replay.report("--max-slope=1G", f"--baseline={replay.output}", directory=before), 1, "above the baseline's")
    with open(f"{replay.output}/glibc.1.csv") as file:
        text = file.read()
    renamed = f"{replay.directory}/renamed"
    os.mkdir(renamed)
    with open(f"{renamed}/old.1.csv", "w") as file:
        file.write(text.replace("# variant=glibc\n", "# variant=old\n"))
    expect(replay.report("--max-slope=1G", f"--baseline={renamed}"), 2, "the baseline has no run of that name")
    expect(replay.report("--judge=glibc"), 0)
    expect(replay.report("--judge=arena2"), 2, "none of the runs is called arena2")
    expect(replay.report(directory=replay.directory), 2, "no runs in there")
    # Another program's table is left out; a run that nobody can read may be the one that grew.
    with open(f"{replay.output}/table.csv", "w") as file:
        file.write("a,b\n1,2\n")
    expect(replay.report("--max-slope=1G"), 0, "left out")
    with open(f"{replay.output}/glibc.2.csv", "w") as file:
        file.write(text[:len(text) // 2].rpartition("\n")[0] + "\ngarbage\n" + text[len(text) // 2:])
    expect(replay.report("--max-slope=1G"), 2, "left out")


@test
def reports_in_every_form(replay):
    replay.run("--quiet", "--duration=8s", "--floor=400ms", program=["sleep", "60"])
    rows = list(csv.DictReader(replay.report("--csv").out.splitlines()))
    check(len(rows) == 1 and rows[0]["variant"] == "glibc" and rows[0]["verdict"] == "flat", f"{rows}")
    check(json.loads(replay.report("-j").out)["variants"][0]["runs"][0]["end"] == "finished", "JSON")
    expect(replay.report("--floors"), 0, "FLOOR", "glibc.1")
    expect(replay.report("--chart=x.gif"), 0, "ends in .svg or .png")
    if shutil.which("gnuplot"):
        nowhere = replay.report("-j", f"--chart={replay.directory}/no/where.svg")
        expect(nowhere, 0, "No such file or directory")
        json.loads(nowhere.out)
        picture = f"{replay.directory}/a b'\".png"
        expect(replay.report(f"--chart={picture}"), 0)
        with open(picture, "rb") as file:
            check(file.read(4) == b"\x89PNG", "that is no picture")


# What goes wrong


@test
def missing_library(replay):
    process = replay.run("--variant=preload:/nowhere/lib.so", "--variant=glibc", program=["sleep", "60"])
    expect(process, 2, "/nowhere/lib.so cannot be read", "failed")
    check(replay.samples("glibc"), "the other variant was not run")


@test
def not_in_effect(replay):
    process = replay.run("--variant=arena2", program=["env", "-i", "sleep", "60"])
    expect(process, 2, "MALLOC_ARENA_MAX=2 is not in effect")


@test
def an_agent_that_never_reports(replay):
    """sleep has one thread, and the agent waits for a second one."""
    expect(replay.run("--variant=memguard", "--duration=2s", program=["sleep", "60"]), 2, "thread=always")
    replay.output += "2"
    replay.run("--variant=memguard:name=memguard,thread=always,MEMGUARD_DELAY=100ms,IntervalSec=200ms", program=["sleep", "60"])
    check("# end=finished" in replay.text("memguard"), replay.text("memguard"))


@test
def no_such_program(replay):
    expect(replay.run(program=["/nowhere/program"]), 2, "cannot execute /nowhere/program")


@test
def program_that_is_never_ready(replay):
    expect(replay.run("--ready=false", "--ready-timeout=500ms", program=["sleep", "60"]), 2, "never succeeded")


@test
def program_that_exits(replay):
    expect(replay.run(program=shell("sleep 1; exit 3")), 2, "the program ended: exit code 3")
    check(len(replay.samples("glibc")) > 2, "the samples were not kept")
    replay.output += "2"
    expect(replay.run("--stop-timeout=1s", program=shell("sleep 1; kill -SEGV $$")), 2, "signal 11 (SEGV)")


@test
def load_that_dies(replay):
    expect(replay.run("--load=sleep 1; exit 7", program=["sleep", "60"]), 2, "the load ended: exit code 7")
    check(len(replay.samples("glibc")) > 2, "the samples were not kept")


@test
def out_of_memory(replay):
    program = [sys.executable, "-c", "import time\nblocks = []\nwhile True: blocks.append(bytearray(1 << 20)); time.sleep(0.01)"]
    expect(replay.run("--memory-max=80M", program=program), 1, "out of memory", "oom in minute 1")


@test
def full_disk(replay):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))
    process = replay.run(program=["sleep", "60"], preexec_fn=limit)
    expect(process, 2, "cannot write the samples: File too large")
    check(len(replay.samples("glibc")) > 2, "the samples so far are not readable")
    expect(replay.report(), 2)


@test
def interrupted(replay):
    process = replay.start("--duration=10min", "--variant=glibc", "--variant=arena2",
                           program=shell("sleep 1000 & setsid sleep 1000 & trap '' TERM INT; sleep 1000"))
    wait_for("samples", lambda: os.path.exists(f"{replay.output}/glibc.1.csv") and len(replay.samples("glibc")) > 5)
    process.send_signal(signal.SIGINT)
    process.out, process.err = process.communicate(timeout=WAIT)
    expect(process, 2, "interrupted; the samples so far are kept")
    check("# end=interrupted" in replay.text("glibc"), "the file does not say how it ended")
    check(not os.path.exists(f"{replay.output}/arena2.1.csv"), "it went on")


@test
def killed_harness(replay):
    process = replay.start("--duration=10min", program=["sleep", "1000"])
    wait_for("samples", lambda: os.path.exists(f"{replay.output}/glibc.1.csv") and len(replay.samples("glibc")) > 5)
    process.kill()
    process.communicate(timeout=WAIT)
    wait_for("the program's end", lambda: not replay.strays())
    expect(replay.report(), 2)


def write_run(directory, variant, growing=False, file=None, **more):
    """A run that was never made: VARIANT may be bytes, MORE are further comments."""
    os.makedirs(directory, exist_ok=True)
    lines = [b"# memguard-replay 1", b"# variant=" + os.fsencode(variant), b"# floor_usec=1000000"]
    lines += [f"# {key}=".encode() + os.fsencode(value) for key, value in more.items()]
    lines += [b"seconds,phase,anon_bytes"]
    lines += [b"%d.%d00000,load,%d" % (i // 10, i % 10, (64 << 20) + growing * (i << 20)) for i in range(400)]
    with open(os.path.join(os.fsencode(directory), file or b"%d.csv" % len(os.listdir(directory))), "wb") as stream:
        stream.write(b"\n".join(lines + [b"# end=finished", b""]))


@test
def judged_are_those_named(replay):
    for variant, growing in [("glibc", False), ("memguard:TrimAbove=1M", False), ("memguard:TrimAbove=1M,MinGain=1M", True)]:
        write_run(replay.output, variant, growing)
    for names, code, *texts in [
            ("glibc", 0), ("glibc,", 0), ("glibc,memguard:TrimAbove=1M", 0), ("memguard:TrimAbove=1M,glibc", 0),
            ("memguard:TrimAbove=1M,MinGain=1M", 1), ("glibc,memguard:TrimAbove=1M,MinGain=1M", 1),
            ("memguard:TrimAbove=1M,memguard:TrimAbove=1M,MinGain=1M,glibc", 1),
            ("glibcc", 2, "called glibcc\n"), ("glib", 2, "called glib\n"), ("glibc,arena2", 2, "called arena2\n"),
            ("arena2,glibc,x", 2, "called arena2\n", "called x\n"), ("memguard:TrimAbove=1M,MinGain=2M", 2, "called MinGain=2M\n"),
            ("typo,memguard:TrimAbove=1M,MinGain=1M", 1, "called typo\n"), (",,", 2, "names no run")]:
        process = replay.report("--max-slope=1G", f"--judge={names}")
        expect(process, code, *texts)
        check(len(process.err.splitlines()) == len(texts), f"{names}: {process.err}")


@test
def any_bytes_are_reported(replay):
    for variant in [b"a\xff", b"a\xfe", b"gr\xc3\xbcn", b"\xc2\x9b2J", b"\xed\xa0\x80"]:
        write_run(replay.output, variant, end_text=b"cannot run /opt/\xe9", source=b"\xc3", note=b"the environment had MALLOC_X=\xe2\x82",
                  program=b"/opt/\xe9")
    process = replay.report("--max-slope=1G", "--json=short", "--judge=gr\u00fcn")
    expect(process, 0)
    variants = [variant["variant"] for variant in json.loads(process.out)["variants"]]
    check(variants == ["<c2><9b>2J", "<ed><a0><80>", "a<fe>", "a<ff>", "gr\u00fcn"], f"{variants}")
    run = json.loads(process.out)["variants"][0]["runs"][0]
    check(run["end_text"] == "cannot run /opt/<e9>" and run["notes"].endswith("MALLOC_X=<e2><82>"), f"{run}")
    expect(replay.report("--max-slope=1G"), 0)
    expect(replay.report("--max-slope=1G", b"--judge=a\xff"), 0)
    expect(replay.report("--max-slope=1G", f"--baseline={replay.output}"), 0, "a<ff>")


@test
def any_bytes_are_run(replay):
    process = replay.run("--duration=200ms", b"--variant=glibc:name=a\xff", program=[b"/nonexistent-\xe9"], errors="replace")
    expect(process, 2, "a<ff>", "/nonexistent-<e9>")


@test
def what_forks_and_hides_is_measured_and_ended(replay):
    """A daemon in a session of its own, whose parent is gone, is the program's; the load's is not."""
    hog = f"{sys.executable} -c 'import time; block = bytearray(64 << 20); time.sleep(1000)'"
    process = replay.run("--load=" + f"(setsid {hog} & ) ; sleep 1000", "--duration=6s",
                         program=shell(f"(setsid sleep 1000 &); (setsid {hog} &); exec sleep 1000"))
    check(process.returncode in (0, 1), f"{process.out}{process.err}")
    peak = max(int(sample["anon_bytes"]) for sample in replay.samples("glibc"))
    check(64 << 20 <= peak < 128 << 20, f"the peak is {peak >> 20} MiB: the program's 64 and nothing of the load's")


@test
def a_directory_with_runs_is_refused(replay):
    replay.run("--duration=200ms", program=["sleep", "60"])
    expect(replay.run(program=["sleep", "60"]), 2, "has runs already")


@test
def a_directory_is_no_pattern(replay):
    for name in ["g[1]", "*", "a?b", "{x,y}", "back\\slash"]:
        replay.output = f"{replay.directory}/{name}"
        expect(replay.run("--duration=200ms", program=["sleep", "60"]), 2, "glibc", "unclear")
        expect(replay.run(program=["sleep", "60"]), 2, "has runs already")
    replay.output = f"{replay.directory}/others"
    for file in [b".csv", b".hidden.csv", b"a.csv.bak", b"a.CSV", b"csv"]:
        write_run(replay.output, "glibc", file=file)
    expect(replay.report(), 2, "no runs in there")
    write_run(replay.output, "glibc", file=b"\xff [1]*.csv")
    expect(replay.report("--max-slope=1G"), 0)
    expect(replay.report(directory=f"{replay.output}/csv"), 2, "Not a directory")
    expect(replay.run(program=["sleep", "60"]), 2, "has runs already")


@test
def bad_usage(replay):
    for arguments, text in [(["--variant=glib"], "no variant"), (["--variant=memguard:TrimAbove=x"], "TrimAbove"),
                            (["--variant=glibc", "--variant=glibc"], "twice"), (["--sample=0"], "expected TIME"),
                            (["--floor=50ms"], "shorter than"), (["--repeat=0"], "expected N"), (["--bogus"], "bogus")]:
        expect(replay.run(*arguments, program=["sleep", "60"]), 2, text)
    check(not os.path.exists(replay.output), "something was made all the same")


def run_one(function, build):
    replay = Replay(build)
    started = time.monotonic()
    try:
        function(replay)
        check(not replay.strays(), f"left running: {replay.strays()}")
        left = glob.glob("/tmp/memguard-replay-??????/agent.sock") if os.environ.get("REPLAY_TEST_ALONE") else []
        check(not left, f"left behind: {left}")
        print(f"ok {function.__name__} ({time.monotonic() - started:.1f} s)", flush=True)
        return "passed"
    except Skip as reason:
        print(f"skip {function.__name__}: {reason}", flush=True)
        return "failed" if os.environ.get("MEMGUARD_MUST_WORK") == "1" else "skipped"
    except (Failure, subprocess.TimeoutExpired, OSError, KeyError, ValueError) as error:
        print(f"not ok {function.__name__}: {type(error).__name__}: {error}", flush=True)
        return "failed"
    finally:
        replay.close()


def main():
    build = os.path.join(HERE, "..", "..", "build")
    patterns = []
    for argument in sys.argv[1:]:
        if argument.startswith("--build="):
            build = argument.split("=", 1)[1]
        else:
            patterns.append(argument)
    chosen = [function for function in tests if not patterns or any(word in function.__name__ for word in patterns)]
    results = [run_one(function, os.path.abspath(build)) for function in chosen]
    print(f"{results.count('passed')} passed, {results.count('failed')} failed, {results.count('skipped')} skipped")
    return 1 if "failed" in results or not chosen else 0


sys.exit(main())
