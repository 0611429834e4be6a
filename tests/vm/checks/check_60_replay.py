# SPDX-License-Identifier: MIT
"""memguard-replay where systemd is: a scope and a cgroup of its own for each run, an OOM by the kernel, nothing left behind."""
import contextlib
import csv
import os
import shutil
import signal
import subprocess
import tempfile

from harness import MIB, WORKLOADS, check, expect, expect_equal, run, wait_until


HOG = ('python3', '-c', 'import time\nblocks = []\nwhile True: blocks.append(bytearray(1 << 20)); time.sleep(0.01)')


def replay(directory, *arguments, meanwhile=lambda process: None):
    """Returns the process and the run's file, as a dictionary of its "# KEY=VALUE" lines and a list of samples.

    MEANWHILE is called with the process while it runs.
    """
    process = subprocess.Popen(['memguard-replay', 'run', '-o', directory, '--sample=200ms', '--floor=400ms', '--warmup=400ms', *arguments],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    meanwhile(process)
    output, _ = process.communicate(timeout=600)
    with open(f'{directory}/glibc.1.csv') as file:
        lines = file.read().splitlines()
    facts = dict(line[2:].split('=', 1) for line in lines if line.startswith('# ') and '=' in line)
    ended = subprocess.CompletedProcess(process.args, process.returncode, output)
    return ended, facts, list(csv.DictReader(line for line in lines if not line.startswith('#')))


def scopes():
    return run('systemctl', 'list-units', '--all', '--no-legend', '--plain', 'memguard-replay-*.scope').stdout


@check('replay: a run has a scope and a cgroup of its own, and neither stays', daemon=False)
def own_scope():
    directory = tempfile.mkdtemp()
    try:
        process, facts, samples = replay(f'{directory}/out', '--duration=8s', '--max-slope=100000G', '--',
                                         f'{WORKLOADS}/s2-request-threads', '--size=64M')
        expect_equal(facts.get('source'), 'cgroup', f'source ({process.stdout})')
        expect_equal(facts.get('end'), 'finished', f'end ({process.stdout})')
        expect(len(samples) > 10, f'{len(samples)} samples')
        for name in ('anon_bytes', 'rss_bytes', 'cpu_usec', 'minor_faults'):
            expect(int(samples[-1][name] or 0) > 0, f'no {name}: {samples[-1]}')
        expect('memguard-replay-' not in scopes(), 'the scope is still there')
    finally:
        shutil.rmtree(directory)


@check('replay: what the kernel kills for --memory-max is out of memory, with its minute', daemon=False)
def killed_by_kernel():
    directory = tempfile.mkdtemp()
    try:
        process, facts, samples = replay(f'{directory}/out', '--duration=60s', f'--memory-max={100 * MIB}', '--', *HOG)
        expect_equal(facts.get('source'), 'cgroup', 'source')
        expect_equal(facts.get('end'), 'oom', f'end ({process.stdout})')
        expect_equal(process.returncode, 1, 'exit code')
        expect('oom in minute' in process.stdout, process.stdout)
        expect('memguard-replay-' not in scopes(), 'the scope is still there')
    finally:
        shutil.rmtree(directory)


@check('replay: a kill by the kernel is known though systemd has removed the scope before anyone looked', daemon=False)
def killed_and_gone():
    directory = tempfile.mkdtemp()

    def has_samples():
        with contextlib.suppress(FileNotFoundError), open(f'{directory}/out/glibc.1.csv') as file:
            return sum(not line.startswith('#') for line in file) > 1

    def look_away(process):
        wait_until(has_samples, 'the first sample')
        os.kill(process.pid, signal.SIGSTOP)
        try:
            wait_until(lambda: 'memguard-replay-' not in scopes(), 'the end of the scope')
        finally:
            os.kill(process.pid, signal.SIGCONT)

    try:
        process, facts, _ = replay(f'{directory}/out', '--duration=60s', f'--memory-max={100 * MIB}', '--', *HOG, meanwhile=look_away)
        expect_equal(facts.get('source'), 'cgroup', 'source')
        expect_equal(facts.get('end'), 'oom', f'end ({process.stdout})')
    finally:
        shutil.rmtree(directory)
