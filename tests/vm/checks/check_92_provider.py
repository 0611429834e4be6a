# SPDX-License-Identifier: MIT
"""The memory-pressure protocol with real clients: a program on libsystemd's event loop, and systemd's own journald. They are told on
request and when their unit is under pressure, and never notice that the daemon is restarted, stopped or killed."""
import base64
import contextlib
import json
import os
import signal
import stat
import time

from harness import (CONFIG, DAEMON, MIB, WORKLOADS, Skip, anon, cgroup, check, ended, ensure_daemon, expect, expect_equal, is_active,
                     journal, known_status, main_pid, remove, run, show, systemctl, wait_until, write)

SOCKET = 'memguard-pressure.socket'
PATH = '/run/memguard/pressure.sock'
CLIENT = f'{WORKLOADS}/pressure-client'
MESSAGE_CLIENTS_TOLD = '22196890405b49efb55dbc2a6575768e'
JOURNALD = 'systemd-journald.service'


def token(unit):
    return base64.b64encode(f'memguard 1 {unit}\n'.encode()).decode()


def variables(unit, of=None):
    return ['MemoryPressureWatch=skip', f'Environment=MEMORY_PRESSURE_WATCH={PATH}',
            f'Environment=MEMORY_PRESSURE_WRITE={token(of or unit)}']


def stored():
    return int(show(DAEMON, 'NFileDescriptorStore'))


@contextlib.contextmanager
def provider():
    """As memguardd(8) has it: the number, the socket before the daemon. Afterwards all is off again."""
    if not os.path.exists(CLIENT):
        raise Skip('libsystemd is older than 254: it has no clients of memory pressure')
    write(f'{CONFIG}/60-pressure.conf', '[Daemon]\nPressureClients=64\n')
    systemctl('stop', DAEMON)
    systemctl('reset-failed', DAEMON, ok=None)  # so many starts in a row are no fault here
    try:
        systemctl('start', SOCKET)
        ensure_daemon()
        yield
    finally:
        remove(f'{CONFIG}/60-pressure.conf')
        systemctl('stop', SOCKET, DAEMON, ok=None)
        systemctl('clean', '--what=fdstore', DAEMON, ok=None)
        ensure_daemon()


def output(unit):
    with contextlib.suppress(FileNotFoundError), open(f'/run/{unit}.out') as f:
        return f.read().splitlines()
    return []


@contextlib.contextmanager
def client(unit, command=CLIENT, of=None, properties=()):
    """A service whose output is a file, so that its every line can be counted."""
    remove(f'/run/{unit}.out')
    with ended(unit, ''):
        run('systemd-run', '--quiet', f'--unit={unit}', '--service-type=exec', f'--property=StandardOutput=append:/run/{unit}.out',
            *(f'--property={p}' for p in (*variables(unit, of), *properties)), *command.split())
        wait_until(lambda: output(unit), f'{unit} is set up')
        yield unit
    remove(f'/run/{unit}.out')


def counters(unit):
    """How often its event loop has turned, and how often it was told, as of now. The question itself is one turn more."""
    before = len(output(unit))
    systemctl('kill', '-s', 'USR1', '--kill-whom=main', unit)
    wait_until(lambda: len(output(unit)) > before, f'{unit} answers')
    words = output(unit)[-1].split()
    return int(words[1]), int(words[3])


def is_client(unit, count=1):
    return (row := known_status(unit)) and row['pressure_clients'] == count


def wait_client(unit):
    wait_until(lambda: is_client(unit), lambda: f'{unit} is a client: {known_status(unit)}')


def tell(unit):
    """By hand: one byte, one call of its handler."""
    told = counters(unit)[1]
    result = json.loads(run('memguardctl', '--json=short', 'trim', unit).stdout)
    expect_equal((result['result'], result['asked']), ('told', 1), 'trim')
    wait_until(lambda: counters(unit)[1] == told + 1, f'{unit} is told')


def expect_quiet(unit, seconds=5):
    """A loop that spins turns some hundred thousand times a second."""
    before = counters(unit)
    time.sleep(seconds)
    after = counters(unit)
    expect_equal((after[0] - before[0], after[1] - before[1]), (1, 0), f'turns and calls of {unit} in {seconds} s')


@check('provider: off by default')
def off():
    expect_equal(show(SOCKET, 'UnitFileState'), 'disabled', 'the socket')
    expect(not is_active(SOCKET), 'the socket is there')
    expect(not os.path.exists(PATH), f'{PATH} is there')
    expect_equal(stored(), 0, 'stored descriptors')


@check('provider: told on request, the kernel says what came back, and the journal')
def told():
    with provider():
        expect(stat.S_ISSOCK(os.stat(PATH).st_mode), 'no socket')
        with client('told.service') as unit:
            wait_client(unit)
            wait_until(lambda: stored() == 1, 'the connection is in the store')
            before = anon(unit)
            expect(before > 60 * MIB, f'the client retains nothing: {before}')
            tell(unit)
            wait_until(lambda: anon(unit) < before - 50 * MIB, 'it came back')
            entry = wait_until(lambda: [e for e in journal('-u', unit) if e.get('MESSAGE_ID') == MESSAGE_CLIENTS_TOLD], 'it is told')[0]
            expect_equal(entry['MEMGUARD_REASON'], 'by-hand', 'reason')
            expect(int(entry['MEMGUARD_BEFORE_BYTES']) - int(entry['MEMGUARD_AFTER_BYTES']) > 50 * MIB, entry['MESSAGE'])
            expect_quiet(unit)
        # Its end leaves the store too.
        wait_until(lambda: stored() == 0, 'the connection has left the store')


@check('provider: nobody notices a daemon that is restarted, killed, stopped')
def away():
    with provider(), client('stays.service') as unit:
        wait_client(unit)
        systemctl('restart', DAEMON)
        wait_client(unit)
        expect_quiet(unit)
        tell(unit)
        old = main_pid(DAEMON)
        systemctl('kill', '-s', 'KILL', DAEMON)
        wait_until(lambda: is_active(DAEMON) and main_pid(DAEMON) not in (0, old), 'a new daemon')
        wait_client(unit)
        expect_quiet(unit)
        tell(unit)
        os.kill(main_pid(DAEMON), signal.SIGSTOP)
        try:
            expect_quiet(unit, 2)  # in emulation the watchdog is not far
        finally:
            os.kill(main_pid(DAEMON), signal.SIGCONT)
        systemctl('stop', DAEMON)
        expect(not is_active(DAEMON), 'the daemon runs')
        expect_equal(stored(), 1, 'stored while it is stopped')
        expect_quiet(unit, 10)
        expect(not is_active(DAEMON), 'the client has started it again')
        ensure_daemon()
        wait_client(unit)
        tell(unit)
        expect_equal(stored(), 1, 'stored in the end')


@check('provider: a client that starts while the daemon is stopped starts it, and is served')
def started():
    with provider():
        systemctl('stop', DAEMON)
        with client('early.service') as unit:
            wait_until(lambda: is_active(DAEMON), 'the socket has started the daemon')
            wait_client(unit)
            tell(unit)
            expect_quiet(unit)


@check('provider: the token of another unit is told nothing, also by the next daemon')
def wrong():
    with provider(), client('right.service') as right, client('wrong.service', of='right.service') as unit:
        wait_client(right)
        for _ in range(2):
            run('memguardctl', 'trim', unit, ok=False)
            tell(right)
            expect(is_client(unit, 0), f'it counts: {known_status(unit)}')
            expect_quiet(unit)
            expect_equal(counters(unit)[1], 0, 'told')
            systemctl('restart', DAEMON)
            ensure_daemon()
            wait_client(right)


@check("provider: the unit's own pressure is forwarded, whatever its mode")
def own_pressure():
    if not os.path.exists('/proc/pressure/memory'):
        raise Skip('this kernel has no pressure information')
    script = '/run/memguard-own-pressure.sh'
    # The client is the main process; its neighbour runs against the limit.
    write(script, f'{WORKLOADS}/c4-leak --size=1M --rate=8M --period=100000 > /dev/null &\nexec {CLIENT}\n')
    with provider(), client('own.service', f'/bin/sh {script}', properties=(f'MemoryHigh={160 * MIB}', 'MemorySwapMax=0')) as unit:
        wait_client(unit)
        expect_equal(known_status(unit)['mode'], 'observe', 'mode')
        path = cgroup(unit) + '/memory.pressure'
        links = f'/proc/{main_pid(DAEMON)}/fd'
        wait_until(lambda: any(os.path.exists(f'{links}/{fd}') and os.readlink(f'{links}/{fd}') == path for fd in os.listdir(links)),
                   'its trigger is armed')
        wait_until(lambda: any(int(line.split()[3]) > 0 for line in output(unit)), f'it is told: {path}', 240)


@check('provider: systemd-journald follows it, and its restarts')
def journald():
    drop_in = f'/run/systemd/system/{JOURNALD}.d/memguard-pressure.conf'
    with provider():
        try:
            write(drop_in, '[Service]\n' + ''.join(f'{line}\n' for line in variables(JOURNALD)))
            systemctl('daemon-reload')
            systemctl('restart', JOURNALD)
            wait_client(JOURNALD)
            old = main_pid(JOURNALD)
            result = json.loads(run('memguardctl', '--json=short', 'trim', JOURNALD).stdout)
            expect_equal((result['result'], result['asked']), ('told', 1), 'trim')
            systemctl('restart', DAEMON)
            wait_client(JOURNALD)
            used = cpu_usec(JOURNALD)
            systemctl('stop', DAEMON)
            time.sleep(10)
            # Spinning would take all of it.
            expect(cpu_usec(JOURNALD) - used < 5000000, 'journald spins')
            ensure_daemon()
            wait_client(JOURNALD)
            expect_equal(main_pid(JOURNALD), old, 'journald kept running')
            run('systemd-cat', '-t', 'provider', 'echo', 'the journal works')
            wait_until(lambda: journal('-t', 'provider'), 'the journal works')
        finally:
            remove(drop_in)
            systemctl('daemon-reload', ok=None)
            systemctl('restart', JOURNALD, ok=None)


def cpu_usec(unit):
    with open(cgroup(unit) + '/cpu.stat') as f:
        return int(dict(line.split() for line in f)['usage_usec'])
