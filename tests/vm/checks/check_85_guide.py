# SPDX-License-Identifier: MIT
"""memguard(7), STOP AND UNDO included, followed command by command by somebody who has only that page, with a service of Debian's."""
import os
import re
import tempfile

from harness import Skip, anon, check, expect, expect_equal, known_status, main_pid, remove, run, show, systemctl, wait_until, write

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', '..', 'man', 'memguard.7.scd')
IN_THE_PAGE, SERVICE = 'mariadb.service', 'memcached.service'
SECTION = f'/etc/memguard.ini.d/50-{SERVICE}.conf'
DROP_IN = f'/etc/systemd/system/{SERVICE}.d'


def read_page():
    with open(PAGE, encoding='utf-8') as f:
        return f.read().replace(IN_THE_PAGE, SERVICE).replace('mariadb', 'service')


def steps():
    """The numbered steps: for each, its blocks of lines."""
    guide = read_page().partition('# FIVE MINUTES')[2].partition('# STOP AND UNDO')[0]
    parts = re.split(r'^\*\d\. ', guide, flags=re.M)[1:]
    return [[block.strip().splitlines() for block in re.findall(r'^```\n(.*?)^```', part, re.M | re.S)] for part in parts]


def follow(line, directory):
    command = line.partition('#')[0].strip()
    if not command or command.startswith('meson'):  # the guest was made so
        return
    result = run('sh', '-c', f'cd {directory} && {command}', ok=None)
    # A heap that has nothing worth a trim is a case of the page: the command says so, and fails.
    allowed = (0, 1) if ' trim ' in command else (0,)
    expect(result.returncode in allowed, f'{command}: exit {result.returncode}: {result.stdout}{result.stderr}')


def edit(path, lines):
    """Sets these keys where they are, as in an editor; those that are not there come last."""
    with open(path, encoding='utf-8') as f:
        text = f.read()
    for line in lines:
        text, n = re.subn(rf'^#?{line.partition("=")[0]}=.*$', line, text, count=1, flags=re.M)
        text += '' if n else line + '\n'
    write(path, text)


def row():
    return known_status(SERVICE) or {}


def clean_up():
    systemctl('stop', SERVICE, ok=None)
    remove(SECTION)
    remove(f'{SECTION}.withdrawn')
    run('rm', '-rf', DROP_IN)
    systemctl('daemon-reload')
    run('memguardctl', 'reload', ok=None)


@check("guide: memguard(7)'s five minutes with a service of Debian's, and back")
def five_minutes():
    if systemctl('cat', SERVICE, ok=None).returncode != 0:
        raise Skip(f'{SERVICE} is not installed')
    systemctl('start', SERVICE)
    install, survey, enroll, trim, verdict, mode, plot = steps()
    try:
        with tempfile.TemporaryDirectory() as directory:
            for line in install[0] + survey[0] + enroll[0]:
                follow(line, directory)
            wait_until(lambda: row().get('agents') == 1, lambda: f'the agent is there: {row()}')
            expect_equal(row()['mode'], 'observe', 'mode')
            for line in trim[0]:
                follow(line, directory)
            expect_equal(verdict, [], 'commands of the step that only reads')
            edit(SECTION, mode[0][1:])
            for line in mode[1]:
                follow(line, directory)
            expect_equal(row()['mode'], 'trim', 'mode')
            wait_until(lambda: len(run('memguardctl', 'history', SERVICE, ok=None).stdout.splitlines()) > 3, 'there is a history')
            for line in plot[0]:
                follow(line, directory)
            with open(f'{directory}/service.svg', encoding='utf-8') as f:
                expect('<svg' in f.read(1000), 'no drawing')
        before = anon(SERVICE)
        expect(before > 0, 'it runs')
        for line in (f'memguardctl pause {SERVICE}', f'memguardctl resume {SERVICE}', f'memguardctl withdraw --restart {SERVICE}'):
            expect(line in read_page(), f'{line} is not in the page')
            follow(line, '/')
        expect(not os.path.exists(SECTION), 'the section is in force')
        expect(os.path.exists(f'{SECTION}.withdrawn'), 'what was edited is lost')
        expect('LD_PRELOAD' not in show(SERVICE, 'Environment'), 'the drop-in is in force')
        with open(f'/proc/{main_pid(SERVICE)}/maps') as f:
            expect('libmemguard' not in f.read(), 'the agent is there')
    finally:
        clean_up()
