/* SPDX-License-Identifier: MIT */
/* memguardctl enroll and withdraw. Layer: ctl. */
#include "ctl/enroll.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/output.h"
#include "host/bus_api.h"
#include "host/config.h"

#define AGENT_SOCKET_PATH MG_RUNTIME_DIRECTORY "/" MG_AGENT_SOCKET

/* An agent connects a second after its start; a service may take its time until it makes a thread. */
#define AGENT_INTERVAL_NSEC 500000000L
#define AGENT_INTERVALS     60

/* The library's path */

/* Starts a program under it: the loader prints one line for what it cannot load, and nothing else. */
static bool is_loadable(const char *agent) {
        int ends[2];
        char c;

        if (pipe(ends) < 0)
                return false;
        pid_t pid = fork();
        if (pid == 0) {
                dup2(ends[1], STDERR_FILENO);
                setenv("LD_PRELOAD", agent, 1);
                setenv("MEMGUARD_DISABLE", "1", 1);
                execl("/bin/true", "true", (char *) NULL);
                _exit(EXIT_FAILURE);
        }
        close(ends[1]);
        bool silent = pid > 0 && read(ends[0], &c, 1) == 0;
        int status = -1;
        close(ends[0]);
        while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        return silent && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* "$LIB" where this host's loader takes it to where the library is. */
static int find_agent(char *ret_path, size_t size) {
        struct mg_text text;

        text_init(&text, ret_path, size);
        enroll_library_directory(&text, MG_LIBDIR);
        text_put(&text, "/libmemguard-preload.so");
        if (is_loadable(ret_path))
                return CTL_OK;
        snprintf(ret_path, size, "%s/libmemguard-preload.so", MG_LIBDIR);
        if (is_loadable(ret_path))
                return CTL_OK;
        fprintf(stderr, "memguardctl: the loader cannot load %s: is memguard installed?\n",
                ret_path);
        return CTL_FAILED;
}

/* What is said */

static void print_findings(const struct enroll_findings *findings) {
        static const char *const weights[] = {
                [ENROLL_NOTE] = "note",
                [ENROLL_WARNING] = "warning",
                [ENROLL_BLOCKER] = "cannot enroll",
        };

        for (size_t i = 0; i < findings->n; i++)
                fprintf(findings->list[i].weight == ENROLL_NOTE ? stdout : stderr, "%s: %s\n",
                        weights[findings->list[i].weight], findings->list[i].text);
        fflush(stdout);
}

static void print_file(const char *path, const char *body) {
        printf("\n%s:\n", path);
        for (const char *line = body; *line;) {
                size_t length = strcspn(line, "\n");
                printf("    %.*s\n", (int) length, line);
                line += length + (line[length] == '\n');
        }
}

/* What is written */

struct plan {
        const char *unit;
        struct enroll_paths paths;
        char dropin[ENROLL_TEXT_MAX / 2];
        char section[ENROLL_TEXT_MAX / 2];
        char other_section[PATH_MAX]; /* a file of the operator's that has one already; "": none */
};

/* A section that somebody else wrote is the operator's decision: ours would be a second opinion. */
static void find_other_section(struct plan *plan, const char *root) {
        MG_CLEANUP(problems_done) struct mg_problems problems = {};
        MG_CLEANUP(config_freep) struct mg_config *config = NULL;
        struct mg_unit_config unit;
        struct mg_origins origins;

        if (config_load(NULL, root, &config, &problems) < 0)
                return;
        config_unit(config, plan->unit, NULL, &unit, &origins);
        const char *file = origins.key[MG_KEY_MODE].file;
        if (origins.own_section && file && !mg_streq(file, plan->paths.section))
                snprintf(plan->other_section, sizeof(plan->other_section), "%s", file);
}

static int make_plan(struct plan *plan, const struct enroll_facts *facts, const char *agent) {
        char date[32] = "";
        time_t now = time(NULL);
        struct tm local;
        struct mg_text text;
        const char *root = ctl_options.root ?: "";

        plan->unit = facts->unit;
        int r = enroll_paths(root, facts->unit, ctl_options.user, &plan->paths);
        if (localtime_r(&now, &local))
                strftime(date, sizeof(date), "%Y-%m-%d", &local);
        text_init(&text, plan->dropin, sizeof(plan->dropin));
        enroll_dropin(&text, facts, agent);
        bool overflow = text.overflow;
        text_init(&text, plan->section, sizeof(plan->section));
        enroll_section(&text, facts, date);
        if (r >= 0 && (overflow || text.overflow))
                r = -E2BIG;
        if (r < 0) {
                fprintf(stderr, "memguardctl: cannot make the files for %s: %s\n", facts->unit,
                        strerror(-r));
                return CTL_FAILED;
        }
        find_other_section(plan, root);
        return CTL_OK;
}

static void print_plan(const struct plan *plan) {
        print_file(plan->paths.dropin, plan->dropin);
        if (plan->other_section[0])
                printf("\n%s has a section for it already: that stays as it is.\n",
                       plan->other_section);
        else
                print_file(plan->paths.section, plan->section);
        fflush(stdout);
}

static int write_one(const char *path, const char *unit, const char *body) {
        int r = enroll_write(path, unit, body);

        if (r == -ESTALE) {
                fprintf(stderr, "memguardctl: %s was edited since it was written: left as it is\n",
                        path);
                return CTL_OK;
        }
        if (r == -EEXIST)
                fprintf(stderr,
                        "memguardctl: %s is there already, and not of memguardctl's making\n",
                        path);
        else if (r < 0)
                fprintf(stderr, "memguardctl: cannot write %s: %s\n", path, strerror(-r));
        if (r == -EACCES || r == -EPERM)
                return CTL_DENIED;
        return r < 0 ? CTL_FAILED : CTL_OK;
}

/* The section first: without the drop-in it does nothing, and the other way round an agent would go unannounced. */
static int write_plan(const struct plan *plan) {
        int exit_code = CTL_OK;

        if (!plan->other_section[0])
                exit_code = write_one(plan->paths.section, plan->unit, plan->section);
        /* A user may enroll a unit of their own; its section is root's to add. */
        if (exit_code == CTL_OK || (ctl_options.user && exit_code == CTL_DENIED))
                exit_code = write_one(plan->paths.dropin, plan->unit, plan->dropin);
        return exit_code;
}

/* The agent itself */

/* Users' units may have the name of one of the system's. A row without a cgroup (source: proc) has its name alone. */
static bool is_row_of(const json_t *row, const char *unit, const char *cgroup) {
        const char *listed = json_string_value(json_object_get(row, "cgroup")) ?: "";

        return listed[0] && cgroup[0] ? mg_streq(listed, cgroup)
                                      : mg_streq(member_text(row, "unit"), unit);
}

static json_int_t count_agents(const char *unit, const char *cgroup, bool *ret_answered) {
        MG_CLEANUP(json_decrefp) json_t *units = NULL;
        char *all[] = { NULL };
        size_t i;
        json_t *row;

        *ret_answered = client_call_names(&units, "ListUnits", all) == CTL_OK;
        json_array_foreach(units, i, row) {
                if (is_row_of(row, unit, cgroup))
                        return member_integer(row, "agents", 0);
        }
        return 0;
}

static void print_why_not(const char *unit) {
        MG_CLEANUP(json_decrefp) json_t *processes = NULL;
        size_t i;
        json_t *row;

        if (client_call(&processes, "ListProcesses", "s", unit) != CTL_OK)
                return;
        json_array_foreach(processes, i, row) {
                fprintf(stderr, "  %s (%s): %s\n", member_text(row, "command"),
                        member_text(row, "pid"), member_text(row, "agent_reason"));
        }
}

static int wait_for_agent(sd_bus *bus, const char *unit) {
        char cgroup[PATH_MAX];
        bool answered = true;
        int exit_code = enroll_get_cgroup(bus, unit, cgroup, sizeof(cgroup));

        if (exit_code != CTL_OK)
                return exit_code;
        for (int i = 0; i < AGENT_INTERVALS && answered; i++) {
                json_int_t agents = count_agents(unit, cgroup, &answered);
                if (agents > 0) {
                        printf("%s: the agent has connected (%d of its processes).\n", unit,
                               (int) agents);
                        return CTL_OK;
                }
                if (answered)
                        nanosleep(&(struct timespec){ .tv_nsec = AGENT_INTERVAL_NSEC }, NULL);
        }
        if (!answered)
                return CTL_NO_DAEMON;
        fprintf(stderr, "memguardctl: %s runs, and no agent has connected in %d s:\n", unit,
                (int) (AGENT_INTERVALS * AGENT_INTERVAL_NSEC / 1000000000L));
        print_why_not(ctl_options.user && cgroup[0] ? cgroup : unit);
        return CTL_FAILED;
}

/* A daemon that does not run reads its configuration when it starts. */
static void reload_daemon(void) {
        MG_CLEANUP(json_decrefp) json_t *warnings = NULL;

        (void) client_call(&warnings, "Reload", "");
}

static int put_in_force(sd_bus *bus, const struct enroll_facts *facts) {
        const char *mode = ctl_options.user ? "--user " : "";
        bool runs = false;

        if (ctl_options.root)
                return CTL_OK;
        int exit_code = enroll_daemon_reload(bus);
        if (exit_code != CTL_OK)
                return exit_code;
        reload_daemon();
        if (!ctl_options.restart) {
                printf("\nThe agent is loaded when the service starts next: systemctl %srestart %s\n",
                       mode, facts->unit);
                return CTL_OK;
        }
        if (facts->may_not_be_stopped) {
                fprintf(stderr,
                        "memguardctl: %s may not be restarted by hand: the agent is loaded at the next boot\n",
                        facts->unit);
                return CTL_FAILED;
        }
        exit_code = enroll_restart(bus, facts->unit, &runs);
        if (exit_code == CTL_OK && !runs)
                printf("\n%s does not run: the agent is loaded when it starts.\n", facts->unit);
        return runs ? wait_for_agent(bus, facts->unit) : exit_code;
}

static int enroll(sd_bus *bus, const struct enroll_facts *facts, const char *agent) {
        struct enroll_findings findings;
        struct plan plan = {};

        enroll_judge(facts, agent, &findings);
        print_findings(&findings);
        if (findings.n_blockers > 0)
                return CTL_FAILED;
        int exit_code = make_plan(&plan, facts, agent);
        if (exit_code != CTL_OK)
                return exit_code;
        print_plan(&plan);
        if (ctl_options.print)
                return CTL_OK;
        exit_code = write_plan(&plan);
        return exit_code == CTL_OK ? put_in_force(bus, facts) : exit_code;
}

static int check_name(const char *name, char *ret_unit) {
        const char *why = enroll_check_name(name, ret_unit);

        if (!why)
                return CTL_OK;
        fprintf(stderr, "memguardctl: %s: %s\n", ret_unit[0] ? ret_unit : name, why);
        return CTL_FAILED;
}

int verb_enroll(int argc, char **argv) {
        MG_CLEANUP(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        MG_CLEANUP(json_decrefp) json_t *unit_properties = NULL;
        MG_CLEANUP(json_decrefp) json_t *service_properties = NULL;
        MG_CLEANUP(enroll_facts_done) struct enroll_facts facts = {};
        char unit[MG_UNIT_NAME_MAX], agent[PATH_MAX];

        int exit_code = check_name(argv[1], unit);
        if (exit_code == CTL_OK)
                exit_code = enroll_connect(ctl_options.user, &bus);
        if (exit_code == CTL_OK)
                exit_code = enroll_get_properties(bus, unit, &unit_properties, &service_properties);
        if (exit_code == CTL_OK)
                exit_code = find_agent(agent, sizeof(agent));
        if (exit_code != CTL_OK)
                return exit_code;
        int r = enroll_facts_take(&facts, unit_properties, service_properties, AGENT_SOCKET_PATH);
        if (r < 0) {
                fprintf(stderr, "memguardctl: out of memory\n");
                return CTL_FAILED;
        }
        enroll_programs(&facts, ctl_options.user);
        return enroll(bus, &facts, agent);
}

/* withdraw */

static int withdraw_one(const char *path, bool *found) {
        int r = enroll_remove(path);

        *found = *found || r >= 0;
        if (r == 0)
                printf("%s: taken away\n", path);
        else if (r > 0)
                printf("%s: it was edited, and is kept as %s.withdrawn, which nobody reads\n", path,
                       path);
        else if (r == -EEXIST)
                fprintf(stderr, "memguardctl: %s was not written by enroll: left as it is\n", path);
        else if (r != -ENOENT)
                fprintf(stderr, "memguardctl: cannot take %s away: %s\n", path, strerror(-r));
        if (r == -EACCES || r == -EPERM)
                return CTL_DENIED;
        return r >= 0 || r == -ENOENT || r == -EEXIST ? CTL_OK : CTL_FAILED;
}

static int put_out_of_force(const char *unit) {
        MG_CLEANUP(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        bool runs;
        int exit_code = enroll_connect(ctl_options.user, &bus);

        if (exit_code == CTL_OK)
                exit_code = enroll_daemon_reload(bus);
        if (exit_code != CTL_OK)
                return exit_code;
        reload_daemon();
        if (ctl_options.restart)
                return enroll_restart(bus, unit, &runs);
        printf("\nThe agent stays in the running service until it starts next, and does no harm.\n");
        return CTL_OK;
}

int verb_withdraw(int argc, char **argv) {
        struct enroll_paths paths;
        char unit[MG_UNIT_NAME_MAX];
        bool found = false;

        int exit_code = check_name(argv[1], unit);
        if (exit_code != CTL_OK)
                return exit_code;
        int r = enroll_paths(ctl_options.root ?: "", unit, ctl_options.user, &paths);
        if (r < 0) {
                fprintf(stderr, "memguardctl: %s: %s\n", unit, strerror(-r));
                return CTL_FAILED;
        }
        exit_code = withdraw_one(paths.dropin, &found);
        int section_code = withdraw_one(paths.section, &found);
        if (exit_code == CTL_OK)
                exit_code = section_code;
        if (!found && exit_code == CTL_OK) {
                fprintf(stderr, "memguardctl: %s was not enrolled: there is nothing to take away\n",
                        unit);
                return CTL_FAILED;
        }
        if (!found || ctl_options.root)
                return exit_code;
        /* What could be taken away must not stay in force because the other could not. */
        int force_code = put_out_of_force(unit);
        return exit_code != CTL_OK ? exit_code : force_code;
}
