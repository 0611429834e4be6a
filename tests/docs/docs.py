#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whatever a user can type or link against is in its manual page.

docs.py words PAGE REGEX SOURCE...     every match of REGEX (its group, where it has one) in the sources
docs.py options PAGE PROGRAM [ARG...]  every option, and every command, that PROGRAM ARG... --help prints

A PAGE, SOURCE or PROGRAM that is not there skips the test (exit code 77), or fails it where
MEMGUARD_MUST_WORK=1.
"""
import os
import re
import subprocess
import sys


def skip(reason):
    print(reason)
    sys.exit(1 if os.environ.get('MEMGUARD_MUST_WORK') == '1' else 77)


def read(path):
    if not os.path.exists(path):
        skip(f'{path} is not there')
    with open(path, encoding='utf-8') as file:
        return file.read()


def read_source(path):
    text = read(path)
    if path.endswith(('.c', '.h')):
        text = re.sub(r'/\*.*?\*/', ' ', text, flags=re.S)
    return text


def is_in_page(word, page):
    """As a whole: --all is not found in --allocators. scdoc's backslashes are no part of a word."""
    return re.search(r'(?<![A-Za-z0-9-])' + re.escape(word) + r'(?![A-Za-z0-9-])', page) is not None


def words_of(regex, *sources):
    words = set()
    for source in sources:
        for match in re.finditer(regex, read_source(source), flags=re.M):
            words.add(match.group(1) if match.groups() else match.group())
    return words


def options_of(program, *arguments):
    if not os.path.exists(program):
        skip(f'{program} is not built')
    run = subprocess.run([program, *arguments, '--help'], stdout=subprocess.PIPE, text=True, timeout=60)
    if run.returncode != 0:
        print(f'{program} --help: exit code {run.returncode}')
        sys.exit(1)
    options = re.findall(r'(?<![\w-])(--[a-z][a-z0-9-]*|-[A-Za-z])(?![\w-])', run.stdout)
    commands = re.findall(r'^  ([a-z][a-z-]*) ', run.stdout, flags=re.M)
    return {*options, *commands}


def main():
    kind, page_path, *arguments = sys.argv[1:]
    page = read(page_path).replace('\\', '')
    words = {'words': words_of, 'options': options_of}[kind](*arguments)
    missing = sorted(word for word in words if not is_in_page(word, page))
    for word in missing:
        print(f'{page_path} says nothing about {word}')
    if not words:
        print(f'nothing found in {" ".join(arguments)}: the test looks in the wrong place')
    return 1 if missing or not words else 0


if __name__ == '__main__':
    sys.exit(main())
