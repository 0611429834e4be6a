# SPDX-License-Identifier: MIT
"""D-Bus on a real system bus: objects and their signals, the log level by systemctl, polkit, and systemd's command signal."""
import contextlib
import json
import os
import subprocess

from harness import (DAEMON, WORKLOADS, Skip, check, expect, expect_equal, journal, known_status, main_pid, remove, run, service, systemctl,
                     wait_until, write)

NAME = 'org.memguard1'
ROOT = '/org/memguard1'
SMALL = f'{WORKLOADS}/c1-arenas --threads=2 --blocks=64'
OPERATOR = 'nobody'  # any user who is not root
RULE = '/etc/polkit-1/rules.d/50-memguard-check.rules'
DENIED = 5


def path_of(unit):
    """As systemd escapes it in object paths."""
    escaped = ''.join(c if c.isalnum() and not (i == 0 and c.isdigit()) else f'_{ord(c):02x}' for i, c in enumerate(unit))
    return f'{ROOT}/unit/{escaped}'


def busctl(*arguments, ok=True, user=None):
    return run('busctl', '--no-pager', *arguments, ok=ok, user=user)


def tree():
    return busctl('--list', 'tree', NAME).stdout.split()


def known(unit):
    return wait_until(lambda: (r := known_status(unit)) and r['agents'] == 1, f'{unit} is known with its agent')


@contextlib.contextmanager
def monitored():
    """What comes from the daemon, as a list of messages that grows while it is read."""
    process = subprocess.Popen(['busctl', '--json=short', 'monitor', NAME], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    os.set_blocking(process.stdout.fileno(), False)
    text = bytearray()

    def messages():
        text.extend(process.stdout.read() or b'')
        complete = bytes(text).rpartition(b'\n')[0]
        return [json.loads(line) for line in complete.splitlines() if line.startswith(b'{')]
    try:
        # It is listening once it has seen something: a call of ours.
        wait_until(lambda: (busctl('call', NAME, ROOT, f'{NAME}.Manager', 'GetLogLevel') and
                            any(m.get('member') == 'GetLogLevel' for m in messages())), 'busctl monitor listens')
        yield messages
    finally:
        process.terminate()
        process.wait()


@check('bus: each unit is an object while it is there, readable by everyone')
def objects():
    with service('object.service', SMALL, 'Mode=observe') as unit:
        known(unit)
        path = path_of(unit)
        expect(path in tree(), f'{path} is not in {tree()}')
        shown = busctl('introspect', NAME, path, user=OPERATOR).stdout
        for name in ('Name', 'Mode', 'Verdict', 'Reason', 'AnonBytes', 'FreeableBytes', 'Trims', 'LastTrim', 'Allocators'):
            expect(f'.{name} ' in shown, f'no {name} in {shown}')
        expect_equal(busctl('get-property', NAME, path, f'{NAME}.Unit', 'Mode', 'Agents', user=OPERATOR).stdout, 's "observe"\nt 1\n',
                     'Mode and Agents')
        managed = busctl('call', NAME, ROOT, 'org.freedesktop.DBus.ObjectManager', 'GetManagedObjects', user=OPERATOR).stdout
        expect(f'"{path}"' in managed, 'not among the managed objects')
    wait_until(lambda: path not in tree(), 'the object has gone with its unit')


@check('bus: signals tell what comes, what changes and what goes')
def signals():
    unit = 'signal.service'
    path = path_of(unit)
    with monitored() as messages:

        def seen(member, of=lambda m: m['path'] == path):
            return [m for m in messages() if m.get('member') == member and of(m)]

        def about_it(message):
            return message['payload']['data'][0] == path
        with service(unit, SMALL, 'Mode=observe'):
            wait_until(lambda: seen('InterfacesAdded', about_it), 'it has come')
            known(unit)
            run('memguardctl', 'pause', unit)
            wait_until(lambda: any('Paused' in m['payload']['data'][1] for m in seen('PropertiesChanged')), 'it has changed')
            run('memguardctl', 'resume', unit)
        wait_until(lambda: seen('InterfacesRemoved', about_it), 'it has gone')
        for message in seen('PropertiesChanged'):
            expect_equal(message['payload']['data'][0], f'{NAME}.Unit', 'the interface')
            expect('AnonBytes' not in message['payload']['data'][1], 'a number of each tick makes a signal')


@check('bus: systemctl service-log-level and service-log-target')
def log_level():
    before = systemctl('service-log-level', DAEMON).stdout.strip()
    try:
        systemctl('service-log-level', DAEMON, 'debug')
        expect_equal(run('memguardctl', 'log-level').stdout.strip(), 'debug', 'log level')
        expect_equal(systemctl('service-log-level', DAEMON).stdout.strip(), 'debug', 'what systemctl reads')
        systemctl('service-log-level', DAEMON, 'loud', ok=False)
        expect(systemctl('service-log-target', DAEMON).stdout.strip() in ('auto', 'journal'), 'log target')
        denied = run('busctl', 'set-property', NAME, '/org/freedesktop/LogControl1', 'org.freedesktop.LogControl1', 'LogLevel', 's', 'err',
                     user=OPERATOR, ok=None)
        expect(denied.returncode != 0, 'another user has set the log level')
    finally:
        systemctl('service-log-level', DAEMON, before)


def need_polkit():
    if systemctl('cat', 'polkit.service', ok=None).returncode != 0:
        raise Skip('polkit is not installed')


def operate(verb, unit):
    return run('memguardctl', verb, unit, user=OPERATOR, ok=None).returncode


@check('bus: polkit lets an operator do what a rule allows, to the unit it names, and nothing else')
def polkit():
    need_polkit()
    with service('mine.service', SMALL, 'Mode=observe') as mine, service('theirs.service', SMALL, 'Mode=observe') as theirs:
        known(mine)
        known(theirs)
        expect_equal(operate('pause', mine), DENIED, 'pause without a rule')
        write(RULE, 'polkit.addRule(function(action, subject) {\n'
              f'    if (subject.user == "{OPERATOR}" && action.lookup("unit") == "{mine}" &&\n'
              '        (action.id == "org.memguard1.pause" || action.id == "org.memguard1.trim"))\n'
              '        return polkit.Result.YES;\n'
              '});\n')
        os.chmod(RULE, 0o644)
        try:
            wait_until(lambda: operate('pause', mine) == 0, 'the rule is in force')
            expect(known_status(mine)['reason'] is not None, 'no decision')
            expect_equal(operate('pause', theirs), DENIED, 'pause of another unit')
            expect_equal(operate('resume', mine), DENIED, 'resume, which the rule does not name')
            expect_equal(operate('pause', '--all'), DENIED, 'pause of everything')
            expect(operate('trim', mine) != DENIED, 'trim is denied')
            expect_equal(run('memguardctl', 'reload', user=OPERATOR, ok=None).returncode, DENIED, 'reload')
            paused = [e for e in journal('-u', mine) if e.get('MESSAGE_ID') == '1856ce4f9bb24b41a2ff8515ecebfcf5']
            expect_equal(paused[-1].get('MEMGUARD_SENDER_UID'), '65534', 'who has paused it, by the journal')
        finally:
            remove(RULE)
            run('memguardctl', 'resume', mine)


@check('bus: a polkit that hangs, or is not there, stops nobody but those who need it')
def no_polkit():
    need_polkit()
    old = main_pid(DAEMON)
    with service('alone.service', SMALL, 'Mode=observe') as unit:
        known(unit)
        systemctl('start', 'polkit.service')
        systemctl('kill', '-s', 'STOP', 'polkit.service')
        waiting = subprocess.Popen(['setpriv', '--reuid', OPERATOR, '--regid', 'nogroup', '--clear-groups', 'memguardctl', 'pause', unit],
                                   stderr=subprocess.DEVNULL)
        try:
            for verb in ('pause', 'resume'):
                run('memguardctl', verb, unit)
            expect(known_status(unit), 'no status')
        finally:
            waiting.terminate()
            waiting.wait()
            systemctl('kill', '-s', 'CONT', 'polkit.service')
        systemctl('mask', '--runtime', '--now', 'polkit.service')
        try:
            expect_equal(operate('pause', unit), DENIED, 'pause without polkit')
            run('memguardctl', 'pause', unit)
            run('memguardctl', 'resume', unit)
        finally:
            systemctl('unmask', '--runtime', 'polkit.service')
    expect_equal(main_pid(DAEMON), old, 'the daemon has lived on')


@check('bus: the signal RTMIN+18 with 0x300 makes the daemon trim itself')
def command_signal():
    if 'kill-value' not in run('systemctl', '--help').stdout:
        raise Skip('this systemctl cannot send a value with a signal (before 254)')
    old = main_pid(DAEMON)
    said = len(journal('_SYSTEMD_UNIT=' + DAEMON))
    systemctl('kill', '--kill-whom=main', '-s', 'RTMIN+18', '--kill-value=0x300', DAEMON)
    wait_until(lambda: any('trimmed itself by request' in e['MESSAGE'] for e in journal('_SYSTEMD_UNIT=' + DAEMON)[said:]), 'it says so')
    expect_equal(main_pid(DAEMON), old, 'the daemon has lived on')
