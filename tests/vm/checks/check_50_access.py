# SPDX-License-Identifier: MIT
"""Reading is for everyone, acting for root."""
import socket
import time

from harness import (DAEMON, WORKLOADS, check, expect, expect_equal, is_active, journal, known_status, main_pid, run, service,
                     wait_until)

NOBODY = '65534'


@check('access: a user without rights reads status and may not act')
def unprivileged():
    with service('guarded.service', f'{WORKLOADS}/c1-arenas --threads=2 --blocks=64') as unit:
        wait_until(lambda: (r := known_status(unit)) and r['agents'] == 1, 'the agent is connected')
        for command in (('status',), ('status', unit), ('list-processes', unit), ('explain', unit), ('--json=short', 'status')):
            expect(run('memguardctl', '--no-pager', *command, user=NOBODY).stdout, f'{command}: nothing')
        for command in (('trim', unit), ('reload',), ('pause', unit), ('pause', '--all'), ('resume', '--all'),
                        ('log-level', 'debug')):
            result = run('memguardctl', *command, user=NOBODY, ok=False)
            expect_equal(result.returncode, 5, f'exit code of {command}: {result.stderr}')


@check('access: an unknown unit is one line and exit code 4')
def unknown():
    result = run('memguardctl', 'status', 'nosuch.service', ok=False)
    expect_equal(result.returncode, 4, 'exit code')
    expect_equal(len(result.stderr.strip().splitlines()), 1, f'lines on stderr: {result.stderr!r}')


@check('access: garbage, silence and a flood on the agents\' socket cost only the sender')
def hostile():
    old = main_pid(DAEMON)
    garbage = [b'\0' * 64, b'verb=hello\nprotocol=99\n', b'\xff' * 4096, b'verb=trim-reply\nid=1\n', b'=\n', b'verb=hello\n' * 300]
    silent = []
    for message in garbage * 5:
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        client.settimeout(5)
        client.connect('/run/memguard/agent.sock')
        try:
            client.send(message)
        except OSError:
            pass
        silent.append(client)
    flooder = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    flooder.settimeout(2)
    flooder.connect('/run/memguard/agent.sock')
    end = time.monotonic() + 3
    try:
        while time.monotonic() < end:
            flooder.send(b'verb=pong\nid=1\n')
    except OSError:
        pass
    with service('beside.service', f'{WORKLOADS}/c1-arenas --threads=2 --blocks=64') as unit:
        wait_until(lambda: (r := known_status(unit)) and r['agents'] == 1, 'an honest agent is served')
    expect(is_active(DAEMON) and main_pid(DAEMON) == old, 'the daemon did not live on')
    for client in (*silent, flooder):
        client.close()


@check('access: the log stays quiet enough to be read')
def quiet():
    said = [e for e in journal('_SYSTEMD_UNIT=' + DAEMON) if int(e['PRIORITY']) <= 3]
    unexpected = [e['MESSAGE'] for e in said if '99-broken.conf' not in e['MESSAGE']]
    expect(len(unexpected) < 10, f'{len(unexpected)} errors: {unexpected[:5]}')
