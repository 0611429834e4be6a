#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The layer law of src/ as a test, on what the compiler made and on what the sources say.

layers.py archive LAYER FILE           undefined symbols of a static library against layers.allow
layers.py shared FILE PATTERN...       libc is all it needs, PATTERNs are all it exports
layers.py musl FILE                    what musl's libc lacks is weak, or a preloaded musl program exits with 127
layers.py sources SRC                  each layer includes only the layers below it, and no floating point
                                       stands where none may
"""
import fnmatch
import glob
import os
import re
import subprocess
import sys

ALLOW = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'layers.allow')

# Which folders of src/ a folder may include from, beside itself.
MAY_INCLUDE = {
    'base': set(),
    'proto': {'base'},
    'core': {'base'},
    'agent': {'base', 'proto'},
    'host': {'base', 'core'},
    'busclient': {'base', 'host'},
    'daemon': {'base', 'proto', 'core', 'host'},
    'ctl': {'base', 'core', 'host', 'busclient'},
    'exporter': {'base', 'core', 'host', 'busclient'},
    'replay': {'base', 'core', 'host', 'busclient'},
}
MAY_USE_SYSTEMD = {'busclient', 'daemon', 'ctl', 'exporter', 'replay'}
INTEGERS_ONLY = {'base', 'proto', 'core', 'agent'}
NEVER_INCLUDED = {'proto': {'stdio.h', 'stdlib.h', 'unistd.h', 'time.h'},
                  'core': {'stdio.h', 'stdlib.h', 'unistd.h', 'time.h', 'sys/time.h'},
                  'agent': {'stdio.h'},
                  'base': {'stdio.h', 'stdlib.h', 'locale.h'}}


# The sanitizers' runtimes are there in builds with -Db_sanitize only.
NEEDED = ('libc.so.6', 'ld-linux*', 'libasan.so.*', 'libubsan.so.*', 'libtsan.so.*')
NOT_IN_MUSL = {'fcntl64'}


def output_of(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def read_allowed():
    sections, section = {}, None
    for line in open(ALLOW, encoding='utf-8'):
        line = line.split('#')[0].strip()
        if line.startswith('['):
            section = sections.setdefault(line.strip('[]'), [])
        elif line.startswith('include '):
            for name in line.split()[1:]:
                section.extend(sections[name])
        elif line:
            section.append(line)
    return sections


def undefined_in(archive):
    defined, undefined = set(), set()
    for line in output_of('nm', archive):
        fields = line.split()
        if len(fields) == 3:
            defined.add(fields[2])
        elif len(fields) == 2 and fields[0] in 'Uwv':
            undefined.add(fields[1].split('@')[0])
    if not defined:
        raise SystemExit(f'{archive}: no symbols at all: not what was meant')
    return undefined - defined


def matches(name, patterns):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def check_archive(layer, archive):
    allowed = read_allowed()[layer]
    return [f'{layer} must not use {name}()' for name in sorted(undefined_in(archive))
            if not matches(name, allowed)]


def check_shared(path, *patterns):
    problems = []
    dynamic = '\n'.join(output_of('readelf', '-dW', path))
    for needed in re.findall(r'\(NEEDED\).*\[(.*?)\]', dynamic):
        if not matches(needed, NEEDED):
            problems.append(f'{path} needs {needed}: libc is all that every program has')
    if 'NODELETE' not in dynamic:
        problems.append(f'{path} lacks -z nodelete: dlclose() would unmap the running thread')
    for flag in ('STATIC_TLS', 'TEXTREL'):
        if flag in dynamic:
            problems.append(f'{path} has {flag}')
    exported = [line.split()[-1].split('@')[0] for line in output_of('nm', '-D', '--defined-only', path)]
    if not exported:
        problems.append(f'{path} exports nothing')
    problems += [f'{path} exports {name}: a name of the host program may be the same'
                 for name in sorted(exported) if not matches(name, patterns)]
    return problems


def check_musl(path):
    """Names of large-file support are aliases that musl's loader knows by this rule or as symbols."""
    libraries = glob.glob('/usr/lib/*-linux-musl/libc.so') + glob.glob('/lib/ld-musl-*.so.1')
    if not libraries:
        skip('no musl: install the Debian package musl')
    has = {line.split()[-1] for line in output_of('nm', '-D', '--defined-only', libraries[0])}
    lacking = []
    for line in output_of('nm', '-D', '--undefined-only', path):
        kind, name = line.split()[-2:]
        name = name.split('@')[0]
        alias = name[:-2] if name.endswith('64') and name not in NOT_IN_MUSL else name
        if kind == 'U' and not {name, alias} & has:
            lacking.append(f'{path} needs {name}(), which musl lacks: make it weak')
    return lacking


def skip(reason):
    print(reason)
    sys.exit(1 if os.environ.get('MEMGUARD_MUST_WORK') == '1' else 77)


def without_comments(text):
    """Blanks comments, keeps line numbers; a string may hold what looks like one."""
    def blank(match):
        return match.group() if match.group()[0] in '"\'' else re.sub(r'[^\n]', ' ', match.group())
    return re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', blank, text, flags=re.S)


def problems_of_line(layer, line):
    system = re.match(r'\s*#\s*include\s*<([^>]+)>', line)
    own = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
    if system:
        header = system.group(1)
        if header in NEVER_INCLUDED.get(layer, ()):
            yield f'{layer} must do without <{header}>'
        if header.startswith('systemd/') and layer not in MAY_USE_SYSTEMD:
            yield f'{layer} must do without systemd'
    elif own and '/' in own.group(1):
        other = own.group(1).split('/')[0]
        if other != layer and other not in MAY_INCLUDE[layer]:
            yield f'{layer} must not know {other}'
    elif layer in INTEGERS_ONLY and re.search(r'\b(float|double)\b', re.sub(r'".*?"', '', line)):
        yield f'{layer} has no floating point'


def check_sources(root):
    problems, files = [], 0
    for folder, _, names in sorted(os.walk(root)):
        layer = os.path.relpath(folder, root).split(os.sep)[0]
        for name in sorted(names):
            if not name.endswith(('.c', '.h')):
                continue
            files += 1
            if layer not in MAY_INCLUDE:
                problems.append(f'{folder}: no layer of that name')
                continue
            with open(os.path.join(folder, name), encoding='utf-8') as source:
                lines = without_comments(source.read()).splitlines()
            for number, line in enumerate(lines, 1):
                problems += [f'{folder}/{name}:{number}: {problem}' for problem in problems_of_line(layer, line)]
    return problems if files else [f'{root}: no sources']


def main():
    checks = {'archive': check_archive, 'shared': check_shared, 'musl': check_musl, 'sources': check_sources}
    problems = checks[sys.argv[1]](*sys.argv[2:])
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
