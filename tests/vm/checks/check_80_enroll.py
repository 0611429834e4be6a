# SPDX-License-Identifier: MIT
"""enroll and withdraw on a real systemd: what is written, what comes of it, what is refused, and that nothing is left."""
import contextlib
import json
import os

from harness import (CONFIG, MIB, WORKLOADS, anon, check, expect, expect_equal, journal, known_status, main_pid, remove, run,
                     service, systemctl, wait_until, write)

UNITS = '/etc/systemd/system'
UNIT = 'shop.service'
DROPIN = f'{UNITS}/{UNIT}.d/50-memguard.conf'
SECTION = f'{CONFIG}/50-{UNIT}.conf'
C1 = f'{WORKLOADS}/c1-arenas'


def tree():
    """Every file that enroll could touch, with what is in it."""
    found = {}
    for top in (UNITS, CONFIG):
        for directory, _, files in os.walk(top):
            found[directory] = None
            for name in files:
                path = f'{directory}/{name}'
                found[path] = os.readlink(path) if os.path.islink(path) else open(path, 'rb').read()
    return found


@contextlib.contextmanager
def unit_file(service, unit=UNIT, start=True):
    """A service as an operator has it, with no agent."""
    write(f'{UNITS}/{unit}', f'[Unit]\nDescription=A shop\n[Service]\n{service}\n')
    systemctl('daemon-reload')
    try:
        if start:
            systemctl('start', unit)
        yield unit
    finally:
        run('memguardctl', 'withdraw', unit, ok=None)
        systemctl('kill', '-s', 'KILL', unit, ok=None)
        systemctl('stop', unit, ok=None)
        systemctl('reset-failed', unit, ok=None)
        remove(f'{UNITS}/{unit}')
        systemctl('daemon-reload')


def environment_of(pid):
    with open(f'/proc/{pid}/environ', 'rb') as f:
        return dict(v.decode().split('=', 1) for v in f.read().split(b'\0') if b'=' in v)


def processes(unit):
    return json.loads(run('memguardctl', '--json=short', 'list-processes', unit).stdout)


@check('enroll: survey finds the unit first, with its arenas, by its cgroup')
def survey():
    with unit_file(f'ExecStart={C1}') as unit:
        wait_until(lambda: anon(unit) > 500 * MIB, 'the burst is there')
        rows = json.loads(run('memguardctl', '--json=short', 'survey').stdout)
        row = next(r for r in rows if r['unit'] == unit)
        expect_equal(rows[0]['unit'], unit, 'the best candidate')
        expect_equal((row['profit'], row['agents'], row['allocators']), ('likely', 0, ['glibc']), 'row')
        expect(row['arena_heaps'] >= 8 and abs(row['anon_bytes'] - anon(unit)) < 16 * MIB, f'{row}')


@check('enroll: writes, restarts, waits for the agent; withdraw leaves nothing; both keep what the unit preloads')
def there_and_back():
    with unit_file(f'Environment="LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libm.so.6" "OTHER=50% off"\nExecStart={C1}') as unit:
        before, pid = tree(), main_pid(unit)
        printed = run('memguardctl', 'enroll', unit, '--print').stdout
        expect(DROPIN in printed and SECTION in printed and 'LD_PRELOAD=' in printed, printed)
        expect_equal(tree(), before, 'files after --print')

        said = run('memguardctl', 'enroll', unit).stdout
        expect(f'systemctl restart {unit}' in said, said)
        expect_equal(main_pid(unit), pid, 'main process without --restart')
        expect_equal(set(tree()) - set(before), {f'{UNITS}/{unit}.d', DROPIN, SECTION}, 'new files')
        wait_until(lambda: (r := known_status(unit)) and r['mode'] == 'observe' and r, 'the daemon has the section')

        said = run('memguardctl', 'enroll', unit, '--restart').stdout
        expect('the agent has connected' in said, said)
        expect(main_pid(unit) != pid, 'it was not restarted')
        found = environment_of(main_pid(unit))
        expect_equal(found['LD_PRELOAD'], '/usr/lib/x86_64-linux-gnu/libm.so.6:/usr/$LIB/libmemguard-preload.so', 'LD_PRELOAD')
        expect_equal(found['OTHER'], '50% off', 'the unit\'s own variable')
        expect_equal([p['agent'] for p in processes(unit)], ['loaded'], 'list-processes')
        noise = [e['MESSAGE'] for e in journal('-u', unit) if 'ld.so' in str(e['MESSAGE']) or 'preload' in str(e['MESSAGE'])]
        expect_equal(noise, [], 'what the loader says')

        said = run('memguardctl', 'withdraw', unit, '--restart').stdout
        expect(DROPIN in said and SECTION in said, said)
        expect_equal(tree(), before, 'files after withdraw')
        wait_until(lambda: [p['agent'] for p in processes(unit)] == ['not-configured'], 'the agent is gone')
        expect_equal(environment_of(main_pid(unit))['LD_PRELOAD'], '/usr/lib/x86_64-linux-gnu/libm.so.6', 'LD_PRELOAD')
        expect_equal(run('memguardctl', 'withdraw', unit, ok=False).returncode, 1, 'withdraw without enroll')


@check('enroll: what an operator edited or wrote is neither overwritten nor lost')
def edited():
    with unit_file(f'ExecStart={C1} --blocks=64') as unit:
        run('memguardctl', 'enroll', unit)
        with open(SECTION, 'a') as f:
            f.write('TrimAbove=1G\n')
        again = run('memguardctl', 'enroll', unit)
        expect('was edited' in again.stderr, again.stderr)
        run('memguardctl', 'withdraw', unit)
        expect(not os.path.exists(SECTION) and 'TrimAbove=1G' in open(f'{SECTION}.withdrawn').read(), 'the edited section')
        remove(f'{SECTION}.withdrawn')
        write(f'{CONFIG}/10-own.conf', f'[{unit}]\nMode=observe\n')
        try:
            said = run('memguardctl', 'enroll', unit).stdout
            expect('10-own.conf has a section' in said and not os.path.exists(SECTION), said)
        finally:
            remove(f'{CONFIG}/10-own.conf')


@check('enroll: refuses, with the way by hand, what an agent could not serve')
def refused():
    jail = 'RootDirectory=/srv'
    write('/etc/default/shop', 'A=1\nLD_PRELOAD=/x.so\n')
    for service, words in ((f'ExecStart={C1}\nRestrictAddressFamilies=AF_INET', 'RestrictAddressFamilies=AF_UNIX'),
                           (f'ExecStart={C1}\nSystemCallFilter=~@network-io', 'SystemCallFilter='),
                           (f'ExecStart={C1}\n{jail}', 'BindReadOnlyPaths='),
                           (f'ExecStart={C1}\nTemporaryFileSystem=/run', '/run is hidden'),
                           (f'ExecStart={C1}\nEnvironmentFile=/etc/default/shop', '/etc/default/shop'),
                           (f'ExecStart={C1}\nUnsetEnvironment=LD_PRELOAD', 'UnsetEnvironment='),
                           (f'ExecStart=/bin/sh -c "exec runuser -l root -c {C1}"', 'runuser -l'),
                           (f'ExecStart=/usr/bin/env -i {C1}', 'env -i'),
                           (f'ExecStart=/bin/su root -c {C1}\nUser=nobody', 'set-uid')):
        with unit_file(service, start=False) as unit:
            before = tree()
            result = run('memguardctl', 'enroll', unit, '--restart', ok=False)
            expect_equal(result.returncode, 1, f'exit code for {service!r}')
            expect('cannot enroll:' in result.stderr and words in result.stderr, f'{service!r}: {result.stderr}')
            expect_equal(tree(), before, f'files after {service!r}')
    remove('/etc/default/shop')


@check('enroll: names that are no services, and units that are not there')
def names():
    for name, code in (('system.slice', 1), ('init.scope', 1), ('getty@.service', 1), ('memguard', 1), ('../x', 1),
                       ('no-such-thing', 4)):
        result = run('memguardctl', 'enroll', name, ok=False)
        expect_equal((result.returncode, len(result.stderr.splitlines())), (code, 1), f'{name}: {result.stderr}')


@check('enroll: an instance of a template; --root writes there and puts nothing into force')
def instances():
    write(f'{UNITS}/worker@.service', f'[Service]\nExecStart={C1} --blocks=64\n')
    systemctl('daemon-reload')
    try:
        before = tree()
        run('memguardctl', 'enroll', 'worker@1', '--root=/tmp/enroll')
        expect_equal(tree(), before, 'files of the host')
        expect(os.path.exists('/tmp/enroll/etc/systemd/system/worker@1.service.d/50-memguard.conf'), 'the drop-in below the root')
        run('memguardctl', 'withdraw', 'worker@1', '--root=/tmp/enroll')
        systemctl('start', 'worker@1.service', 'worker@2.service')
        run('memguardctl', 'enroll', 'worker@1.service', '--restart')
        expect_equal([p['agent'] for p in processes('worker@1.service')], ['loaded'], 'the one')
        expect_equal([p['agent'] for p in processes('worker@2.service')], ['not-configured'], 'the other')
        run('memguardctl', 'withdraw', 'worker@1.service')
    finally:
        systemctl('stop', 'worker@1.service', 'worker@2.service', ok=None)
        remove(f'{UNITS}/worker@.service')
        systemctl('daemon-reload')


@check('enroll: is for root, and looking is for everyone')
def rights():
    with unit_file(f'ExecStart={C1} --blocks=64') as unit:
        before = tree()
        result = run('memguardctl', 'enroll', unit, ok=False, user='nobody')
        expect_equal(result.returncode, 5, f'exit code ({result.stderr})')
        run('memguardctl', 'enroll', unit, '--print', user='nobody')
        expect_equal(tree(), before, 'files')


@check('enroll: a user enrolls a unit of their own, and is not told of the system\'s of the same name')
def own_unit():
    own, no_logind = '/root/.config/systemd/user', '/run/systemd/system/user@0.service.d/10-runtime.conf'
    write(no_logind, '[Service]\nEnvironment=XDG_RUNTIME_DIR=/run/user/0\n')
    systemctl('daemon-reload')
    env = {**os.environ, 'XDG_RUNTIME_DIR': '/run/user/0', 'HOME': '/root'}
    systemctl('start', 'user@0.service')
    try:
        write(f'{own}/{UNIT}', f'[Service]\nExecStart={C1} --blocks=64\n')
        run('systemctl', '--user', 'daemon-reload', env=env)
        run('systemctl', '--user', 'start', UNIT, env=env)
        with unit_file(f'ExecStart={C1} --blocks=64'):
            wait_until(lambda: known_status(UNIT), 'the daemon knows the system\'s')
            said = run('memguardctl', 'enroll', UNIT, '--user', '--restart', env=env).stdout
            expect('the agent has connected' in said, said)
            path = run('systemctl', '--user', 'show', '--value', '-p', 'ControlGroup', UNIT, env=env).stdout.strip()
            expect_equal([p['agent'] for p in processes(path)], ['loaded'], 'the user\'s')
            expect_equal([p['agent'] for p in processes(UNIT)], ['not-configured'], 'the system\'s')
            run('memguardctl', 'withdraw', UNIT, '--user', '--restart', env=env)
            wait_until(lambda: [p['agent'] for p in processes(path)] == ['not-configured'], 'the agent is gone')
    finally:
        systemctl('stop', 'user@0.service', ok=None)
        remove(f'{own}/{UNIT}')
        remove(no_logind)
        systemctl('daemon-reload')


@check('enroll: list-processes knows why a unit that sets LD_PRELOAD has no agent')
def why():
    c12 = f'{WORKLOADS}/c12-cannot-load'
    for command, properties, want in ((f'/usr/bin/env -u LD_PRELOAD {c12} threads', (), 'preload-lost'),
                                      (f'{c12} threads', ('RestrictAddressFamilies=AF_INET',), 'socket-blocked'),
                                      (f'{c12} threads', ('TemporaryFileSystem=/run',), 'socket-hidden'),
                                      (f'{c12} single', (), 'single-threaded'),
                                      (f'{c12} threads', ('User=nobody', 'PrivateUsers=yes'), 'loaded')):
        with service('why.service', command, properties=properties) as unit:
            wait_until(lambda: known_status(unit), 'the daemon knows it')
            wait_until(lambda: [p['agent'] for p in processes(unit)] == [want],
                       lambda: f'{want}: {command} {properties}: {processes(unit)}')
