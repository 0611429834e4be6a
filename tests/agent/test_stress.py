# SPDX-License-Identifier: MIT
"""The stress of libmemguard's functions, while every agent that connects is pestered."""
import os
import subprocess
import sys

from pest import Pest

pest = Pest()
result = subprocess.run(sys.argv[1:], check=False, timeout=120, capture_output=True, text=True,
                        env={**os.environ, "MEMGUARD_SOCKET": pest.daemon.path, "MEMGUARD_DELAY": "0"})
pest.end()
print(result.stdout, result.stderr, f"{pest.connected} agents, {pest.replies} replies", sep="")
assert result.returncode == 0, result.returncode
assert result.stdout.startswith("called back: yes"), "no callback ran: nothing was tested"
assert not pest.faults, pest.faults
