#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""completion.py SHELL SCRIPT: what a person types, TAB and Enter, in a real interactive SHELL on a terminal.

A program of our own stands for memguardctl: it knows units, and writes down the command line that the shell has made.
"""
import os
import pty
import select
import shutil
import signal
import sys
import tempfile
import time

WAIT = 60
READY = 'ready to be typed at'

MEMGUARDCTL = '''#!/bin/sh
case "$*" in
*--runtime-directory=/elsewhere*status) echo "postgresql@15-main.service trim 1/1 5M"; echo "puma.service observe 0/1 7M" ;;
*status) echo "nginx.service trim 1/1 5M"; echo "redis-server.service observe 0/1 7M"; echo "redis-other.service observe 0/1 7M" ;;
*) echo "$*" >> "$ASKED" ;;
esac
'''

SYSTEMCTL = '''#!/bin/sh
echo "mariadb.service loaded active running MariaDB"
'''

# Typed before TAB, and the command line that must come of it (with what is typed after TAB, where that is given).
CASES = [
    ('memguardctl expl\tngi\t', 'explain nginx.service'),
    ('memguardctl trim --dry\tngi\t', 'trim --dry-run nginx.service'),
    ('memguardctl pause redis-s\t', 'pause redis-server.service'),
    ('memguardctl resume red\ts\t', 'resume redis-server.service'),
    ('memguardctl --runtime-directory=/elsewhere advise post\t', '--runtime-directory=/elsewhere advise postgresql@15-main.service'),
    ('memguardctl --runtime-directory=/elsewhere trim ngi\t', '--runtime-directory=/elsewhere trim ngi'),
    ('memguardctl --json=pre\t survey', '--json=pretty survey'),
    ('memguardctl plot --since=yest\tngi\t', 'plot --since=yesterday nginx.service'),
    ('memguardctl log-level deb\t', 'log-level debug'),
    ('memguardctl enroll mari\t', 'enroll mariadb.service'),
    ('memguardctl explain nginx.service red\t', 'explain nginx.service red'),
    ('memguardctl nosuch ngi\t', 'nosuch ngi'),
]


def skip(reason):
    print(reason)
    sys.exit(1 if os.environ.get('MEMGUARD_MUST_WORK') == '1' else 77)


class Terminal:
    def __init__(self, command, environment):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], command, environment)
        self.seen = ''

    def type(self, text):
        os.write(self.fd, text.encode())

    def read(self):
        if select.select([self.fd], [], [], 0.05)[0]:
            try:
                self.seen += os.read(self.fd, 65536).decode(errors='replace')
            except OSError:
                raise SystemExit(f'the shell has ended; on the terminal:\n{self.seen}') from None

    def wait(self, condition, what):
        end = time.monotonic() + WAIT
        while not condition():
            if time.monotonic() > end:
                raise SystemExit(f'waited in vain: {what}; on the terminal:\n{self.seen}')
            self.read()

    def end(self):
        os.close(self.fd)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def prepare(directory, shell, script):
    for name, text in (('memguardctl', MEMGUARDCTL), ('systemctl', SYSTEMCTL)):
        with open(f'{directory}/{name}', 'w', encoding='utf-8') as file:
            file.write(text)
        os.chmod(f'{directory}/{name}', 0o755)
    if shell == 'bash':
        return ['bash', '--norc', '--noprofile', '-i'], f'source {script}'
    os.mkdir(f'{directory}/functions')
    shutil.copy(script, f'{directory}/functions/_memguardctl')
    return ['zsh', '-f', '-i'], f'fpath=({directory}/functions $fpath); autoload -U compinit; compinit -u -D'


def lines_of(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding='utf-8') as file:
        return file.read().splitlines()


def main():
    shell, script = sys.argv[1], os.path.abspath(sys.argv[2])
    if not shutil.which(shell):
        skip(f'{shell} is not installed')
    problems = []
    with tempfile.TemporaryDirectory() as directory:
        command, setup = prepare(directory, shell, script)
        asked = f'{directory}/asked'
        terminal = Terminal(command, {**os.environ, 'PATH': f'{directory}:{os.environ["PATH"]}', 'ASKED': asked, 'TERM': 'dumb',
                                      'INPUTRC': '/dev/null', 'HOME': directory})
        try:
            # In two parts, so that the shell's echo of what is typed is not taken for it.
            terminal.type(f"{setup}; echo '{READY[:5]}''{READY[5:]}'\n")
            terminal.wait(lambda: READY in terminal.seen, 'the shell is ready')
            for number, (typed, wanted) in enumerate(CASES):
                terminal.type(typed + '\n')
                terminal.wait(lambda n=number: len(lines_of(asked)) > n, typed)
                have = lines_of(asked)[number].rstrip()
                if have != wanted:
                    problems.append(f'{typed!r}: {have!r} instead of {wanted!r}')
        finally:
            terminal.end()
    print('\n'.join(problems) or f'{len(CASES)} command lines')
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
