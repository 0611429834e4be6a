# SPDX-License-Identifier: MIT
"""The exporter as systemd runs it: started by its socket, as nobody in particular, through all that its unit forbids."""
import contextlib
import http.client
import os

from harness import DAEMON, WORKLOADS, check, expect, expect_equal, is_active, known_status, main_pid, service, systemctl, wait_until

EXPORTER = 'memguard-exporter.service'
SOCKET = 'memguard-exporter.socket'


@contextlib.contextmanager
def listening():
    systemctl('start', SOCKET)
    try:
        yield
    finally:
        systemctl('stop', SOCKET, EXPORTER)


def metrics():
    connection = http.client.HTTPConnection('127.0.0.1', 10047, timeout=60)
    with contextlib.closing(connection):
        connection.request('GET', '/metrics')
        return connection.getresponse().read().decode().splitlines()


def has(line):
    return lambda: any(found.startswith(line) for found in metrics())


@check('exporter: its socket starts it, and it shows what status shows')
def activation():
    with listening(), service('shown.service', f'{WORKLOADS}/c1-arenas --threads=2 --blocks=64') as unit:
        expect(not is_active(EXPORTER), 'the socket alone has started it')
        wait_until(lambda: (r := known_status(unit)) and r['agents'] == 1, 'the agent is connected')
        wait_until(has('memguard_up 1'), 'the daemon is up')
        wait_until(has(f'memguard_unit_agents{{unit="{unit}",cgroup="'), 'the unit and its cgroup are shown')
        expect(is_active(EXPORTER), 'the service does not run')


@check('exporter: it is neither root nor has a capability')
def rights():
    with listening():
        wait_until(has('memguard_up 1'), 'the daemon is up')
        pid = main_pid(EXPORTER)
        expect(os.stat(f'/proc/{pid}').st_uid >= 61184, 'no dynamic user')
        with open(f'/proc/{pid}/status') as f:
            found = dict(line.split(':', 1) for line in f)
        for name in ('CapEff', 'CapPrm', 'CapBnd'):
            expect_equal(int(found[name], 16), 0, name)


@check('exporter: it says so when the daemon is stopped, and finds it again')
def without_daemon():
    with listening():
        wait_until(has('memguard_up 1'), 'the daemon is up')
        systemctl('stop', DAEMON)
        wait_until(has('memguard_up 0'), 'the daemon is down')
        systemctl('start', DAEMON)
        wait_until(has('memguard_up 1'), 'the daemon is up again')
        expect(is_active(EXPORTER), 'the exporter went with the daemon')
