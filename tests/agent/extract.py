# SPDX-License-Identifier: MIT
"""extract.py PAGE NAME: prints the example of a manual page whose first line is the comment NAME."""
import re
import sys

with open(sys.argv[1], encoding="utf-8") as page:
    for block in re.findall(r"^```\n(.*?)^```$", page.read(), flags=re.M | re.S):
        if block.startswith(f"/* {sys.argv[2]} */\n"):
            sys.stdout.write(block)
            sys.exit(0)
sys.exit(f"{sys.argv[1]} has no example {sys.argv[2]}")
