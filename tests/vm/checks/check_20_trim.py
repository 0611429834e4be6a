# SPDX-License-Identifier: MIT
"""The main road: a real unit retains, memguard sees it in the cgroup, asks, and the memory is back."""
import json

from harness import (DAEMON, MIB, WORKLOADS, anon, check, enrolled_service, expect, expect_equal, journal, known_status,
                     main_pid, memory_stat, run, service, show, status, systemctl, trims_of, wait_until)

C1 = f'{WORKLOADS}/c1-arenas'
SECTION = 'Mode=trim\nTrimAbove=64M\nMinGain=16M\nMaxPause=10s\nCooldownSec=1s'


@check('trim: C1, 512 MiB in eight arenas come back, once, and the cgroup shows it')
def c1():
    with enrolled_service('c1.service', C1, SECTION) as unit:
        before = wait_until(lambda: (a := anon(unit)) > 500 * MIB and a, 'the burst is there')
        pid = main_pid(unit)
        after = wait_until(lambda: (a := anon(unit)) < 20 * MIB and a, 'the memory is back', 180)
        entry = wait_until(lambda: trims_of(unit), 'the trim is in the journal')[0]
        row = wait_until(lambda: (r := known_status(unit)) and r['last_trim'] and r, 'the trim is in status')
        expect_equal(main_pid(unit), pid, 'the service itself is the same')
        check_entry(entry, unit, pid, before, after)
        check_row(row)
        held = known_status(unit)
        expect_equal(held['trims'], 1, 'trims')
        expect_equal(len(trims_of(unit)), 1, 'trims in the journal')


def check_entry(entry, unit, pid, before, after):
    """Against the cgroup as this check read it. What is not about sizes is exact."""
    expect_equal(entry['MEMGUARD_UNIT'], unit, 'MEMGUARD_UNIT')
    expect_equal(entry['OBJECT_SYSTEMD_UNIT'], unit, 'OBJECT_SYSTEMD_UNIT')
    expect_equal(entry['_SYSTEMD_UNIT'], DAEMON, 'who said it')
    expect_equal(int(entry['MEMGUARD_PID']), pid, 'MEMGUARD_PID')
    expect_equal(len(entry['MESSAGE_ID']), 32, 'length of MESSAGE_ID')
    expect(entry['MEMGUARD_REASON'], 'no reason')
    expect(abs(int(entry['MEMGUARD_BEFORE_BYTES']) - before) < 32 * MIB, f'before: {entry["MEMGUARD_BEFORE_BYTES"]}')
    expect(abs(int(entry['MEMGUARD_AFTER_BYTES']) - after) < 16 * MIB, f'after: {entry["MEMGUARD_AFTER_BYTES"]}')
    expect(abs(int(entry['TRIMMED_BYTES']) - (before - after)) < 32 * MIB, f'trimmed: {entry["TRIMMED_BYTES"]}')
    expect(int(entry['TRIMMED_USEC']) > 0, 'no duration')
    expect('MEMGUARD_MINOR_FAULTS' in entry and 'MEMGUARD_RETAINED_BYTES' in entry, 'a field is missing')
    expect(entry['MESSAGE'].startswith(f'{unit}: trimmed '), entry['MESSAGE'])


def check_row(row):
    expect_equal((row['source'], row['mode'], row['agents'], row['processes']), ('cgroup', 'trim', 1, 1), 'row')
    expect(row['last_trim']['gain_bytes'] > 450 * MIB, f'gain: {row["last_trim"]}')
    parts = [row[k] for k in ('live_bytes', 'freeable_bytes', 'pinned_bytes', 'other_bytes')]
    expect_equal(sum(parts), row['anon_bytes'] + (row['swap_bytes'] or 0), f'anon = live + freeable + pinned + other {parts}')
    expect_equal([a['name'] for a in row['allocators']], ['glibc'], 'allocators')


@check('trim: C2, the stale free bytes of glibc do not cause a second one')
def c2():
    with service('c2.service', C1, SECTION) as unit:
        wait_until(lambda: trims_of(unit), 'the first trim', 180)
        for _ in range(15):
            row = status(unit)
            ceiling = max(0, row['anon_bytes'] + (row['swap_bytes'] or 0) - row['live_bytes'])
            expect(row['freeable_bytes'] + row['pinned_bytes'] <= ceiling, f'more retained than there is: {row}')
            run('sleep', '1')
        expect_equal(len(trims_of(unit)), 1, 'trims in the journal')


@check('trim: a unit without consent is measured, counted, and left alone')
def observed():
    with service('observed.service', C1, SECTION.replace('Mode=trim', 'Mode=observe')) as unit:
        wait_until(lambda: anon(unit) > 500 * MIB, 'the burst is there')
        row = wait_until(lambda: (r := known_status(unit)) and r['would_trim'] and r, 'would have trimmed', 180)
        expect(row['freeable_bytes'] > 400 * MIB, f'freeable: {row["freeable_bytes"]}')
        expect(anon(unit) > 500 * MIB, 'it was trimmed all the same')
        expect_equal((row['trims'], len(trims_of(unit))), (0, 0), 'trims')
        by_hand(unit)


def by_hand(unit):
    """An operator's own trim works in observe mode, and a dry run changes nothing."""
    before = anon(unit)
    foreseen = json.loads(run('memguardctl', '--json=short', 'trim', '--dry-run', unit).stdout)
    expect(foreseen['expected_bytes'] > 400 * MIB, f'dry run: {foreseen}')
    expect(abs(anon(unit) - before) < 8 * MIB, 'the dry run has trimmed')
    done = json.loads(run('memguardctl', '--json=short', 'trim', unit).stdout)
    expect(done['gain_bytes'] > 400 * MIB, f'by hand: {done}')
    wait_until(lambda: anon(unit) < 20 * MIB, 'the memory is back')


@check('trim: memguardctl works over the private socket and over the system bus')
def both_ways():
    expect('memguard' in run('memguardctl', '--no-pager', 'status').stdout.splitlines()[0], 'no host line')
    host = json.loads(run('busctl', '--json=short', 'call', 'org.memguard1', '/org/memguard1', 'org.memguard1.Manager',
                          'GetHost').stdout)
    expect_equal(host['data'][0]['hierarchy']['data'], 'unified', 'hierarchy')


@check('trim: page cache, slab, shared memory and tmpfs are not heap (C10)')
def c10():
    section = SECTION.replace('TrimAbove=64M', 'TrimAbove=8M').replace('MinGain=16M', 'MinGain=4M')
    # It has one thread, and a preloaded agent waits for the second unless told otherwise.
    thread = ('Environment=MEMGUARD_THREAD=always',)
    with service('c10.service', f'{WORKLOADS}/c10-not-heap', section, properties=thread) as unit:
        wait_until(lambda: any('phase idle' in e['MESSAGE'] for e in journal('-u', unit)), 'it is idle', 300)
        wait_until(lambda: (r := known_status(unit)) and r['live_bytes'] is not None, 'statistics')
        for _ in range(10):
            run('sleep', '1')
            row, stat = status(unit), memory_stat(unit)
            expect(16 * MIB < row['anon_bytes'] < 28 * MIB, f'anon: {row["anon_bytes"]}')
        expect(abs(row['shmem_bytes'] - stat['shmem']) < 4 * MIB, f'shmem: {row["shmem_bytes"]}, cgroup {stat["shmem"]}')
        expect(row['shmem_bytes'] > 60 * MIB and stat['file'] > 100 * MIB, f'the case is not what it should be: {stat}')
        expect_equal((row['trims'], row['would_trim'], len(trims_of(unit))), (0, 0, 0), 'trims')


@check('trim: no unit but the named ones was touched')
def others():
    for entry in journal('-u', DAEMON):
        if 'MEMGUARD_AFTER_BYTES' in entry:
            expect(entry['MEMGUARD_UNIT'].split('.')[0] in ('c1', 'c2', 'observed'), entry['MESSAGE'])
    expect_equal(systemctl('--failed', '--no-legend', '--plain').stdout.strip(), '', 'failed units')
    expect_equal(show(DAEMON, 'NRestarts'), '0', 'restarts of the daemon')
