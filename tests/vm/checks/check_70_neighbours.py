# SPDX-License-Identifier: MIT
"""One unit that restarts without end changes nothing for its neighbours (C13); huge pages that fill up a heap again cause no loop (C15)."""
import contextlib
import os
import time

from harness import (DAEMON, MIB, WORKLOADS, Skip, anon, check, expect, expect_equal, journal, known_status, memory_stat, run, service,
                     show, systemctl, trims_of, wait_until, write)

C1 = f'{WORKLOADS}/c1-arenas'
SECTION = 'Mode=trim\nTrimAbove=64M\nMinGain=16M\nMaxPause=20s\nCooldownSec=1s'
ONE_THREAD = ('Environment=MEMGUARD_THREAD=always',)
THP = '/sys/kernel/mm/transparent_hugepage'
MESSAGE_NO_PRESSURE = '932f378cc53f4fab8b215799cb623cce'


def said_by_the_daemon(since):
    """What an operator sees of memguard at the default level since then; holds are debug."""
    entries = journal('-u', DAEMON, f'--since=@{int(since)}')
    return [e['MESSAGE'] for e in entries if '_EXE' in e and e['_EXE'].endswith('memguardd') and int(e['PRIORITY']) <= 6]


def waiting(unit):
    """C1, which has one thread until it is told to begin."""
    return service(unit, f'{C1} --wait', SECTION, properties=ONE_THREAD)


@check('neighbours: of three units the middle one restarts every 200 ms and vanishes at times (C13)')
def c13():
    restarting = ('Restart=always', 'RestartSec=200ms', 'StartLimitIntervalSec=0')
    with waiting('left.service') as left, waiting('right.service') as right:
        pids = {unit: show(unit, 'MainPID') for unit in (left, right)}
        wait_until(lambda: all((r := known_status(u)) and r['agents'] == 1 for u in (left, right)), 'both have their agents')
        with service('middle.service', '/bin/sleep 0.2', SECTION, properties=restarting) as middle:
            wait_until(lambda: int(show(middle, 'NRestarts') or 0) >= 3, 'it restarts')
            since = time.time()
            for unit in (left, right):
                systemctl('kill', '-s', 'USR1', unit)
            for unit in (left, right):
                wait_until(lambda u=unit: trims_of(u), f'{unit} is trimmed as ever', 240)
                wait_until(lambda u=unit: anon(u) < 20 * MIB, f'the memory of {unit} is back')
            vanish_and_come_back(middle)
            seconds = time.time() - since
            row = known_status(middle)
            expect(row is None or (row['trims'], row['verdict']) in ((0, 'learning'), (0, 'no-agent')), f'an old life: {row}')
        lines = said_by_the_daemon(since)
        about_others = [line for line in lines if not line.startswith((left, right))]
        # Five a minute, and what the two neighbours themselves are worth.
        expect(len(about_others) <= 5 * (seconds / 60 + 1), f'{len(about_others)} lines in {seconds:.0f} s: {about_others}')
        for unit in (left, right):
            expect_equal(len(trims_of(unit)), 1, f'trims of {unit}')
            expect_equal(show(unit, 'MainPID'), pids[unit], f'{unit} is the same')
            expect_equal(known_status(unit)['trims'], 1, f'trims of {unit} in status')
    expect(len(journal(f'MESSAGE_ID={MESSAGE_NO_PRESSURE}', f'_PID={show(DAEMON, "MainPID")}')) <= 1, 'more than one notice about PSI')


def vanish_and_come_back(unit):
    """Stopped and gone for the daemon, then there again, three times."""
    path = f'/run/systemd/system/{unit}'
    text = systemctl('cat', unit).stdout
    systemctl('stop', unit)
    wait_until(lambda: known_status(unit) is None, f'{unit} is gone')
    write(path, text)
    try:
        systemctl('daemon-reload')
        for _ in range(2):
            systemctl('start', unit)
            wait_until(lambda: int(show(unit, 'NRestarts') or 0) >= 2, 'it restarts again')
            systemctl('stop', unit)
            wait_until(lambda: known_status(unit) is None, f'{unit} is gone again')
        systemctl('start', unit)
    finally:
        os.unlink(path)


@contextlib.contextmanager
def eager_huge_pages():
    """khugepaged as busy as it can be; as it was afterwards."""
    wanted = {'enabled': 'always', 'defrag': 'always', 'khugepaged/defrag': '1', 'khugepaged/scan_sleep_millisecs': '100',
              'khugepaged/alloc_sleep_millisecs': '100', 'khugepaged/pages_to_scan': '100000', 'khugepaged/max_ptes_none': '511'}
    before = {}
    for name, value in wanted.items():
        with open(f'{THP}/{name}') as f:
            text = f.read().strip()
        before[name] = text.split('[')[1].split(']')[0] if '[' in text else text
        write(f'{THP}/{name}', value)
    try:
        yield
    finally:
        for name, value in before.items():
            write(f'{THP}/{name}', value)


@check('neighbours: huge pages fill up what a trim emptied: named so, and no loop (C15)')
def c15():
    if not os.path.exists(f'{THP}/khugepaged'):
        raise Skip('this kernel has no transparent huge pages')
    # One block of each eight pages survives: a trim gives back the pages between, huge pages cover them again.
    command = f'{WORKLOADS}/c5-stall --size=256M --keep=33 --operations=10'
    with eager_huge_pages(), service('c15.service', command, SECTION.replace('CooldownSec=1s', 'CooldownSec=5s')) as unit:
        entry = wait_until(lambda: trims_of(unit), 'it is trimmed', 240)[0]
        after = int(entry['MEMGUARD_AFTER_BYTES'])
        expect(int(entry['MEMGUARD_BEFORE_BYTES']) - after > 64 * MIB, f'the case is not what it should be: {entry["MESSAGE"]}')
        # khugepaged takes its time, a guest that gets little of it all the more: what counts is the verdict, and the waits after it.
        wait_until(lambda: (r := known_status(unit)) and r['verdict'] == 'refilled', 'khugepaged has filled it up, which is seen', 360)
        expect(memory_stat(unit)['anon_thp'] > 0, 'the case is not what it should be: no huge pages')
        seen = len(trims_of(unit))
        run('sleep', '60')
        at = [int(e['__REALTIME_TIMESTAMP']) for e in trims_of(unit)[seen - 1:]]
        waits = [later - earlier for earlier, later in zip(at, at[1:])]
        expect(len(waits) <= 3, f'{len(waits)} trims in a minute: a loop')
        expect(all(later > 1.3 * earlier for earlier, later in zip(waits, waits[1:])), f'no back-off: {waits}')


@check('neighbours: huge pages outside of the heap are nobody\'s to trim (C15)')
def c15_not_heap():
    command = f'{WORKLOADS}/c15-hugepages --size=256M --seconds=20 --period=5'
    with eager_huge_pages(), service('c15-aside.service', command, SECTION, properties=ONE_THREAD) as unit:
        wait_until(lambda: any('phase idle' in e['MESSAGE'] for e in journal('-u', unit)), 'it is over', 300)
        wait_until(lambda: (r := known_status(unit)) and r['live_bytes'] is not None, 'statistics')
        row = known_status(unit)
        expect(row['retained_bytes'] < 16 * MIB, f'counted as heap: {row}')
        expect_equal((row['trims'], row['would_trim'], len(trims_of(unit))), (0, 0, 0), 'trims')
