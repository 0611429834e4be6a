#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What Prometheus's own tool thinks of what we ship, and whether everything that is asked for is there.

prometheus.py metrics EXPORTER         promtool accepts what the exporter says (without a daemon, so every family is named)
prometheus.py names EXPORTER FILE...   each metric that a FILE speaks of is one of the exporter's; of a manual page: and the other way round
prometheus.py rules FILE               promtool accepts the alerts
prometheus.py alerts FILE              they fire when they should
prometheus.py dashboard FILE           is JSON that hangs together, and promtool accepts its expressions

Where promtool is missing the test is skipped (exit code 77), or fails if MEMGUARD_MUST_WORK=1.
"""
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile


def skip(reason):
    print(reason)
    sys.exit(1 if os.environ.get('MEMGUARD_MUST_WORK') == '1' else 77)


def promtool(*arguments, text=None):
    if not shutil.which('promtool'):
        skip('no promtool: install the Debian package prometheus')
    done = subprocess.run(['promtool', *arguments], input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=60)
    print(done.stdout)
    return done.returncode


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def ask_exporter(program):
    """Hands it a socket, as systemd would; there is no daemon where it looks."""
    with socket.create_server(('127.0.0.1', 0)) as listener, tempfile.TemporaryDirectory() as nothing:
        command = f'exec 3<&{listener.fileno()}; LISTEN_FDS=1 LISTEN_PID=$$ exec "$0" --runtime-directory="$1"'
        with subprocess.Popen(['sh', '-c', command, program, nothing], pass_fds=[listener.fileno()]) as process:
            try:
                connection = http.client.HTTPConnection(*listener.getsockname(), timeout=60)
                connection.request('GET', '/metrics')
                return connection.getresponse().read().decode()
            finally:
                process.terminate()


def families(program):
    types = dict(re.findall(r'^# TYPE (\S+) (\S+)$', ask_exporter(program), flags=re.M))
    names = set(types)
    for name, kind in types.items():
        if kind == 'histogram':
            names |= {f'{name}_bucket', f'{name}_sum', f'{name}_count'}
    return types, names


def metrics(program):
    return promtool('check', 'metrics', text=ask_exporter(program))


def names(program, *paths):
    types, known = families(program)
    problems = [] if len(types) > 40 else [f'only {len(types)} families']
    for path in paths:
        text = read(path).replace('\\', '')
        if path.endswith('.yml'):
            text = re.sub(r'(?m)^ *#.*$', '', text)
        spoken_of = set(re.findall(r'\bmemguard_[a-z_]+\b', text))
        problems += [f'{path} speaks of {name}, which is no metric' for name in sorted(spoken_of - known)]
        if path.endswith('.scd'):
            problems += [f'{path} says nothing about {name}' for name in sorted(set(types) - spoken_of)]
        elif len(spoken_of) < 5:
            problems.append(f'{path} speaks of {len(spoken_of)} metrics only: the test looks for the wrong thing')
    print('\n'.join(problems))
    return 1 if problems else 0


def check_expressions(board):
    """As rules, which promtool can parse."""
    rules = []
    for panel in board['panels']:
        for target in panel.get('targets', ()):
            expression = re.sub(r'\$__\w+', '5m', target['expr'])
            rules.append({'record': f'panel:{len(rules)}', 'expr': expression})
    with tempfile.NamedTemporaryFile('w', suffix='.yml') as file:  # JSON is YAML
        json.dump({'groups': [{'name': 'dashboard', 'rules': rules}]}, file)
        file.flush()
        return promtool('check', 'rules', file.name)


def dashboard(path):
    """Grafana refuses little and shows nothing instead: what it would miss."""
    board = json.loads(read(path))
    problems, seen = [], {}
    variables = {variable['name'] for variable in board['templating']['list']}
    panels = board['panels']
    for panel in panels:
        title, place = panel['title'], panel['gridPos']
        if panel['id'] in seen:
            problems.append(f'{title} has the number of {seen[panel["id"]]}')
        seen[panel['id']] = title
        if place['x'] + place['w'] > 24:
            problems.append(f'{title} does not fit in')
        if panel['type'] != 'row' and not panel['targets']:
            problems.append(f'{title} asks for nothing')
        for target in panel.get('targets', ()):
            used = set(re.findall(r'\$(?!__)(\w+)', target['expr']))
            problems += [f'{title}: no variable {name}' for name in used - variables]
            if target['expr'].count('(') != target['expr'].count(')'):
                problems.append(f'{title}: parentheses in {target["expr"]}')
    for panel in panels:
        for other in panels:
            a, b = panel['gridPos'], other['gridPos']
            if panel['id'] < other['id'] and a['x'] < b['x'] + b['w'] and b['x'] < a['x'] + a['w'] and \
                    a['y'] < b['y'] + b['h'] and b['y'] < a['y'] + a['h']:
                problems.append(f'{panel["title"]} lies on {other["title"]}')
    print('\n'.join(problems))
    return 1 if problems or len(panels) < 10 else check_expressions(board)


def main():
    kind, *arguments = sys.argv[1:]
    return {'metrics': metrics, 'names': names, 'dashboard': dashboard,
            'rules': lambda path: promtool('check', 'rules', path),
            'alerts': lambda path: promtool('test', 'rules', path)}[kind](*arguments)


sys.exit(main())
