# SPDX-License-Identifier: MIT
"""The guest itself: were one of these untrue, the other checks would prove nothing."""
import os

from harness import check, expect, systemctl


@check('guest: cgroup v2 has the memory controller', daemon=False)
def cgroup_v2():
    with open('/sys/fs/cgroup/cgroup.controllers') as f:
        expect('memory' in f.read().split(), 'no memory controller')


@check('guest: pressure stall information is on', daemon=False)
def psi():
    expect(os.path.exists('/proc/pressure/memory'), 'no /proc/pressure/memory')


@check('guest: no unit has failed', daemon=False)
def no_failed_unit():
    failed = systemctl('--failed', '--no-legend', '--plain').stdout.strip()
    expect(not failed, failed)
