# SPDX-License-Identifier: MIT
"""The daemon is killed, hung, stopped, restarted; services are restarted under it. Nobody notices but the journal."""
import contextlib
import json
import os
import signal
import socket
import subprocess
import time

from harness import (DAEMON, MIB, WORKLOADS, anon, check, ensure_daemon, expect, expect_equal, is_active, journal,
                     known_status, main_pid, remove, run, service, show, systemctl, trims_of, wait_until, write)

SOCKET = 'memguard.socket'
SMALL = f'{WORKLOADS}/c1-arenas --threads=2 --blocks=64'
AGENTS = 4


@contextlib.contextmanager
def connected(count=AGENTS):
    """COUNT services whose agents are connected; at the end they must still be the same processes."""
    with contextlib.ExitStack() as stack:
        units = [stack.enter_context(service(f'crowd{i}.service', SMALL)) for i in range(count)]
        wait_until(lambda: all_connected(units), 'all agents are connected')
        pids = [main_pid(unit) for unit in units]
        yield units
        expect_equal([main_pid(unit) for unit in units], pids, 'the services kept running')


def all_connected(units):
    return all((row := known_status(unit)) and row['agents'] == 1 for unit in units)


def daemon_pid_changed(old):
    return is_active(DAEMON) and main_pid(DAEMON) not in (0, old)


@check('lifecycle: killed with SIGKILL it is started again and the agents come back')
def killed():
    with connected() as units:
        old = main_pid(DAEMON)
        systemctl('kill', '-s', 'KILL', DAEMON)
        wait_until(lambda: daemon_pid_changed(old), 'a new daemon')
        wait_until(lambda: all_connected(units), 'the agents are back')
        expect(is_active(SOCKET), 'the socket is gone')


@check('lifecycle: stopping it stops the socket too, and agents that call again wake nothing')
def stopped():
    with connected() as units:
        systemctl('stop', DAEMON)
        expect(not is_active(DAEMON) and not is_active(SOCKET), 'still active after stop')
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
            expect(client.connect_ex('/run/memguard/agent.sock') != 0, 'the socket still accepts')
        # Longer than the agents' first waits before they call again.
        time.sleep(15)
        expect(not is_active(DAEMON) and not is_active(SOCKET), 'an agent has started it again')
        expect_equal(show(DAEMON, 'Result'), 'success', 'result of the stop')
        systemctl('start', DAEMON)
        expect(is_active(SOCKET), 'starting the daemon has not started the socket')
        wait_until(lambda: all_connected(units), 'the agents are back', 180)


@check('lifecycle: stopping the socket stops the daemon')
def socket_stopped():
    systemctl('stop', SOCKET)
    expect(not is_active(DAEMON), 'the daemon runs without its socket')
    systemctl('start', DAEMON)
    ensure_daemon()


@check('lifecycle: a restart under load loses no agent for good')
def restarted():
    with connected() as units:
        for _ in range(3):
            old = main_pid(DAEMON)
            systemctl('restart', DAEMON)
            expect(daemon_pid_changed(old) and is_active(SOCKET), 'not restarted')
        wait_until(lambda: all_connected(units), 'the agents are back', 180)
        expect_equal(show(DAEMON, 'NRestarts'), '0', 'restarts that nobody asked for')


@check('lifecycle: a daemon that hangs is replaced by the watchdog')
def watchdog():
    drop_in = f'/run/systemd/system/{DAEMON}.d/watchdog.conf'
    write(drop_in, '[Service]\nWatchdogSec=10s\n')
    try:
        systemctl('daemon-reload')
        systemctl('restart', DAEMON)
        time.sleep(25)
        expect_equal(show(DAEMON, 'NRestarts'), '0', 'a healthy daemon outlives its watchdog')
        old = main_pid(DAEMON)
        os.kill(old, signal.SIGSTOP)
        wait_until(lambda: daemon_pid_changed(old), 'a new daemon', 120)
        expect(any('atchdog' in e['MESSAGE'] for e in journal('UNIT=' + DAEMON)), 'it was not the watchdog')
    finally:
        remove(drop_in)
        systemctl('daemon-reload')
        systemctl('restart', DAEMON)
        ensure_daemon()


@check('lifecycle: a unit restarted in the middle of a request starts a new history')
def restarted_in_request():
    section = 'Mode=trim\nTrimAbove=64M\nMinGain=16M\nMaxPause=10s\nCooldownSec=1s\nWhen=checkpoint'
    with service('middle.service', f'{WORKLOADS}/c1-arenas', section) as unit:
        wait_until(lambda: (r := known_status(unit)) and (r['freeable_bytes'] or 0) > 400 * MIB, 'statistics', 180)
        old = main_pid(unit)
        os.kill(old, signal.SIGSTOP)
        request = subprocess.Popen(['memguardctl', 'trim', unit], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        time.sleep(2)
        expect(request.poll() is None, 'a stopped process has answered')
        systemctl('restart', unit)
        said = request.communicate(timeout=60)[0]
        expect(request.returncode != 0, f'success was told of a process that is gone: {said}')
        expect(main_pid(unit) != old, 'not restarted')
        row = wait_until(lambda: (r := known_status(unit)) and r['agents'] == 1 and (r['freeable_bytes'] or 0) > 400 * MIB and r,
                         'the new process is measured', 180)
        expect_equal((row['trims'], row['last_trim']), (0, None), 'history of the new invocation')
        expect(anon(unit) > 500 * MIB, 'the new process was trimmed by the old request')
        run('memguardctl', 'trim', unit)
        wait_until(lambda: anon(unit) < 20 * MIB, 'the new process can be trimmed')
        pids = [int(e['MEMGUARD_PID']) for e in trims_of(unit) if 'MEMGUARD_PID' in e]  # none in the one that nobody answered
        expect_equal(pids, [main_pid(unit)], 'processes that were trimmed')


@check('lifecycle: a unit that restarts five times a second disturbs nobody and fills no log')
def restless():
    flapping = ('Restart=always', 'RestartSec=100ms', 'StartLimitIntervalSec=0')
    with connected(2) as units, service('restless.service', '/bin/sleep 0.1', properties=flapping):
        time.sleep(10)
        wait_until(lambda: all_connected(units), 'the others are known as before')
        expect_equal(show(DAEMON, 'NRestarts'), '0', 'restarts of the daemon')
    said = [e['MESSAGE'] for e in journal('_SYSTEMD_UNIT=' + DAEMON, 'MEMGUARD_UNIT=restless.service')]
    expect(len(said) <= 5, f'{len(said)} lines about it: {said[:5]}')


@check('lifecycle: a name that is no unit makes no storm of questions')
def no_unit():
    name = 'no-such-unit.service'
    show(name, 'LoadState')  # systemd loads it for that, says so, and forgets it
    monitor = subprocess.Popen(['busctl', '--json=short', 'monitor', 'org.freedesktop.systemd1'], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
    try:
        time.sleep(5)
        for _ in range(3):
            show(name, 'LoadState')
        time.sleep(10)
    finally:
        monitor.terminate()
        heard = [json.loads(line) for line in monitor.communicate()[0].splitlines() if line.startswith('{')]
    news = [m for m in heard if m.get('member') == 'UnitNew' and m['payload']['data'][0] == name]
    # Asking may itself load it once more, should it have been there a moment ago.
    expect(1 <= len(news) <= 6, f'announced {len(news)} times')
