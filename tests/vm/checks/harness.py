# SPDX-License-Identifier: MIT
"""What the guest's checks share: the list of them, their results as TAP, and short names for what they do to systemd.

A check is a function; it fails by an exception. Checks run in the order of their files; before each the daemon is started
if need be. Each leaves no unit of its own. Waiting is always for a condition, with a limit far above what it takes.
"""
import contextlib
import fnmatch
import glob
import importlib
import json
import os
import pwd
import subprocess
import time
import traceback

BUILD = '/usr/src/build'
WORKLOADS = BUILD + '/tests/workloads'
CONFIG = '/etc/memguard.ini.d'
DAEMON = 'memguard.service'
MIB = 1 << 20
CHECKS = []
SLOWNESS = 1.0


class Skip(Exception):
    """The check cannot be made here; the text says why."""


def check(name, daemon=True):
    """DAEMON: whether it must run before the check begins."""
    def register(function):
        CHECKS.append((name, function, daemon))
        return function
    return register


def measure_slowness():
    """How much slower than by itself this guest runs: an emulated one boots in about 20 s when nothing else is going on."""
    with open('/proc/uptime') as f:
        return max(1.0, float(f.read().split()[0]) / 20)


def load():
    here = os.path.dirname(os.path.abspath(__file__))
    for path in sorted(glob.glob(here + '/check_*.py')):
        importlib.import_module(os.path.basename(path)[:-3])


def run_checks(patterns, out):
    global SLOWNESS
    SLOWNESS = measure_slowness()
    load()
    wanted = [c for c in CHECKS if not patterns or any(fnmatch.fnmatch(c[0], f'*{p}*') for p in patterns)]
    print(f'1..{len(wanted)}', file=out, flush=True)
    write(f'{CONFIG}/00-checks.conf', '[Daemon]\nIntervalSec=1s\n')
    for number, (name, function, daemon) in enumerate(wanted, 1):
        started = time.monotonic()
        try:
            if daemon:
                ensure_daemon()
            function()
            line, detail = f'ok {number} - {name}', f'{time.monotonic() - started:.1f} s'
        except Skip as reason:
            line, detail = f'ok {number} - {name} # SKIP {reason}', ''
        except Exception:
            line, detail = f'not ok {number} - {name}', traceback.format_exc() + diagnose()
        print(line, file=out, flush=True)
        for text in detail.splitlines():
            print('#   ' + text, file=out, flush=True)


def diagnose():
    """What a person would look at first."""
    text = ''
    for command in ('journalctl -b -n 60 --no-pager -o short-monotonic', 'systemctl --no-pager status memguard.service memguard.socket',
                    'memguardctl --no-pager status'):
        result = run(*command.split(), ok=None)
        text += f'\n$ {command}\n{result.stdout}{result.stderr}'
    return text


def run(*command, ok=True, user=None, timeout=600, **more):
    """Runs a command. OK: True, it must succeed; False, it must fail; None, either."""
    if user:
        group = str(pwd.getpwnam(user).pw_gid)
        command = ('setpriv', '--reuid', user, '--regid', group, '--clear-groups', *command)
    result = subprocess.run(command, capture_output=True, text=True, timeout=timeout, **more)
    if ok is not None and (result.returncode == 0) != ok:
        raise AssertionError(f'{" ".join(command)}: exit {result.returncode}\n{result.stdout}{result.stderr}')
    return result


def systemctl(*arguments, ok=True):
    return run('systemctl', '--no-pager', *arguments, ok=ok)


def show(unit, name):
    return systemctl('show', '--value', '-p', name, unit).stdout.strip()


def is_active(unit):
    return show(unit, 'ActiveState') == 'active'


def wait_until(condition, what, seconds=90):
    """Returns the first true value of CONDITION(). WHAT: a text, or what gives one at the end of a wait in vain."""
    end = time.monotonic() + seconds * SLOWNESS
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f'waited {seconds * SLOWNESS:.0f} s in vain: {what() if callable(what) else what}')
        time.sleep(0.3)


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def expect_equal(have, want, what):
    expect(have == want, f'{what}: have {have!r}, want {want!r}')


# The cgroup, read by the check itself: the daemon's own word is not taken for what came back.

def cgroup(unit):
    return '/sys/fs/cgroup' + show(unit, 'ControlGroup')


def memory_stat(unit):
    with open(cgroup(unit) + '/memory.stat') as f:
        return {key: int(value) for key, value in (line.split() for line in f)}


def anon(unit):
    return memory_stat(unit)['anon']


# The daemon's word.

def status(unit=None):
    units = json.loads(run('memguardctl', '--json=short', 'status', *([unit] if unit else [])).stdout)
    if unit is None:
        return units
    return next((u for u in units if u['unit'] == unit), None)


def known_status(unit):
    """The unit's row, or None while the daemon does not know it or is not there."""
    result = run('memguardctl', '--json=short', 'status', unit, ok=None)
    if result.returncode != 0:
        return None
    return next((u for u in json.loads(result.stdout) if u['unit'] == unit), None)


def journal(*match):
    """The entries of this boot that match, as dictionaries, oldest first."""
    text = run('journalctl', '--sync', ok=None) and run('journalctl', '-b', '-o', 'json', '--all', '--no-pager', *match).stdout
    return [json.loads(line) for line in text.splitlines() if line]


def trims_of(unit):
    """What `journalctl -u UNIT` shows of the trims that really were."""
    return [e for e in journal('-u', unit) if 'MEMGUARD_UNIT' in e and 'MEMGUARD_AFTER_BYTES' in e]


# Units that a check makes and takes away again.

def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w') as f:
        f.write(text)


def remove(path):
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def preload_library():
    found = glob.glob('/usr/lib/*/libmemguard-preload.so') + glob.glob('/usr/lib/libmemguard-preload.so')
    expect(found, 'libmemguard-preload.so is not installed')
    return found[0]


def preload_variables():
    return [f'LD_PRELOAD={preload_library()}', 'MEMGUARD_DELAY=100ms']


def configure(unit, section):
    """Adds the unit's part of the configuration, or takes it away (None)."""
    path = f'{CONFIG}/50-{unit}.conf'
    if section is None:
        remove(path)
    else:
        write(path, f'[{unit}]\n{section}\n')
    run('memguardctl', 'reload', ok=None if section is None else True)


@contextlib.contextmanager
def ended(unit, section):
    """Whatever happens: afterwards there is no such unit and no section for it."""
    try:
        yield unit
    except Exception as error:
        for verb in ('status', 'explain'):
            result = run('memguardctl', '--no-pager', verb, unit, ok=None)
            error.add_note(f'$ memguardctl {verb} {unit}\n{result.stdout}{result.stderr}')
        raise
    finally:
        systemctl('kill', '-s', 'KILL', unit, ok=None)
        systemctl('stop', unit, ok=None)
        systemctl('reset-failed', unit, ok=None)
        if section:
            configure(unit, None)


@contextlib.contextmanager
def service(unit, command, section='', preload=True, properties=()):
    """A transient unit (no daemon-reload, which takes seconds here) that runs COMMAND with the agent."""
    if section:
        configure(unit, section)
    variables = [f'Environment={v}' for v in preload_variables()] if preload else []
    with ended(unit, section):
        run('systemd-run', '--quiet', f'--unit={unit}', '--service-type=exec', '--property=TimeoutStopSec=20s',
            *(f'--property={p}' for p in (*variables, *properties)), *command.split())
        yield unit


@contextlib.contextmanager
def enrolled_service(unit, command, section):
    """The same as an operator has it: a unit file, a drop-in that sets LD_PRELOAD, a section."""
    path = f'/run/systemd/system/{unit}'
    variables = ''.join(f'Environment={v}\n' for v in preload_variables())
    write(path, f'[Unit]\nDescription=Enrolled\n[Service]\nExecStart={command}\n')
    write(f'{path}.d/memguard.conf', f'[Service]\n{variables}')
    systemctl('daemon-reload')
    configure(unit, section)
    try:
        with ended(unit, section):
            systemctl('start', unit)
            yield unit
    finally:
        remove(path)
        remove(f'{path}.d/memguard.conf')


def main_pid(unit):
    return int(show(unit, 'MainPID'))


def ensure_daemon():
    """Whatever went before: the daemon runs and answers."""
    if not is_active(DAEMON):
        systemctl('reset-failed', DAEMON, 'memguard.socket', ok=None)
        systemctl('start', DAEMON)
    wait_until(lambda: run('memguardctl', 'status', ok=None).returncode == 0, 'memguardctl status answers')
