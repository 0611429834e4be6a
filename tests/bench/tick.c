/* SPDX-License-Identifier: MIT */
/*
 * What a tick of memguardd costs, as a ratio to the bare preads it cannot do without: two files a cgroup, on open
 * descriptors. Makes N cgroups below --root with one sleeping process each, runs the daemon over them and by turns, in this
 * process, as many preads of the same files at the same interval, N ticks at a time; both sides are CPU time. The daemon sees
 * these cgroups alone, and all that it does besides (it looks for new units, and closer once a minute) is in its number.
 *
 *   bench-tick --daemon=PATH --root=DIR --cgroups=N [--interval-msec=1000] [--ticks=10]
 *
 * Where DIR is a cgroup v2 mount the cgroups are real (root, and a host that may be littered: a guest). Elsewhere they are plain
 * files like a kernel's, whose preads cost a tenth: there the ratio says little, the microseconds a cgroup say something.
 * With few cgroups most of a tick is the waking up: hence the same preads once from a loop that sleeps, and once from a timer of sd-event,
 * which a daemon that does anything else besides cannot do without.
 * Prints one line: bench=tick cgroups=N real=0|1 daemon_usec_per_tick=N bare_usec_per_tick=N ratio_percent=N
 *                  loop_usec_per_tick=N loop_ratio_percent=N
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>
#include <time.h>
#include <unistd.h>

#define CGROUPS_MAX 5000
#define ROUNDS      3

static const char *daemon_path, *root;
static char top[PATH_MAX - 256]; /* what the daemon takes for the root */
static unsigned cgroups = 100, interval_msec = 1000, ticks = 10;
static bool real;
static char slice[PATH_MAX - 128], scratch[] = "/tmp/bench-tick.XXXXXX";
static pid_t sleepers[CGROUPS_MAX], daemon_pid;

static void die(const char *what) {
        fprintf(stderr, "bench-tick: %s: %s\n", what, strerror(errno));
        exit(1);
}

static const char *path_of(unsigned cgroup, const char *file) {
        static char path[PATH_MAX];

        snprintf(path, sizeof(path), "%s/bench-%u.service/%s", slice, cgroup, file);
        return path;
}

static void write_text(const char *path, const char *text) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        if (fd < 0 || write(fd, text, strlen(text)) < 0)
                die(path);
        close(fd);
}

/* As kernel 6.1 prints it, shortened to what a reader has to skip or to find. */
static const char stat_text[] =
                "anon 41943040\nfile 1052672\nkernel 2097152\nkernel_stack 65536\npagetables 196608\nsec_pagetables 0\n"
                "percpu 4096\nsock 0\nvmalloc 0\nshmem 0\nzswap 0\nzswapped 0\nfile_mapped 135168\nfile_dirty 0\n"
                "file_writeback 0\nswapcached 0\nanon_thp 0\nfile_thp 0\nshmem_thp 0\ninactive_anon 41943040\n"
                "active_anon 4096\ninactive_file 520192\nactive_file 532480\nunevictable 0\nslab_reclaimable 589824\n"
                "slab_unreclaimable 720896\nslab 1310720\nworkingset_refault_anon 0\nworkingset_refault_file 0\n"
                "workingset_activate_anon 0\nworkingset_activate_file 0\nworkingset_restore_anon 0\nworkingset_restore_file 0\n"
                "workingset_nodereclaim 0\npgscan 0\npgsteal 0\npgscan_kswapd 0\npgscan_direct 0\npgsteal_kswapd 0\n"
                "pgsteal_direct 0\npgfault 12345\npgmajfault 0\npgrefill 0\npgactivate 0\npgdeactivate 0\npglazyfree 0\n"
                "pglazyfreed 0\nzswpin 0\nzswpout 0\nthp_fault_alloc 0\nthp_collapse_alloc 0\n";

static void fake_files(unsigned cgroup, pid_t pid) {
        char text[32];

        snprintf(text, sizeof(text), "%d\n", (int) pid);
        write_text(path_of(cgroup, "cgroup.procs"), text);
        write_text(path_of(cgroup, "memory.stat"), stat_text);
        write_text(path_of(cgroup, "memory.current"), "45088768\n");
        write_text(path_of(cgroup, "memory.swap.current"), "0\n");
        write_text(path_of(cgroup, "memory.high"), "max\n");
        write_text(path_of(cgroup, "memory.max"), "max\n");
        write_text(path_of(cgroup, "memory.events"),
                   "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n");
        write_text(path_of(cgroup, "cgroup.events"), "populated 1\nfrozen 0\n");
        write_text(path_of(cgroup, "cpu.stat"),
                   "usage_usec 1000\nuser_usec 500\nsystem_usec 500\n");
}

static pid_t start_sleeper(void) {
        pid_t pid = fork();

        if (pid < 0)
                die("fork");
        if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;)
                        pause();
        }
        return pid;
}

static void make_directory(const char *path) {
        if (mkdir(path, 0755) < 0 && errno != EEXIST)
                die(path);
}

static void make_cgroup(unsigned cgroup) {
        char text[32];

        make_directory(path_of(cgroup, ""));
        sleepers[cgroup] = start_sleeper();
        if (!real) {
                fake_files(cgroup, sleepers[cgroup]);
                return;
        }
        snprintf(text, sizeof(text), "%d", (int) sleepers[cgroup]);
        write_text(path_of(cgroup, "cgroup.procs"), text);
}

static void write_in(const char *directory, const char *file, const char *text) {
        char path[PATH_MAX];

        snprintf(path, sizeof(path), "%s/%s", directory, file);
        write_text(path, text);
}

static void make_cgroups(void) {
        char path[PATH_MAX];

        snprintf(path, sizeof(path), "%s/cgroup.subtree_control", root);
        real = access(path, F_OK) == 0;
        snprintf(top, sizeof(top), "%s/memguard-bench", root);
        snprintf(slice, sizeof(slice), "%s/bench.slice", top);
        make_directory(top);
        make_directory(slice);
        if (real) {
                write_in(root, "cgroup.subtree_control", "+memory");
                write_in(top, "cgroup.subtree_control", "+memory");
                write_in(slice, "cgroup.subtree_control", "+memory");
        } else {
                write_in(top, "cgroup.controllers", "cpu memory pids\n");
                write_in(top, "cgroup.procs", "");
                write_in(slice, "cgroup.procs", "");
        }
        for (unsigned i = 0; i < cgroups; i++)
                make_cgroup(i);
}

static void remove_cgroups(void) {
        static const char *const files[] = { "cgroup.procs", "memory.stat",   "memory.current",
                                             "memory.high",  "memory.max",    "memory.swap.current",
                                             "cpu.stat",     "cgroup.events", "memory.events" };

        for (unsigned i = 0; i < cgroups; i++) {
                if (sleepers[i] > 0) {
                        kill(sleepers[i], SIGKILL);
                        waitpid(sleepers[i], NULL, 0);
                }
                for (unsigned f = 0; !real && f < sizeof(files) / sizeof(files[0]); f++)
                        unlink(path_of(i, files[f]));
                rmdir(path_of(i, ""));
        }
        rmdir(slice);
        rmdir(top);
}

/* What the daemon left in its runtime directory. */
static void remove_scratch(void) {
        pid_t pid = fork();

        if (pid == 0) {
                execlp("rm", "rm", "-rf", "--", scratch, (char *) NULL);
                _exit(127);
        }
        waitpid(pid, NULL, 0);
}

static void start_daemon(void) {
        char config[PATH_MAX], text[256], config_option[PATH_MAX + 16], runtime[PATH_MAX],
                        cgroup_root[PATH_MAX];

        snprintf(config, sizeof(config), "%s/memguard.ini", scratch);
        snprintf(text, sizeof(text), "[Daemon]\nIntervalSec=%ums\nLogLevel=warning\n",
                 interval_msec);
        write_text(config, text);
        snprintf(config_option, sizeof(config_option), "--config=%s", config);
        snprintf(runtime, sizeof(runtime), "--runtime-directory=%s/run", scratch);
        snprintf(cgroup_root, sizeof(cgroup_root), "--cgroup-root=%s", top);
        daemon_pid = fork();
        if (daemon_pid < 0)
                die("fork");
        if (daemon_pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGTERM);
                execl(daemon_path, daemon_path, config_option, runtime, cgroup_root,
                      "--source=cgroup", (char *) NULL);
                die(daemon_path);
        }
}

/* CPU time of a process so far, in nanoseconds: the first number of schedstat, else the coarse one of stat. */
static uint64_t cpu_nsec(pid_t pid) {
        char path[64], text[1024];
        uint64_t nsec = 0;
        unsigned long utime = 0, stime = 0;

        snprintf(path, sizeof(path), "/proc/%d/schedstat", (int) pid);
        FILE *file = fopen(path, "re");
        if (file != NULL) {
                if (fscanf(file, "%" SCNu64, &nsec) != 1)
                        nsec = 0;
                fclose(file);
        }
        if (nsec > 0)
                return nsec;
        snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
        file = fopen(path, "re");
        if (file != NULL) {
                if (fgets(text, sizeof(text), file) != NULL)
                        sscanf(strrchr(text, ')') + 2,
                               "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &utime,
                               &stime);
                fclose(file);
        }
        return (utime + stime) * (1000000000 / (uint64_t) sysconf(_SC_CLK_TCK));
}

static void sleep_msec(unsigned msec) {
        struct timespec left = { .tv_sec = msec / 1000, .tv_nsec = msec % 1000 * 1000000L };

        while (nanosleep(&left, &left) < 0 && errno == EINTR)
                ;
}

static void drop_error(ssize_t n) {
        if (n < 0)
                die("pread");
}

static int fds[CGROUPS_MAX][2];

static void open_files(void) {
        for (unsigned i = 0; i < cgroups; i++) {
                fds[i][0] = open(path_of(i, "memory.stat"), O_RDONLY | O_CLOEXEC);
                fds[i][1] = open(path_of(i, "memory.swap.current"), O_RDONLY | O_CLOEXEC);
                if (fds[i][0] < 0)
                        die(path_of(i, "memory.stat"));
        }
}

static void read_files(void) {
        static char buffer[8192];

        for (unsigned i = 0; i < cgroups; i++) {
                drop_error(pread(fds[i][0], buffer, sizeof(buffer), 0));
                if (fds[i][1] >= 0)
                        drop_error(pread(fds[i][1], buffer, sizeof(buffer), 0));
        }
}

static void tick_by_sleep(void) {
        for (unsigned tick = 0; tick < ticks; tick++) {
                sleep_msec(interval_msec);
                read_files();
        }
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        unsigned *tick = userdata;

        read_files();
        if (++*tick == ticks)
                return sd_event_exit(sd_event_source_get_event(source), 0);
        sd_event_source_set_time_relative(source, interval_msec * UINT64_C(1000));
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static void tick_by_loop(void) {
        sd_event *event = NULL;
        unsigned tick = 0;

        if (sd_event_new(&event) < 0 ||
            sd_event_add_time_relative(
                            event, NULL, CLOCK_MONOTONIC, interval_msec * UINT64_C(1000), 1,
                            on_timer, &tick) < 0 ||
            sd_event_loop(event) < 0)
                die("sd_event");
        sd_event_unref(event);
}

static uint64_t own_cpu_nsec(void) {
        struct timespec spent;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
        return (uint64_t) spent.tv_sec * 1000000000 + (uint64_t) spent.tv_nsec;
}

static uint64_t measure(void (*run_ticks)(void)) {
        uint64_t before = own_cpu_nsec();

        run_ticks();
        return own_cpu_nsec() - before;
}

static uint64_t measure_daemon(void) {
        uint64_t before = cpu_nsec(daemon_pid);

        sleep_msec(ticks * interval_msec);
        if (waitpid(daemon_pid, NULL, WNOHANG) != 0) {
                errno = ECHILD;
                die("memguardd has ended");
        }
        return cpu_nsec(daemon_pid) - before;
}

struct costs {
        uint64_t daemon, bare, loop; /* nanoseconds of CPU */
};

/*
 * By turns, since machines become slower and faster; and never at the same time, since who reads memory.stat first pays for
 * summing up the kernel's counters, and the next one does not.
 */
static void measure_round(struct costs *costs) {
        costs->daemon += measure_daemon();
        kill(daemon_pid, SIGSTOP);
        costs->bare += measure(tick_by_sleep);
        costs->loop += measure(tick_by_loop);
        kill(daemon_pid, SIGCONT);
        sleep_msec(2 * interval_msec);
}

static void stop_daemon(void) {
        kill(daemon_pid, SIGTERM);
        waitpid(daemon_pid, NULL, 0);
}

static void parse_options(int argc, char **argv) {
        static const struct option options[] = {
                { "daemon", required_argument, NULL, 'd' },
                { "root", required_argument, NULL, 'r' },
                { "cgroups", required_argument, NULL, 'c' },
                { "ticks", required_argument, NULL, 't' },
                { "interval-msec", required_argument, NULL, 'i' },
                {},
        };
        int option;

        while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
                switch (option) {
                case 'd':
                        daemon_path = optarg;
                        break;
                case 'r':
                        root = optarg;
                        break;
                case 'c':
                        cgroups = (unsigned) atoi(optarg);
                        break;
                case 't':
                        ticks = (unsigned) atoi(optarg);
                        break;
                case 'i':
                        interval_msec = (unsigned) atoi(optarg);
                        break;
                default:
                        exit(2);
                }
        if (daemon_path == NULL || root == NULL || cgroups < 1 || cgroups > CGROUPS_MAX ||
            ticks < 1 || interval_msec < 1) {
                fprintf(stderr,
                        "usage: bench-tick --daemon=PATH --root=DIR [--cgroups=N] [--ticks=N] [--interval-msec=N]\n");
                exit(2);
        }
}

int main(int argc, char **argv) {
        parse_options(argc, argv);
        if (mkdtemp(scratch) == NULL)
                die(scratch);
        struct rlimit files = { .rlim_cur = 3 * CGROUPS_MAX, .rlim_max = 3 * CGROUPS_MAX };
        setrlimit(RLIMIT_NOFILE, &files);
        make_cgroups();
        start_daemon();
        sleep_msec(5 * interval_msec + 2000); /* past its start */
        open_files();
        struct costs costs = {};
        for (unsigned round = 0; round < ROUNDS; round++)
                measure_round(&costs);
        stop_daemon();
        uint64_t n = UINT64_C(1000) * ROUNDS * ticks;
        printf("bench=tick cgroups=%u real=%d daemon_usec_per_tick=%" PRIu64
               " bare_usec_per_tick=%" PRIu64 " ratio_percent=%" PRIu64
               " loop_usec_per_tick=%" PRIu64 " loop_ratio_percent=%" PRIu64 "\n",
               cgroups, real, costs.daemon / n, costs.bare / n, costs.daemon * 100 / costs.bare,
               costs.loop / n, costs.daemon * 100 / costs.loop);
        remove_cgroups();
        remove_scratch();
        return 0;
}
