# SPDX-License-Identifier: MIT
"""The Debian packages on a real systemd: installed, upgraded, removed and purged while services run, one of them enrolled.

Only in a guest that was given the packages (tests/vm/guest --packages). It begins by taking away what `meson install`
has put there, so nothing may come after it.
"""
import contextlib
import glob
import os
import time

from check_55_exporter import has
from check_80_enroll import DROPIN, SECTION, environment_of, processes
from harness import (BUILD, CONFIG, DAEMON, WORKLOADS, check, expect, expect_equal, is_active, journal, known_status, main_pid,
                     remove, run, show, systemctl, wait_until, write)

DISK, MOUNT = '/dev/vdb', '/mnt'
UNITS = '/etc/systemd/system'
ENROLLED, PLAIN = 'shop.service', 'plain.service'
OUR_UNITS = ('memguard.service', 'memguard.socket', 'memguard-exporter.service', 'memguard-exporter.socket',
             'memguard-pressure.socket')
UNDISTURBED = (ENROLLED, PLAIN, 'dbus.service', 'systemd-journald.service')
PACKAGES = ('memguard', 'memguard-exporter', 'libmemguard0', 'libmemguard-dev')


def with_packages(name):
    """Registers a check where the disk is there, and none elsewhere."""
    return check(name, daemon=False) if os.path.exists(DISK) else lambda function: function


def dpkg(*arguments):
    return run('dpkg', *arguments, env={**os.environ, 'DEBIAN_FRONTEND': 'noninteractive'})


def take_away_what_meson_installed():
    systemctl('stop', *OUR_UNITS, ok=None)
    systemctl('disable', *OUR_UNITS, ok=None)
    with open(f'{BUILD}/meson-logs/install-log.txt') as f:
        for path in (line.strip() for line in f if line.startswith('/')):
            if not os.path.isdir(path):
                remove(path)
    for path in glob.glob('/usr/lib/*/libmemguard*'):  # links of the library's name
        remove(path)
    run('rm', '-rf', CONFIG, '/var/lib/memguard', '/run/memguard', '/usr/share/memguard')
    for path in glob.glob('/usr/lib/*/memguard'):
        os.rmdir(path)
    systemctl('daemon-reload')


def files():
    """Every file of the configuration; elsewhere, every path that bears our name. Not what dpkg keeps for itself."""
    found = set()
    for top in ('/etc', '/usr', '/var', '/run/memguard'):
        for directory, directories, names in os.walk(top):
            if directory in ('/usr/src', '/var/lib/dpkg', '/var/log', '/var/cache'):
                directories.clear()
                continue
            found.update(path for path in (f'{directory}/{name}' for name in names) if top == '/etc' or 'memguard' in path)
            found.update(f'{directory}/{name}' for name in directories if 'memguard' in name)
    return found


@contextlib.contextmanager
def services():
    """One service to be enrolled and one not, as an operator has them. memguardctl may be gone when they end."""
    for unit in (ENROLLED, PLAIN):
        write(f'{UNITS}/{unit}', f'[Unit]\nDescription=A service\n[Service]\nExecStart={WORKLOADS}/c1-arenas --blocks=64\n')
    systemctl('daemon-reload')
    try:
        systemctl('start', ENROLLED, PLAIN)
        yield
    finally:
        systemctl('kill', '-s', 'KILL', ENROLLED, PLAIN, ok=None)
        systemctl('stop', ENROLLED, PLAIN, ok=None)
        systemctl('reset-failed', ENROLLED, PLAIN, ok=None)
        remove(f'{UNITS}/{ENROLLED}')
        remove(f'{UNITS}/{PLAIN}')
        systemctl('daemon-reload')


def lives():
    """What changes with any restart of these."""
    return {unit: [show(unit, name) for name in ('MainPID', 'NRestarts', 'InvocationID', 'ActiveEnterTimestampMonotonic')]
            for unit in UNDISTURBED}


def is_connected():
    row = known_status(ENROLLED)
    return row and row['agents'] == 1


def loader_messages(since):
    return [e['MESSAGE'] for e in journal('-u', ENROLLED, f'--since=@{since}') if 'ld.so' in str(e['MESSAGE'])]


def installed():
    dpkg('--install', *glob.glob(f'{MOUNT}/*.deb'))
    expect_equal(dpkg('--audit').stdout, '', 'dpkg --audit')
    for unit in (DAEMON, 'memguard.socket', 'memguard-exporter.socket'):
        expect(is_active(unit), f'{unit} was not started')
        expect_equal(systemctl('is-enabled', unit).stdout.strip(), 'enabled', unit)
    expect(not is_active('memguard-exporter.service'), 'the exporter runs though nobody has asked')
    expect(not is_active('memguard-pressure.socket'), 'the socket for memory pressure is there though nobody wants it')
    said = run('memguardctl', 'enroll', ENROLLED, '--restart').stdout
    expect('the agent has connected' in said, said)
    wait_until(has('memguard_up 1'), 'the exporter answers')


def upgraded():
    before, daemon = lives(), main_pid(DAEMON)
    dpkg('--install', *glob.glob(f'{MOUNT}/next/*.deb'))
    expect_equal(dpkg('--audit').stdout, '', 'dpkg --audit')
    wait_until(lambda: is_active(DAEMON) and main_pid(DAEMON) != daemon, 'the daemon is the new one')
    with open(f'/proc/{main_pid(ENROLLED)}/maps') as f:
        expect('libmemguard-preload.so (deleted)' in f.read(), 'the service has not the old agent')
    wait_until(is_connected, 'the old agent has found the new daemon')
    expect_equal([p['agent'] for p in processes(ENROLLED)], ['loaded'], 'list-processes')
    wait_until(has('memguard_up 1'), 'the exporter answers')
    expect_equal(lives(), before, 'services over the upgrade')


def removed():
    before = lives()
    dpkg('--remove', 'memguard-exporter', 'memguard')
    for path in (DROPIN, os.path.dirname(DROPIN), SECTION):
        expect(not os.path.exists(path), f'{path} is still there')
    expect('LD_PRELOAD' not in show(ENROLLED, 'Environment'), 'systemd has not read the units again')
    for unit in OUR_UNITS:
        expect_equal((show(unit, 'ActiveState'), show(unit, 'LoadState')), ('inactive', 'not-found'), unit)
    dpkg('--remove', 'libmemguard-dev', 'libmemguard0')
    expect_equal(lives(), before, 'services over the removal')

    since = time.time()
    systemctl('restart', ENROLLED)
    expect('LD_PRELOAD' not in environment_of(main_pid(ENROLLED)), 'the agent is asked for still')
    expect_equal(loader_messages(since), [], 'what the loader says')


@with_packages('package: install, upgrade, removal and purge leave nothing and disturb no service')
def life():
    run('mount', '-o', 'ro', DISK, MOUNT)
    take_away_what_meson_installed()
    before_all = files()
    with services():
        before = files()
        installed()
        upgraded()
        removed()
        alive = lives()
        dpkg('--purge', *PACKAGES)
        expect_equal(lives(), alive, 'services over the purge')
        expect_equal(sorted(files() ^ before), [], 'files that came or went')
    expect_equal(sorted(files() ^ before_all), [], 'files that came or went, services included')
