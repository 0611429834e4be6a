# SPDX-License-Identifier: MIT
"""Memory pressure on a real cgroup: triggers are armed, a limit that is hit makes a trim due at once, and no limit is ever written (C14)."""
import glob
import os

from harness import (DAEMON, MIB, WORKLOADS, Skip, anon, cgroup, check, expect, expect_equal, journal, known_status, main_pid, run,
                     service, systemctl, trims_of, wait_until, write)

MESSAGE_PRESSURE = '0a1a656710244ead8b9325bea547693b'
MESSAGE_LIVE_OVER_LIMIT = '52d5a373dcd84d9e8fecb21839d38392'
MESSAGE_NO_PRESSURE = '932f378cc53f4fab8b215799cb623cce'
HIGH = 200 * MIB
SCRIPT = '/run/memguard-c14.sh'

# Thresholds that are never reached: only pressure makes a trim due.
ONLY_PRESSURE = 'Mode=trim\nTrimAbove=8G\nMinGain=16M\nMaxPause=20s\nCooldownSec=1h'


def need_psi():
    if not os.path.exists('/proc/pressure/memory'):
        raise Skip('this kernel has no pressure information')


def read(path):
    with open(path) as f:
        return f.read().strip()


def armed_files():
    """The pressure files that the daemon holds open."""
    links = []
    for link in glob.glob(f'/proc/{main_pid(DAEMON)}/fd/*'):
        try:
            links.append(os.readlink(link))
        except FileNotFoundError:
            continue
    return {path for path in links if path.endswith(('.pressure', '/pressure/memory'))}


@check('pressure: triggers on the host, the unit and the slice above it, only while there is an agent')
def armed():
    need_psi()
    wait_until(lambda: '/proc/pressure/memory' in armed_files(), 'the host is watched')
    with service('armed.service', f'{WORKLOADS}/c1-arenas --blocks=64', ONLY_PRESSURE) as unit:
        own = cgroup(unit) + '/memory.pressure'
        wait_until(lambda: own in armed_files(), 'the unit is watched')
        expect(os.path.dirname(os.path.dirname(own)) + '/memory.pressure' in armed_files(), f'its slice: {armed_files()}')
    wait_until(lambda: own not in armed_files(), 'the unit that ended is watched no more')
    expect('/proc/pressure/memory' in armed_files(), 'the host is not watched any more')


@check('pressure: MemoryHigh= is hit while memory is retained: one trim at once; by live memory: an alert (C14)')
def c14():
    need_psi()
    # One process retains 128 MiB, the live memory of the other grows: first to the limit, then, after the trim, to it once more.
    write(SCRIPT, f'{WORKLOADS}/c1-arenas --blocks=1024 &\nexec {WORKLOADS}/c4-leak --size=1M --rate=4M --period=100000\n')
    command = f'/bin/sh {SCRIPT}'
    limit = (f'MemoryHigh={HIGH}', 'MemorySwapMax=0', 'Environment=MEMGUARD_THREAD=always')
    with service('c14.service', command, ONLY_PRESSURE + '\nWhen=pressure', properties=limit) as unit:
        path = cgroup(unit) + '/memory.high'
        expect_equal(read(path), str(HIGH), 'memory.high')
        wait_until(lambda: (r := known_status(unit)) and (r['retained_bytes'] or 0) > 100 * MIB, 'one process retains', 180)
        entry = wait_until(lambda: trims_of(unit), 'the limit made a trim due', 240)[0]
        expect_equal(entry['MEMGUARD_REASON'], 'pressure', 'reason')
        expect(int(entry['MEMGUARD_BEFORE_BYTES']) > 160 * MIB, f'trimmed before there was pressure: {entry["MESSAGE"]}')
        expect(int(entry['MEMGUARD_AFTER_BYTES']) < HIGH - 40 * MIB, f'not under the line: {entry["MESSAGE"]}')
        alert = wait_until(lambda: [e for e in journal('-u', unit) if e.get('MESSAGE_ID') == MESSAGE_LIVE_OVER_LIMIT],
                           'live memory over the limit is told', 240)[0]
        expect(int(alert['MEMGUARD_LIVE_BYTES']) > HIGH // 2, f'the alert: {alert["MESSAGE"]}')
        expect_equal(int(alert['MEMGUARD_HIGH_BYTES']), HIGH, 'the limit in the alert')
        expect_equal(len(trims_of(unit)), 1, 'trims')
        expect_equal(read(path), str(HIGH), 'memory.high afterwards')
        expect_equal(read(cgroup(unit) + '/memory.max'), 'max', 'memory.max afterwards')
        expect(anon(unit) > 100 * MIB, 'the case is not what it should be')


def stalled_permyriad(path):
    """Of the last ten seconds."""
    return round(100 * float(read(path).split('avg10=')[1].split()[0]))


@check('pressure: a unit at its own limit makes no other due, though the pressure counts in its slice and the host')
def neighbour():
    need_psi()
    limit = (f'MemoryHigh={24 * MIB}', 'MemorySwapMax=0')
    bystander = f'{WORKLOADS}/c1-arenas --blocks=1024'
    with service('bystander.service', bystander, ONLY_PRESSURE + '\nWhen=pressure') as unit:
        wait_until(lambda: (r := known_status(unit)) and (r['retained_bytes'] or 0) > 100 * MIB, 'it retains', 180)
        with service('stalled.service', f'{WORKLOADS}/c4-leak --size=1M --rate=8M --period=100000', ONLY_PRESSURE, properties=limit) as other:
            slice_of = os.path.dirname(cgroup(other))
            for place in (cgroup(other) + '/memory.pressure', slice_of + '/memory.pressure', '/proc/pressure/memory'):
                wait_until(lambda: stalled_permyriad(place) > 2000, lambda: f'{place} shows it: {read(place)}', 240)
            run('sleep', '10')
            expect(stalled_permyriad('/proc/pressure/memory') > 1000, 'the case is not what it should be')
        expect_equal(trims_of(unit), [], 'trims of the bystander')
        expect(anon(unit) > 100 * MIB, 'the case is not what it should be')


@check('pressure: a unit whose pressure files are off: one notice, thresholds go on')
def off():
    need_psi()
    systemctl('restart', DAEMON)
    wait_until(lambda: run('memguardctl', 'status', ok=None).returncode == 0, 'memguardctl status answers')
    before = len(journal(f'MESSAGE_ID={MESSAGE_NO_PRESSURE}'))
    section = 'Mode=trim\nTrimAbove=64M\nMinGain=16M\nMaxPause=20s\nCooldownSec=1s'
    with service('off.service', f'{WORKLOADS}/c1-arenas --wait', section, preload=False) as bare:
        if not os.path.exists(cgroup(bare) + '/cgroup.pressure'):
            raise Skip('this kernel cannot switch pressure accounting off for one cgroup (before 6.1)')
    start = 'ExecStartPre=+/bin/sh -c "echo 0 > /sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)/cgroup.pressure"'
    with service('off.service', f'{WORKLOADS}/c1-arenas', section, properties=(start,)) as unit:
        expect(not os.path.exists(cgroup(unit) + '/memory.pressure'), 'the case is not what it should be')
        wait_until(lambda: trims_of(unit), 'the threshold makes a trim due', 180)
        run('sleep', '5')
        told = journal(f'MESSAGE_ID={MESSAGE_NO_PRESSURE}')[before:]
        expect_equal(len(told), 1, f'notices {[e["MESSAGE"] for e in told]}')
