# SPDX-License-Identifier: MIT
"""What `meson install` has put there, and the way from there to a running daemon."""
import os
import re

from harness import (DAEMON, WORKLOADS, check, expect, expect_equal, is_active, known_status, run, service, systemctl,
                     wait_until)

SOCKET = 'memguard.socket'
EXPORTER = 'memguard-exporter.service'
EXPORTER_SOCKET = 'memguard-exporter.socket'


@check('install: systemd-analyze verify has nothing to say', daemon=False)
def verify():
    result = run('systemd-analyze', 'verify', '--man=no', DAEMON, SOCKET, EXPORTER, EXPORTER_SOCKET, 'memguard-pressure.socket')
    expect_equal((result.stdout + result.stderr).strip(), '', 'systemd-analyze verify')


@check('install: exposure by systemd-analyze security is 2.0 or less', daemon=False)
def security():
    for unit in (DAEMON, EXPORTER):
        result = run('systemd-analyze', 'security', '--no-pager', unit)
        level = re.search(r'Overall exposure level for \S+: ([0-9.]+)', result.stdout)
        expect(level and float(level[1]) <= 2.0, result.stdout[-400:])


@check('install: enabling the service enables its socket, disabling takes both back', daemon=False)
def enable():
    systemctl('enable', DAEMON)
    for unit in (DAEMON, SOCKET):
        expect_equal(systemctl('is-enabled', unit).stdout.strip(), 'enabled', unit)
    systemctl('disable', DAEMON)
    for unit in (DAEMON, SOCKET):
        expect_equal(systemctl('is-enabled', unit, ok=False).stdout.strip(), 'disabled', unit)
    systemctl('enable', DAEMON)


@check('install: without a daemon memguardctl says so in one line and exits with 3', daemon=False)
def no_daemon():
    expect(not is_active(DAEMON), 'the daemon runs already')
    result = run('memguardctl', 'status', ok=False)
    expect_equal(result.returncode, 3, 'exit code')
    expect_equal(len(result.stderr.strip().splitlines()), 1, f'lines on stderr: {result.stderr!r}')


@check('install: the first agent wakes the daemon through its socket', daemon=False)
def socket_activation():
    systemctl('start', SOCKET)
    expect(not is_active(DAEMON), 'the socket alone has started the daemon')
    with service('first.service', f'{WORKLOADS}/c1-arenas --threads=2 --blocks=64'):
        wait_until(lambda: is_active(DAEMON), 'the daemon is started')
        row = wait_until(lambda: (r := known_status('first.service')) and r['agents'] and r, 'the agent is in status')
        expect_equal((row['mode'], row['source']), ('observe', 'cgroup'), 'a unit without a section of its own')


@check('install: runtime and state directory have the right owner and mode')
def directories():
    for path, mode in (('/run/memguard', 0o755), ('/var/lib/memguard', 0o700)):
        found = os.stat(path)
        expect_equal((found.st_uid, found.st_gid, oct(found.st_mode & 0o7777)), (0, 0, oct(mode)), path)
    for path in ('/run/memguard/agent.sock', '/run/memguard/bus'):
        expect_equal(oct(os.stat(path).st_mode & 0o777), oct(0o666), path)


@check('install: two capabilities are left to the daemon, and no new ones can come')
def capabilities():
    pid = systemctl('show', '--value', '-p', 'MainPID', DAEMON).stdout.strip()
    with open(f'/proc/{pid}/status') as f:
        found = dict(line.split(':', 1) for line in f)
    allowed = 1 << 19 | 1 << 2  # CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH
    for name in ('CapEff', 'CapPrm', 'CapBnd'):
        expect_equal(hex(int(found[name], 16)), hex(allowed), name)
    expect_equal(found['NoNewPrivs'].strip(), '1', 'NoNewPrivs')
