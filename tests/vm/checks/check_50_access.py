# SPDX-License-Identifier: MIT
"""Reading is for everyone, acting for root."""
import socket

from harness import (DAEMON, WORKLOADS, check, expect, expect_equal, is_active, journal, known_status, main_pid, run, service,
                     wait_until)

NOBODY = 'nobody'


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


HELLO = b'VERB=hello\nPROTOCOL=1\nHEAPS=0\nMODE=preload\n'
GARBAGE = (b'\0' * 64, b'\xff' * 4096, b'VERB=hello\nPROTOCOL=99\nHEAPS=0\n', b'VERB=trim-reply\nID=1\n', b'=\n', HELLO * 300)


def connect():
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.settimeout(30)
    client.connect('/run/memguard/agent.sock')
    return client


def is_closed(client):
    """Whether the daemon has ended the connection; what it may have sent before is read away."""
    try:
        while client.recv(4096):
            pass
        return True
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def flood(client, most=200000):
    """Sends until the connection is ended or so much was sent."""
    try:
        client.send(HELLO)
        for number in range(most):
            client.send(b'VERB=checkpoint\nTAG=%d\n' % number)
    except (ConnectionError, TimeoutError):
        pass


@check('access: garbage, silence and a flood on the agents\' socket cost only the sender')
def hostile():
    old = main_pid(DAEMON)
    silent = [connect() for _ in range(20)]
    for message in GARBAGE:
        with connect() as client:
            try:
                client.send(message)
            except OSError:
                continue  # too long for the socket itself
            expect(is_closed(client), f'still connected after {message[:40]!r}')
    with connect() as flooder:
        flood(flooder)
        with service('beside.service', f'{WORKLOADS}/c1-arenas --threads=2 --blocks=64') as unit:
            wait_until(lambda: (r := known_status(unit)) and r['agents'] == 1, 'an honest agent is served')
    expect(is_active(DAEMON) and main_pid(DAEMON) == old, 'the daemon did not live on')
    for client in silent:
        client.close()


@check('access: the log stays quiet enough to be read')
def quiet():
    said = [e for e in journal('_SYSTEMD_UNIT=' + DAEMON) if int(e['PRIORITY']) <= 3]
    unexpected = [e['MESSAGE'] for e in said if '99-broken.conf' not in e['MESSAGE']]
    expect(len(unexpected) < 10, f'{len(unexpected)} errors: {unexpected[:5]}')
