#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pages.py SOURCE BUILT...: man has nothing to say about the BUILT pages, and what they refer to exists.

A page of ours must be among SOURCE's, in the section that is named; one of others must be in ELSEWHERE, so that a misspelt name is seen.
Where man or scdoc is missing the test is skipped (exit code 77), or fails if MEMGUARD_MUST_WORK=1.
"""
import glob
import os
import re
import shutil
import subprocess
import sys

# Of Debian's manpages, manpages-dev, systemd, polkitd, prometheus, gnuplot.
ELSEWHERE = '''
busctl(1) journalctl(1) promtool(1) systemctl(1) systemd(1) gnuplot(1) setpriv(1) tmux(1)
clone(2) close_range(2) connect(2) fork(2) kill(2) mincore(2) prctl(2) signalfd4(2) sleep(2) socket(2) vfork(2)
free(3) mallinfo2(3) malloc(3) malloc_info(3) malloc_stats(3) malloc_trim(3) mallopt(3) popen(3) printf(3) pthread_atfork(3) pthread_create(3) sd-bus(3) sd-event(3) sd_bus_path_encode(3)
sd-journal(3) sd_listen_fds(3) sd_notify(3) sigqueue(3) syslog(3)
org.freedesktop.LogControl1(5) systemd.exec(5) systemd.kill(5) systemd.resource-control(5) systemd.unit(5)
cgroups(7) unix(7)
ld.so(8) polkit(8)
'''.split()
REFERENCE = re.compile(r'\*?([A-Za-z][A-Za-z0-9_.@-]*)\*?(\([1-8]\))')


def skip(reason):
    print(reason)
    sys.exit(1 if os.environ.get('MEMGUARD_MUST_WORK') == '1' else 77)


def ours(source):
    """NAME(SECTION) -> path of each page."""
    pages = {}
    for path in glob.glob(f'{source}/man/*.scd'):
        name, section, _ = os.path.basename(path).rsplit('.', 2)
        pages[f'{name}({section})'] = path
    return pages


def references_of(path):
    with open(path, encoding='utf-8') as file:
        text = file.read()
    return [''.join(match.groups()) for match in REFERENCE.finditer(text.replace('\\', ''))]


def check_references(pages):
    for page, path in sorted(pages.items()):
        references = references_of(path)[1:]  # the first is its own title
        for reference in sorted(set(references)):
            if reference not in pages and reference not in ELSEWHERE:
                yield f'{page} refers to {reference}, which is nowhere'
        if not any(reference in pages and reference != page for reference in references):
            yield f'{page} refers to no other page of ours'
    for page in pages:
        if not any(page in references_of(path)[1:] for other, path in pages.items() if other != page):
            yield f'no page refers to {page}'


def check_formatting(built):
    for path in built:
        for width in ('80', '132'):
            run = subprocess.run(['man', '--warnings', '-E', 'UTF-8', '-l', path], text=True, timeout=60, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env={**os.environ, 'LC_ALL': 'C.UTF-8', 'MANWIDTH': width, 'MANPAGER': 'cat', 'PAGER': 'cat'})
            if run.returncode != 0 or run.stderr:
                yield f'{path}, {width} columns: exit code {run.returncode}: {run.stderr.strip()}'
            elif len(run.stdout.splitlines()) < 20:
                yield f'{path}: hardly a page: {run.stdout!r}'


def main():
    source, *built = sys.argv[1:]
    pages = ours(source)
    problems = list(check_references(pages))
    if len(pages) < 7 or len(built) != len(pages):
        problems.append(f'{len(pages)} pages in the source, {len(built)} built')
    if not shutil.which('man'):
        skip('man is not installed')
    problems += check_formatting(built)
    print('\n'.join(problems) or f'{len(pages)} pages')
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
