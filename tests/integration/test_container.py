# SPDX-License-Identifier: MIT
"""A service in a container of our own making: namespaces by unshare(1), a root directory of its own, memguard's directory mounted in."""
import os
import shutil
import signal
import subprocess

from harness import MIB, WAIT, Service, Skip, check, check_equal, test, wait_until

TRIM = "TrimAbove=64M\nMinGain=16M\nCooldownSec=1s\nCooldownMaxSec=1min\nMaxPause=1s\n"
NAMESPACES = ("--mount", "--pid", "--fork", "--kill-child=KILL", "--net", "--ipc", "--uts")

# Runs in the new namespaces: $1 is the directory that becomes the root, $2 memguard's, $3 where the programs are; then the command.
ENTER = r"""
set -e
root=$1 runtime=$2 bin=$3
shift 3
mount -t tmpfs tmpfs "$root"
mkdir -p "$root/run/memguard" "$root/opt" "$root/tmp" "$root/proc"
for directory in /usr /bin /lib /lib64; do
        [ ! -L "$directory" ] || { cp -d "$directory" "$root$directory"; continue; }
        [ ! -d "$directory" ] || { mkdir "$root$directory" && mount --rbind "$directory" "$root$directory"; }
done
mount --bind "$runtime" "$root/run/memguard"
mount --bind "$bin" "$root/opt"
mount -t proc proc "$root/proc" 2> /dev/null || mount --rbind /proc "$root/proc"
exec chroot "$root" "$@"
"""


def container_options(user):
    """Namespaces that this machine lets us make; SKIP where it does not."""
    for options in (NAMESPACES + ("--user", "--map-root-user"), NAMESPACES):
        probe = subprocess.run(["unshare", *options, "sh", "-c", "mount -t tmpfs tmpfs /mnt"], user=user, capture_output=True,
                               text=True, timeout=WAIT, stdin=subprocess.DEVNULL)
        if probe.returncode == 0:
            return options
        if user is not None:
            break
    raise Skip(f"no namespaces here: {probe.stderr.strip()}")


class Container:
    def __init__(self, world, name, command, user=None):
        options = container_options(user)
        self.root = f"{world.directory}/{name}.root"
        self.bin = f"{world.directory}/{name}.bin"
        os.mkdir(self.root)
        os.mkdir(self.bin)
        for program in (world.build.preload, world.build.memguardctl):
            shutil.copy(program, self.bin)
        shutil.copy(world.build.workload("c1-arenas"), f"{self.bin}/{name}")
        for path in (self.bin, world.runtime):
            os.chmod(path, 0o755)
        self.service = Service(
            world, name, shutil.which("unshare"),
            (*options, "sh", "-c", ENTER, "sh", self.root, world.runtime, self.bin, "/usr/bin/env", "-i", "PATH=/usr/bin:/bin",
             "LD_PRELOAD=/opt/libmemguard-preload.so", "MEMGUARD_DELAY=100ms", *command), agent=False, user=user)

    def process(self):
        """The service's pid outside: the one child of unshare, which has become it."""
        pids = self.service.children()
        check(len(pids) == 1, f"children of unshare: {pids}")
        return pids[0]

    def ctl(self, *arguments):
        """memguardctl inside, as the container's root."""
        return subprocess.run(["nsenter", f"--target={self.process()}", "--user", "--mount", "--pid", "--net", "--root", "--wd=/",
                               "/opt/memguardctl", "--no-pager", *arguments], capture_output=True, text=True, timeout=WAIT,
                              stdin=subprocess.DEVNULL)


def is_in_namespaces(pid):
    for kind in ("mnt", "pid", "net"):
        check(os.readlink(f"/proc/{pid}/ns/{kind}") != os.readlink(f"/proc/self/ns/{kind}"), f"{kind} is the host's")


@test
def a_service_in_a_container_is_trimmed(world):
    """Its own mount, pid and network namespaces; it is pid 1 there, and the daemon knows it by its pid outside."""
    world.run_daemon(f"[boxed.process]\n{TRIM}")
    box = Container(world, "boxed", ("/opt/boxed",))
    box.service.wait_for("phase idle")
    check("pid=1" in box.service.output(), "it is not the first process of a pid namespace")
    pid = box.process()
    is_in_namespaces(pid)
    row = world.wait_status("is trimmed", "boxed.process", lambda row: row["trims"] >= 1)
    check(row["trimmed_bytes"] > 256 * MIB, f"{row['trimmed_bytes']} bytes came back")
    check(pid in [process["pid"] for process in world.json("list-processes", "boxed.process")], f"pid {pid} is not in the list")


@test
def a_container_finds_a_daemon_that_was_restarted(world):
    """The directory is mounted, so that the new socket appears in it."""
    world.run_daemon("")
    box = Container(world, "boxed", ("/opt/boxed", "--blocks=64"))
    box.service.wait_for("phase idle")
    world.wait_agents("boxed.process", 1)
    world.stop(signal.SIGTERM)
    world.start()
    world.wait_agents("boxed.process", 1)


@test
def the_root_of_a_user_namespace_may_look_and_not_act(world):
    if os.geteuid() != 0:
        raise Skip("needs root to run the container as somebody else than the daemon's user")
    world.run_daemon("[boxed.process]\nMode=observe\n")
    nobody = 65534
    if "--user" not in container_options(nobody):
        raise Skip("no user namespaces here")
    box = Container(world, "boxed", ("/opt/boxed", "--blocks=64"), user=nobody)
    box.service.wait_for("phase idle")
    name = next(row["unit"] for row in wait_until("its unit is known", lambda: [
        row for row in world.json("status") if row["unit"].startswith("boxed")]))
    world.wait_agents(name, 1)
    check(name in wait_until("status inside", lambda: box.ctl("status").stdout), "status inside does not show it")
    for command in (("pause", "--all"), ("trim", name), ("reload",)):
        check_equal(f"{command}", box.ctl(*command).returncode, 5)
    check_equal("trims", world.status(name)["trims"], 0)
