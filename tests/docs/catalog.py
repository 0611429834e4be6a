#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""catalog.py SOURCE: every MESSAGE_ID has a catalog entry with a subject, and a text that says what it means and, in its last paragraph,
what to do: a command, a setting, or that nothing needs to be done. No entry is without a MESSAGE_ID.

journalctl itself compiles the catalog, where it is installed.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

TO_DO = re.compile(r"`[^`]+`|\b[A-Z][A-Za-z]+=|[Nn]othing\s+needs\s+to\s+be\s+done")

source = sys.argv[1]
header = os.path.join(source, "src/daemon/message_ids.h")
catalog = os.path.join(source, "conf/memguard.catalog")
problems = []

names = dict((i, n) for n, i in re.findall(r'#define (MG_MESSAGE_\w+)\s+"([0-9a-f]{32})"', open(header).read()))
entries = {}
for block in re.split(r"^-- ", open(catalog).read(), flags=re.M)[1:]:
    message_id, _, rest = block.partition("\n")
    if message_id in entries:
        problems.append("%s: two entries" % message_id)
    entries[message_id] = rest

if len(names) < 20:
    problems.append("only %d ids found in message_ids.h: has its form changed?" % len(names))
for message_id, name in names.items():
    fields, _, text = entries.get(message_id, "").partition("\n\n")
    if message_id not in entries:
        problems.append("%s (%s): no entry" % (name, message_id))
    elif not re.search(r"^Subject: \S", fields, re.M) or "Defined-By: memguard" not in fields:
        problems.append("%s: no Subject or Defined-By" % name)
    elif len(text.split()) < 10:
        problems.append("%s: hardly a text" % name)
    elif "\n\n" not in text.strip() or not TO_DO.search(text.strip().split("\n\n")[-1]):
        problems.append("%s: not what to do, in a paragraph of its own at the end" % name)
problems += ["%s: an entry for no message" % i for i in entries if i not in names]

journal = "".join(open(os.path.join(source, "src/daemon", f)).read()
                  for f in ("journal.c", "journal_units.c"))
problems += ["%s: never sent" % n for n in names.values() if n not in journal]
for variable in set(re.findall(r"@(\w+)@", open(catalog).read())):
    if '"%s"' % variable not in journal:
        problems.append("@%s@: no such field" % variable)

if shutil.which("journalctl"):
    with tempfile.TemporaryDirectory() as root:
        for directory in ("usr/lib/systemd/catalog", "var/lib/systemd/catalog"):
            os.makedirs(os.path.join(root, directory))
        shutil.copy(catalog, os.path.join(root, "usr/lib/systemd/catalog"))
        subprocess.run(["journalctl", "--root", root, "--update-catalog"], check=True,
                       stderr=subprocess.DEVNULL)
        listed = subprocess.run(["journalctl", "--root", root, "--list-catalog"], check=True,
                                stdout=subprocess.PIPE, text=True).stdout
        problems += ["%s: journalctl does not list it" % n for i, n in names.items() if i not in listed]
else:
    print("journalctl is not installed: the catalog was not compiled")
    if os.environ.get("MEMGUARD_MUST_WORK") == "1":
        problems.append("journalctl is not installed")

print("\n".join(problems) or "%d messages, all explained" % len(names))
sys.exit(1 if problems else 0)
