#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What systemd's own tools think of our units, without a running systemd.

units.py verify DIRECTORY PROGRAM...   `systemd-analyze verify` has nothing to say about the units in DIRECTORY and beside this source;
                                       PROGRAMs are what they start
units.py security UNIT                 `systemd-analyze security` finds an exposure of 2.0 or less

Where systemd-analyze is missing, or too old, the test is skipped (exit code 77), or fails if MEMGUARD_MUST_WORK=1.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'units')
THRESHOLD = 2.0


def skip(reason):
    print(reason)
    sys.exit(1 if os.environ.get('MEMGUARD_MUST_WORK') == '1' else 77)


def run(*command, **environment):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, env={**os.environ, **environment})


def verify(directory, *programs):
    """On copies that start the programs where they were built: verify wants them to be there."""
    with tempfile.TemporaryDirectory() as copies:
        for path in glob.glob(f'{directory}/*.service') + glob.glob(f'{SOURCES}/*.socket'):
            with open(path, encoding='utf-8') as file:
                text = file.read()
            for program in programs:
                text = re.sub(rf'(?<==)/\S*/{re.escape(os.path.basename(program))}(?=\s)', os.path.abspath(program), text)
            with open(f'{copies}/{os.path.basename(path)}', 'w', encoding='utf-8') as file:
                file.write(text)
        units = sorted(glob.glob(f'{copies}/*'))
        done = run('systemd-analyze', 'verify', '--man=no', *units, SYSTEMD_UNIT_PATH=f'{copies}:')
        said = [line for line in done.stdout.splitlines() if os.path.basename(copies) in line or 'memguard' in line]
    print(done.stdout)
    return 1 if said or done.returncode or len(units) < 4 else 0


def security(unit):
    done = run('systemd-analyze', 'security', '--offline=true', '--no-pager', unit)
    level = re.search(r'Overall exposure level for \S+: ([0-9.]+)', done.stdout)
    print(done.stdout[-400:])
    return 0 if level and float(level[1]) <= THRESHOLD else 1


def main():
    if not shutil.which('systemd-analyze'):
        skip('no systemd-analyze: install the Debian package systemd')
    return {'verify': verify, 'security': security}[sys.argv[1]](*sys.argv[2:])


sys.exit(main())
