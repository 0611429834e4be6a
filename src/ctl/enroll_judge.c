/* SPDX-License-Identifier: MIT */
/* What is in the way of an agent in a unit, and what an operator should know. Layer: ctl; pure. */
#include <stdarg.h>
#include <stdio.h>

#include "base/macros.h"
#include "ctl/enroll.h"

/* Below, what a single-threaded program could retain is not worth what a second thread costs it. */
#define RETAINS_BYTES (256 * MG_MIB)

static void MG_PRINTF(3, 4)
                find(struct enroll_findings *findings,
                     enum enroll_weight weight,
                     const char *format,
                     ...) {
        va_list values;

        if (weight == ENROLL_BLOCKER)
                findings->n_blockers++;
        if (findings->n == MG_ELEMENTS(findings->list))
                return;
        struct enroll_finding *finding = &findings->list[findings->n++];
        finding->weight = weight;
        va_start(values, format);
        vsnprintf(finding->text, sizeof(finding->text), format, values);
        va_end(values);
}

/* Launchers */

static const struct {
        const char *program;
        const char *option; /* only with it among the arguments, the first letters of which count; NULL: always */
        const char *what;
} launchers[] = {
        { "pg_ctlcluster", NULL, "pg_ctlcluster" },
        { "sudo", NULL, "sudo" },
        { "doas", NULL, "doas" },
        { "su", "-", "su" },
        { "su", "-l", "su" },
        { "su", "--login", "su" },
        { "runuser", "-", "runuser -l" },
        { "runuser", "-l", "runuser -l" },
        { "runuser", "--login", "runuser -l" },
        { "env", "-", "env -i" },
        { "env", "-i", "env -i" },
        { "env", "--ignore-environment", "env -i" },
        { "setpriv", "--reset-env", "setpriv --reset-env" },
        { "docker", NULL, "docker" },
        { "podman", NULL, "podman" },
};

static bool is_program(const char *word, size_t length, const char *name) {
        const char *end = word + length;
        const char *base = end;

        while (base > word && base[-1] != '/')
                base--;
        return (size_t) (end - base) == strlen(name) &&
               memcmp(base, name, (size_t) (end - base)) == 0;
}

static bool has_argument(const char *const *arguments, const char *option) {
        for (; *arguments; arguments++) {
                if (mg_streq(*arguments, option))
                        return true;
                /* Behind the first word that is no option comes the command. */
                if ((*arguments)[0] != '-')
                        return false;
        }
        return false;
}

static const char *find_launcher(const char *const *argv) {
        for (size_t i = 0; argv[0] && i < MG_ELEMENTS(launchers); i++)
                if (is_program(argv[0], strlen(argv[0]), launchers[i].program) &&
                    (!launchers[i].option || has_argument(argv + 1, launchers[i].option)))
                        return launchers[i].what;
        return NULL;
}

/* A word of a shell's command line that is such a program; its arguments are not told apart. */
static const char *find_in_shell(const char *script) {
        static const char breaks[] = " \t\n;&|()`\"'";

        for (const char *at = script; *at;) {
                at += strspn(at, breaks);
                size_t length = strcspn(at, breaks);
                for (size_t i = 0; length > 0 && i < MG_ELEMENTS(launchers); i++)
                        if (!mg_streq(launchers[i].program, "env") &&
                            is_program(at, length, launchers[i].program))
                                return launchers[i].what;
                at += length;
        }
        return NULL;
}

const char *enroll_launcher(const char *const *argv) {
        static const char *const shells[] = { "sh", "bash", "dash", "zsh", "ksh" };
        const char *found = argv ? find_launcher(argv) : NULL;

        if (found || !argv || !argv[0])
                return found;
        for (size_t i = 0; i < MG_ELEMENTS(shells); i++) {
                if (!is_program(argv[0], strlen(argv[0]), shells[i]))
                        continue;
                for (const char *const *argument = argv + 1; *argument && !found; argument++)
                        found = find_in_shell(*argument);
        }
        return found;
}

static void judge_launcher(
                const struct enroll_facts *facts,
                const char *agent,
                struct enroll_findings *findings) {
        const char *launcher = enroll_launcher(facts->command);

        if (!launcher)
                return;
        if (mg_streq(launcher, "pg_ctlcluster"))
                find(findings, ENROLL_BLOCKER,
                     "pg_ctlcluster clears the environment. By hand: put\n"
                     "    LD_PRELOAD = '%s'\n"
                     "into /etc/postgresql/VERSION/CLUSTER/environment, and restart the cluster",
                     agent);
        else if (mg_streq(launcher, "docker") || mg_streq(launcher, "podman"))
                find(findings, ENROLL_BLOCKER,
                     "%s starts the program in a container. By hand: mount the agent and /run/memguard into it, and "
                     "give it -e LD_PRELOAD=...",
                     launcher);
        else
                find(findings, ENROLL_BLOCKER,
                     "ExecStart= uses %s, which clears the environment. By hand: let systemd change the user (User=), or "
                     "have the command that it runs set\n"
                     "    LD_PRELOAD='%s'",
                     launcher, agent);
}

/* Programs */

static void judge_program(const struct enroll_program *program, struct enroll_findings *findings) {
        if (program->script[0])
                find(findings, ENROLL_NOTE,
                     "%s is a script: %s runs it, and what it starts inherits the agent",
                     program->script, program->path);
        if (program->error < 0)
                find(findings, ENROLL_WARNING,
                     "%s cannot be looked at (%s): whether an agent can be loaded is not known",
                     program->path, strerror(-program->error));
        else if (program->elf.is_static)
                find(findings, ENROLL_BLOCKER, "%s is linked statically: nothing can be preloaded",
                     program->path);
        else if (!program->elf.is_native)
                find(findings, ENROLL_BLOCKER,
                     "%s is of another architecture or word size than the agent", program->path);
        else if (program->elf.libc != MG_LIBC_GLIBC)
                find(findings, ENROLL_BLOCKER, "%s runs on another C library than glibc (%s)",
                     program->path, program->elf.interpreter);
        if (program->gains_rights)
                find(findings, ENROLL_BLOCKER,
                     "%s is set-uid, set-gid or has file capabilities: the loader ignores LD_PRELOAD. By hand: take them off "
                     "the file, and give them to the unit (User=, AmbientCapabilities=)",
                     program->path);
}

static void judge_programs(const struct enroll_facts *facts, struct enroll_findings *findings) {
        if (facts->running.path[0])
                judge_program(&facts->running, findings);
        else if (facts->started.path[0])
                judge_program(&facts->started, findings);
        else
                find(findings, ENROLL_WARNING, "the unit has no ExecStart=");
        if (facts->main_pid > 0 && facts->running.error < 0 && !facts->running.path[0])
                find(findings, ENROLL_WARNING,
                     "the main process may not be looked at: run this as root");
}

/* Settings of the unit */

static void judge_environment(const struct enroll_facts *facts, struct enroll_findings *findings) {
        if (facts->preload_file[0])
                find(findings, ENROLL_BLOCKER,
                     "%s (EnvironmentFile=) sets LD_PRELOAD, and what it says overrides every Environment=. By hand: add the "
                     "agent there",
                     facts->preload_file);
        if (facts->unsets_preload)
                find(findings, ENROLL_BLOCKER,
                     "UnsetEnvironment= takes LD_PRELOAD away from the service");
        if (facts->passes_preload)
                find(findings, ENROLL_WARNING,
                     "PassEnvironment= hands the manager's LD_PRELOAD on: the drop-in's takes its place");
        if (facts->preload && facts->preload[0] &&
            !strstr(facts->preload, "libmemguard-preload.so"))
                find(findings, ENROLL_NOTE, "the unit preloads %s already: that stays in front",
                     facts->preload);
}

static void judge_sandbox(
                const struct enroll_facts *facts,
                const char *agent,
                struct enroll_findings *findings) {
        if (facts->forbids_unix)
                find(findings, ENROLL_BLOCKER,
                     "RestrictAddressFamilies= leaves AF_UNIX out: the agent could not connect. By hand: allow it in a "
                     "drop-in of yours with\n"
                     "    RestrictAddressFamilies=AF_UNIX");
        if (facts->forbidden_call)
                find(findings, ENROLL_BLOCKER,
                     "SystemCallFilter= forbids %s(2), which the agent needs. By hand: allow it in a drop-in of yours",
                     facts->forbidden_call);
        if (facts->root)
                find(findings, ENROLL_BLOCKER,
                     "the service's root is %s: the agent and memguard's socket are not in it. By hand: in a drop-in of yours\n"
                     "    BindReadOnlyPaths=%s /run/memguard",
                     facts->root, agent);
        if (facts->hides_socket)
                find(findings, ENROLL_BLOCKER,
                     "%s is hidden from the service, and memguard's socket with it. By hand: in a drop-in of yours\n"
                     "    BindReadOnlyPaths=/run/memguard",
                     facts->hides_socket);
        if (facts->confined_by)
                find(findings, ENROLL_WARNING,
                     "the service is confined as \"%s\": where that changes at its start the loader ignores LD_PRELOAD, and the "
                     "policy has to allow the agent and its socket",
                     facts->confined_by);
        else if (facts->selinux)
                find(findings, ENROLL_NOTE,
                     "SELinux is on: where its policy moves the service into another domain the loader ignores LD_PRELOAD, "
                     "which list-processes shows as secure-exec");
        if (facts->private_users)
                find(findings, ENROLL_NOTE,
                     "PrivateUsers= is on: the agent connects as a user that the host does not know, which memguardd allows");
}

static void judge_life(const struct enroll_facts *facts, struct enroll_findings *findings) {
        if (facts->transient)
                find(findings, ENROLL_WARNING,
                     "the unit is transient: it is gone once it ends, and the drop-in stays");
        if (mg_streq(facts->service_type, "oneshot"))
                find(findings, ENROLL_WARNING,
                     "Type=oneshot: what runs for a moment gives nothing back");
        if (facts->threads == 1 && facts->anon_bytes != MG_UNKNOWN &&
            facts->anon_bytes >= RETAINS_BYTES)
                find(findings, ENROLL_NOTE,
                     "its main process has one thread: the agent waits for a second one. MEMGUARD_THREAD=always in the drop-in "
                     "starts it at once, and ends glibc's single-thread fast paths (calloc 1.8 times, realloc 3.4 times "
                     "slower in a loop of nothing else)");
}

void enroll_judge(
                const struct enroll_facts *facts,
                const char *agent,
                struct enroll_findings *ret_findings) {
        ret_findings->n = ret_findings->n_blockers = 0;
        judge_programs(facts, ret_findings);
        judge_launcher(facts, agent, ret_findings);
        judge_environment(facts, ret_findings);
        judge_sandbox(facts, agent, ret_findings);
        judge_life(facts, ret_findings);
}
