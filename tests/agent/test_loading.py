# SPDX-License-Identifier: MIT
"""Programs that the preload object cannot enter, or that it must leave unharmed: static, secure-execution, musl, other roots, other preloads."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

from fake_daemon import Daemon
from pest import Pest

HOST = os.environ["MEMGUARD_TEST_HOST"]
OWN_MALLOC = os.environ["MEMGUARD_TEST_OWN_MALLOC"]
PRELOAD = os.environ["MEMGUARD_TEST_PRELOAD"]
LIBRARY = os.environ["MEMGUARD_TEST_LIBRARY"]
MUST_WORK = os.environ.get("MEMGUARD_MUST_WORK") == "1"

PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *run(void *argument) { free(malloc(100000)); usleep(300000); return NULL; }
int main(void) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, run, NULL) != 0) return 1;
        pthread_join(thread, NULL);
        printf("uid %d\n", (int) geteuid());
        return 17;
}
"""

# A second object to be preloaded, that wraps what ours wraps and passes it on.
OTHER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument) {
        int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
        return next(thread, attributes, routine, argument);
}
int setuid(uid_t uid) {
        int (*next)(uid_t) = dlsym(RTLD_NEXT, "setuid");
        return next(uid);
}
void *malloc(size_t bytes) {
        static void *(*next)(size_t);
        if (!next) next = dlsym(RTLD_NEXT, "malloc");
        return next(bytes);
}
"""

# A program that chooses what its children preload, itself included.
CHOOSING = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
        if (argc > 2) {
                setenv("LD_PRELOAD", argv[2], 1);
                execl(argv[0], argv[0], argv[1], (char *) NULL);
                return 1;
        }
        printf("preloads %s\n", getenv("LD_PRELOAD"));
        fflush(stdout);
        execl(argv[1], argv[1], (char *) NULL);
        return 1;
}
"""

WRITING = r"""
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static void *run(void *argument) { usleep(500000); return NULL; }
int main(int argc, char **argv) {
        pthread_t thread;
        pthread_create(&thread, NULL, run, NULL);
        int fd = open(argv[1], O_CREAT | O_WRONLY, 0600);
        printf("open %s\n", fd < 0 ? strerror(errno) : "ok");
        pthread_join(thread, NULL);
        return 16;
}
"""

CLOSING = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
        for (int i = 0; i < 20; i++) {
                void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
                if (!library) { puts(dlerror()); return 1; }
                int (*start)(const void *) = (int (*)(const void *)) dlsym(library, "memguard_start");
                int (*checkpoint)(const char *) = (int (*)(const char *)) dlsym(library, "memguard_checkpoint");
                if (!start || start(NULL) != 0 || checkpoint("closing") != 0) return 2;
                dlclose(library);
                usleep(20000);
        }
        puts("closed");
        return 18;
}
"""


PREFORK = r"""
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int mallctl(const char *, void *, size_t *, void *, size_t);
static bool is_on(void) {
        bool on = false;
        size_t size = sizeof(on);
        mallctl("background_thread", &on, &size, NULL, 0);
        return on;
}
int main(void) {
        int status;
        printf("parent %d\n", is_on());
        fflush(stdout);
        int pid = fork();
        if (pid == 0) {
                sleep(2);
                _exit(40 + is_on());
        }
        waitpid(pid, &status, 0);
        printf("child %d\n", WEXITSTATUS(status));
        return 0;
}
"""


def skip(reason):
    print(f"skip: {reason}")
    assert not MUST_WORK, reason


def build(directory, source, *command):
    path = os.path.join(directory, "program")
    with open(path + ".c", "w", encoding="ascii") as file:
        file.write(source)
    compiled = subprocess.run([*command, "-pthread", "-o", path, path + ".c"], check=False, capture_output=True)
    return path if compiled.returncode == 0 else None


def compare(command, expected_agents, code, **extra):
    """Runs COMMAND without and with the object; returns what it printed."""
    options = {"check": False, "capture_output": True, "timeout": 60, "text": True}
    without = subprocess.run(command, **options)
    pest = Pest()
    os.chmod(pest.daemon.directory, 0o755)
    with_agent = subprocess.run(command, **options, env={**os.environ, "LD_PRELOAD": PRELOAD, "MEMGUARD_SOCKET": pest.daemon.path,
                                                         "MEMGUARD_DELAY": "0", **extra})
    pest.end()
    assert without.returncode == code, without
    assert (with_agent.returncode, with_agent.stdout) == (code, without.stdout), (without, with_agent)
    # The loader itself complains about an object that it cannot preload into another kind of program; we must not.
    assert "memguard:" not in with_agent.stderr, with_agent.stderr
    assert (pest.connected > 0) == expected_agents, (command, pest.connected)
    return with_agent


def test_dynamic(directory):
    path = build(directory, PROGRAM, "cc")
    assert compare([path], True, 17).stderr == ""


def test_fixed_place(directory):
    """An executable at a fixed place that uses malloc's address: glibc still serves it, and its tops are in reach."""
    source = PROGRAM.replace("int main(void) {", "void *(*volatile taken)(size_t) = malloc;\nint main(void) {")
    path = build(directory, source, "cc", "-fno-pie", "-no-pie")
    compare([path], True, 17)
    daemon = Daemon()
    with subprocess.Popen([path], stdout=subprocess.DEVNULL, env={**os.environ, "LD_PRELOAD": PRELOAD, "MEMGUARD_SOCKET": daemon.path,
                                                                  "MEMGUARD_DELAY": "0"}):
        hello = daemon.accept(10).hello
    daemon.remove()
    assert hello["HEAP0_SERVES_MALLOC"] == 1 and "arena-tops" in hello["HEAP0_CAN"], hello


def test_static(directory):
    path = build(directory, PROGRAM, "cc", "-static")
    if not path:
        return skip("no static C library")
    return compare([path], False, 17)


def test_set_user_id(directory):
    path = build(directory, PROGRAM, "cc")
    if os.geteuid() != 0:
        return skip("needs root")
    os.chmod(path, 0o4755)
    os.chmod(directory, 0o755)
    # As nobody: the loader ignores a path in LD_PRELOAD, and says so or not.
    result = compare(["setpriv", "--reuid=65534", "--clear-groups", path], False, 17)
    assert result.stdout == "uid 0\n", result
    return None


def test_file_capability(directory):
    path = build(directory, PROGRAM, "cc")
    setcap = shutil.which("setcap") or "/usr/sbin/setcap"
    if os.geteuid() != 0 or not os.path.exists(setcap):
        return skip("needs root and setcap (Debian package libcap2-bin)")
    if subprocess.run([setcap, "cap_net_bind_service=ep", path], check=False, capture_output=True).returncode != 0:
        return skip("the file system keeps no capabilities")
    os.chmod(directory, 0o755)
    # Capabilities that its caller has not: the loader takes nothing from the environment. Root has them all.
    result = compare(["setpriv", "--reuid=65534", "--clear-groups", path], False, 17)
    assert result.stdout == "uid 65534\n", result
    return compare([path], True, 17)


def test_read_only_root(directory):
    if os.geteuid() != 0:
        return skip("needs root")
    path = build(directory, WRITING, "cc")
    # In a mount namespace of its own, which ends with it.
    shell = 'mount -o remount,bind,ro / && mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && exec "$2" "$1/file"'
    command = ["unshare", "--mount", "--propagation=private", "sh", "-c", shell, "sh", directory, path]
    if subprocess.run(command, check=False, capture_output=True).returncode != 16:
        return skip("no read-only root to be had here")
    result = compare(command, True, 16)
    assert result.stdout == "open Read-only file system\n", result
    return None


def libraries_of(*paths):
    """What these need, the loader included, by the paths they are looked for at."""
    listed = subprocess.run(["ldd", *paths], check=True, capture_output=True, text=True).stdout
    return set(re.findall(r"(/\S+\.so\S*) \(", listed))


def test_empty_root(directory):
    """A root with the program and its libraries, and nothing else: no /proc, no /dev, no socket."""
    if os.geteuid() != 0:
        return skip("needs root")
    root = os.path.join(directory, "root")
    os.mkdir(root)
    shutil.copy(build(directory, PROGRAM, "cc"), root + "/program")
    for library in libraries_of(root + "/program", PRELOAD):
        os.makedirs(root + os.path.dirname(library), exist_ok=True)
        shutil.copy(library, root + library)
    shutil.copy(PRELOAD, root + "/agent.so")
    # What the launcher outside cannot load it complains about; inside it is there.
    for mode in "follow", "always":
        result = subprocess.run(["chroot", root, "/program"], check=False, capture_output=True, text=True, timeout=60,
                                env={**os.environ, "LD_PRELOAD": "/agent.so", "MEMGUARD_SOCKET": "/agent.sock", "MEMGUARD_DELAY": "0",
                                     "MEMGUARD_THREAD": mode})
        assert (result.returncode, result.stdout) == (17, "uid 0\n") and "memguard" not in result.stderr, result
    return None


def test_other_preloads(directory):
    """Beside another object that wraps the same calls, in both orders; and lost, where the program sets the variable itself."""
    path = build(directory, PROGRAM, "cc")
    other, choosing = os.path.join(directory, "other.so"), os.path.join(directory, "choosing")
    for source, target, *options in (OTHER, other, "-shared", "-fPIC"), (CHOOSING, choosing):
        subprocess.run(["cc", "-x", "c", "-", *options, "-o", target], input=source, check=True, text=True, capture_output=True)
    for order in f"{other}:{PRELOAD}", f"{PRELOAD}:{other}", f"{PRELOAD} {other}":
        assert compare([path], True, 17, LD_PRELOAD=order).stderr == ""
    result = compare([choosing, path, other], False, 17)
    assert result.stdout == f"preloads {other}\nuid {os.geteuid()}\n", result
    # And where it names ours, it is there.
    compare([choosing, path, f"{other}:{PRELOAD}"], True, 17)


def test_own_malloc(directory):
    """A program that is its own allocator: nobody but itself calls it, the agent least of all."""
    for mode in "follow", "always":
        result = compare([OWN_MALLOC], True, 19, MEMGUARD_THREAD=mode)
        assert result.stdout == "strangers 0, damaged 0\n", result


def test_malloc_hooks(directory):
    """glibc's own debugging allocator, where malloc's hooks have gone: every block is checked."""
    found = glob.glob("/lib/*-linux-gnu*/libc_malloc_debug.so.0") + glob.glob("/usr/lib/*-linux-gnu*/libc_malloc_debug.so.0")
    if not found:
        return skip("no libc_malloc_debug.so.0 (glibc 2.34)")
    options = {"check": False, "capture_output": True, "timeout": 120, "text": True}
    # None that forks: its lock is not known to fork(), with or without us.
    for case in "thread-churn", "many-allocators":
        environment = {**os.environ, "MALLOC_CHECK_": "3", "HOST_SECONDS": "1"}
        plain = subprocess.run([HOST, case], **options, env={**environment, "LD_PRELOAD": found[0]})
        pest = Pest()
        result = subprocess.run([HOST, case], **options,
                                env={**environment, "LD_PRELOAD": f"{found[0]}:{PRELOAD}", "MEMGUARD_SOCKET": pest.daemon.path,
                                     "MEMGUARD_DELAY": "0"})
        pest.end()
        assert (result.returncode, result.stdout, result.stderr) == (plain.returncode, plain.stdout, plain.stderr), (plain, result)
        assert pest.connected > 0, case
    return None


def test_musl(directory):
    if not shutil.which("musl-gcc"):
        return skip("no musl-gcc: install the Debian package musl-tools")
    path = build(directory, PROGRAM, "musl-gcc")
    # There is nothing to trim, but the agent is there and says so.
    compare([path], True, 17)
    return compare([path], True, 17, MEMGUARD_THREAD="always")


def test_closing(directory):
    path = build(directory, CLOSING, "cc")
    compare([path, LIBRARY], True, 18)
    daemon = Daemon()
    alone = subprocess.run([path, LIBRARY], check=False, capture_output=True, timeout=60,
                           env={**os.environ, "MEMGUARD_SOCKET": daemon.path, "MEMGUARD_DELAY": "0"})
    assert alone.returncode == 18, alone
    assert daemon.accept(1).hello["MODE"] == "linked"
    daemon.remove()


def test_no_daemon(directory):
    """Nobody listens, nothing is there, or it is not even a socket: silence."""
    path = build(directory, PROGRAM, "cc")
    for socket in "/nonexistent/socket", "/dev/null", directory, "relative":
        for mode in "follow", "always":
            result = subprocess.run([path], check=False, capture_output=True, timeout=60, text=True,
                                    env={**os.environ, "LD_PRELOAD": PRELOAD, "MEMGUARD_SOCKET": socket, "MEMGUARD_DELAY": "0",
                                         "MEMGUARD_THREAD": mode})
            assert (result.returncode, result.stderr) == (17, ""), result


def test_background_threads_in_children(directory):
    """jemalloc's background threads end at fork; a child's agent brings them back."""
    path = os.path.join(directory, "program")
    with open(path + ".c", "w", encoding="ascii") as file:
        file.write(PREFORK)
    if subprocess.run(["cc", "-o", path, path + ".c", "-ljemalloc"], check=False, capture_output=True).returncode != 0:
        return skip("no libjemalloc-dev")
    for asked, expected in ("true", "parent 1\nchild 41\n"), ("false", "parent 0\nchild 40\n"):
        pest = Pest()
        result = subprocess.run([path], check=True, capture_output=True, timeout=60, text=True,
                                env={**os.environ, "LD_PRELOAD": PRELOAD, "MEMGUARD_SOCKET": pest.daemon.path, "MEMGUARD_DELAY": "0",
                                     "MEMGUARD_THREAD": "always", "MALLOC_CONF": "background_thread:" + asked})
        pest.end()
        assert result.stdout == expected, result
    return None


def test_valgrind(directory):
    if not shutil.which("valgrind"):
        return skip("no valgrind")
    for case in "errno", "fork-after-threads", "thread-churn":
        for mode in "follow", "always":
            command = ["valgrind", "-q", "--error-exitcode=99", "--fair-sched=yes", HOST, case]
            pest = Pest()
            result = subprocess.run(command, check=False, capture_output=True, timeout=180, text=True,
                                    env={**os.environ, "LD_PRELOAD": PRELOAD, "MEMGUARD_SOCKET": pest.daemon.path,
                                         "MEMGUARD_DELAY": "0", "MEMGUARD_THREAD": mode})
            pest.end()
            plain = subprocess.run([HOST, case], check=False, capture_output=True, timeout=60, text=True)
            assert (result.returncode, result.stdout) == (plain.returncode, plain.stdout), (case, result)
            assert "ERROR" not in result.stderr and "Invalid" not in result.stderr, result.stderr
            assert pest.connected > 0, case
    return None


def main():
    wanted = sys.argv[1:]
    for name, test in list(globals().items()):
        if name.startswith("test_") and (not wanted or name in wanted):
            with tempfile.TemporaryDirectory() as directory:
                test(directory)
            print(f"ok   {name}", flush=True)


main()
