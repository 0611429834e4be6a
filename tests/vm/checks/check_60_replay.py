# SPDX-License-Identifier: MIT
"""memguard-replay where systemd is: a scope and a cgroup of its own for each run, an OOM by the kernel, nothing left behind."""
import csv
import shutil
import subprocess
import tempfile

from harness import MIB, WORKLOADS, check, expect, expect_equal, run


def replay(directory, *arguments):
    """Returns the process and the run's file, as a dictionary of its "# KEY=VALUE" lines and a list of samples."""
    process = subprocess.run(['memguard-replay', 'run', '-o', directory, '--sample=200ms', '--floor=400ms', '--warmup=400ms', *arguments],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
    with open(f'{directory}/glibc.1.csv') as file:
        lines = file.read().splitlines()
    facts = dict(line[2:].split('=', 1) for line in lines if line.startswith('# ') and '=' in line)
    return process, facts, list(csv.DictReader(line for line in lines if not line.startswith('#')))


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
        hog = 'import time\nblocks = []\nwhile True: blocks.append(bytearray(1 << 20)); time.sleep(0.01)'
        process, facts, samples = replay(f'{directory}/out', '--duration=60s', f'--memory-max={100 * MIB}', '--', 'python3', '-c', hog)
        expect_equal(facts.get('source'), 'cgroup', 'source')
        expect_equal(facts.get('end'), 'oom', f'end ({process.stdout})')
        expect_equal(process.returncode, 1, 'exit code')
        expect('oom in minute' in process.stdout, process.stdout)
        expect('memguard-replay-' not in scopes(), 'the scope is still there')
    finally:
        shutil.rmtree(directory)
