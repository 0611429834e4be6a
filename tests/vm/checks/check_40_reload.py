# SPDX-License-Identifier: MIT
"""Configuration that changes under a running daemon, for better and for worse."""
from harness import (CONFIG, DAEMON, MIB, WORKLOADS, check, expect, expect_equal, is_active, journal,
                     known_status, main_pid, remove, run, service, show, systemctl, wait_until, write)

SMALL = f'{WORKLOADS}/c1-arenas --threads=2 --blocks=64'
BROKEN = f'{CONFIG}/99-broken.conf'


def threshold(unit):
    return (known_status(unit) or {}).get('trim_above_bytes')


@check('reload: a good change is in force at once')
def good():
    with service('reload.service', SMALL, 'Mode=observe\nTrimAbove=300M') as unit:
        wait_until(lambda: threshold(unit) == 300 * MIB, 'the section is in force')
        old = main_pid(DAEMON)
        write(f'{CONFIG}/60-change.conf', f'[{unit}]\nTrimAbove=200M\n')
        try:
            systemctl('reload', DAEMON)
            wait_until(lambda: threshold(unit) == 200 * MIB, 'the change is in force')
        finally:
            remove(f'{CONFIG}/60-change.conf')
        expect_equal(main_pid(DAEMON), old, 'a reload is no restart')


@check('reload: a broken file changes nothing, fails the reload, and is named with its line')
def broken():
    with service('reload.service', SMALL, 'Mode=observe\nTrimAbove=300M') as unit:
        wait_until(lambda: threshold(unit) == 300 * MIB, 'the section is in force')
        old = main_pid(DAEMON)
        write(BROKEN, f'# fine\n[{unit}]\nTrimAbove=100M\nMinGain=many\n')
        try:
            systemctl('reload', DAEMON, ok=False)
            expect(is_active(DAEMON) and main_pid(DAEMON) == old, 'the daemon did not live on')
            said = [e['MESSAGE'] for e in journal('_SYSTEMD_UNIT=' + DAEMON) if f'{BROKEN}:4' in e['MESSAGE']]
            expect(said and 'MinGain' in said[-1] and unit in said[-1], f'what the journal says: {said}')
            result = run('memguardctl', 'reload', ok=False)
            expect(f'{BROKEN}:4' in result.stderr, result.stderr)
            expect_equal(run('memguardctl', 'check-config', ok=False).returncode, 1, 'exit code of check-config')
            expect_equal(threshold(unit), 300 * MIB, 'what is in force')
        finally:
            remove(BROKEN)
        systemctl('reload', DAEMON)
        expect_equal(threshold(unit), 300 * MIB, 'what is in force after the repair')


@check('reload: SIGHUP does the same')
def hangup():
    with service('reload.service', SMALL, 'Mode=observe\nTrimAbove=300M') as unit:
        wait_until(lambda: threshold(unit) == 300 * MIB, 'the section is in force')
        write(f'{CONFIG}/60-change.conf', f'[{unit}]\nTrimAbove=200M\n')
        try:
            systemctl('kill', '-s', 'HUP', DAEMON)
            wait_until(lambda: threshold(unit) == 200 * MIB, 'the change is in force')
        finally:
            remove(f'{CONFIG}/60-change.conf')


@check('reload: a broken file at start stops the daemon with a clear line, and the repair is enough')
def broken_at_start():
    write(BROKEN, '[Daemon]\nIntervalSec=soon\n')
    try:
        systemctl('restart', DAEMON, ok=False)
        wait_until(lambda: show(DAEMON, 'ActiveState') == 'failed', 'it has failed')
        expect(any(f'{BROKEN}:2' in e['MESSAGE'] for e in journal('_SYSTEMD_UNIT=' + DAEMON)), 'the line is not named')
    finally:
        remove(BROKEN)
    systemctl('start', DAEMON)
