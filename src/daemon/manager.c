/* SPDX-License-Identifier: MIT */
/*
 * The daemon put together, run and taken apart again. Layer: daemon.
 *
 * Order matters at both ends: the lock comes before any socket is touched, the configuration before any unit; at the end
 * rounds are told first, state is saved while units still exist, and the lock goes last.
 */
#include "daemon/manager.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "daemon/bus.h"
#include "daemon/discovery.h"
#include "daemon/identity.h"
#include "daemon/journal.h"
#include "daemon/notify.h"
#include "daemon/peer.h"
#include "daemon/peer_io.h"
#include "daemon/pressure.h"
#include "daemon/provider.h"
#include "daemon/reload.h"
#include "daemon/runtime_dir.h"
#include "daemon/self.h"
#include "daemon/store.h"
#include "daemon/tick.h"
#include "daemon/trim.h"
#include "daemon/unit.h"
#include "host/bus_api.h"

/* Hundreds of agents come back at once after a restart; the kernel caps this at net.core.somaxconn. */
#define AGENT_BACKLOG 4096

/* Each agent takes a socket and its process's statm; the rest is for units, the bus and reserves. */
#define DESCRIPTORS_PER_PEER 2
#define DESCRIPTORS_PER_UNIT 3
#define DESCRIPTORS_RESERVED 256
#define PEERS_MAX            16384
#define PEERS_MIN            64

/* systemd's signal for commands to a service, with the command as its value, and the one that asks for memory. */
#define COMMAND_SIGNAL    (SIGRTMIN + 18)
#define COMMAND_TRIM_SELF 0x300

uint64_t manager_now(const struct manager *manager) {
        uint64_t usec = 0;

        (void) sd_event_now(manager->event, CLOCK_MONOTONIC, &usec);
        return usec;
}

static int open_directories(struct manager *manager) {
        const struct options *options = &manager->options;
        pid_t holder;
        int r;

        r = directory_open(options->runtime_directory, &manager->runtime_dir_fd);
        if (r < 0)
                return journal_errno(
                                LOG_ERR, r, NULL, "Cannot use runtime directory %s",
                                options->runtime_directory);
        r = runtime_dir_lock(manager->runtime_dir_fd, &manager->lock_fd, &holder);
        if (r == -EWOULDBLOCK) {
                journal_log(LOG_ERR, NULL, "Another memguardd (pid %d) has runtime directory %s",
                            (int) holder, options->runtime_directory);
                return r;
        }
        if (r < 0)
                return journal_errno(
                                LOG_ERR, r, NULL, "Cannot lock runtime directory %s",
                                options->runtime_directory);
        r = directory_open(options->state_directory, &manager->state_dir_fd);
        if (r < 0)
                journal_errno(LOG_WARNING, r, NULL, "Nothing will be kept over a reboot: %s",
                              options->state_directory);
        return 0;
}

static int find_source(struct manager *manager) {
        enum source_choice choice = manager->options.source;
        struct process_unit own;
        int r;

        if (unit_of_process(getpid(), getuid(), "", &own) >= 0)
                memcpy(manager->own_unit_path, own.path, sizeof(manager->own_unit_path));
        r = cgroup_find_root(
                        manager->options.cgroup_root, manager->cgroup_root,
                        sizeof(manager->cgroup_root), &manager->hierarchy);
        if (r < 0)
                manager->hierarchy = MG_HIERARCHY_NONE;
        manager->use_cgroups = choice != SOURCE_PROC && manager->hierarchy == MG_HIERARCHY_UNIFIED;
        if (choice == SOURCE_CGROUP && !manager->use_cgroups) {
                journal_log(LOG_ERR, NULL,
                            "--source=cgroup, but there is no cgroup v2 with memory here (%s)",
                            hierarchy_to_string(manager->hierarchy));
                return -EOPNOTSUPP;
        }
        if (!manager->use_cgroups)
                journal_source(NULL, MG_SOURCE_PROC,
                               choice == SOURCE_PROC ? "asked for by --source=proc"
                                                     : hierarchy_to_string(manager->hierarchy));
        return 0;
}

static int open_sockets(struct manager *manager) {
        const char *directory = manager->options.runtime_directory;
        MG_CLEANUP(activation_done) struct activation activation;
        int r = activation_take(&activation);

        if (r < 0)
                return journal_errno(LOG_ERR, r, NULL, "Cannot take over descriptors");
        manager->agent_fd = activation.agent_fd;
        manager->bus_fd = activation.bus_fd;
        r =
                        provider_new(manager, activation.pressure_fd, activation.clients,
                                     activation.n_clients, &manager->provider);
        if (r < 0)
                return r;
        if (manager->agent_fd < 0) {
                r = runtime_dir_listen(
                                directory, MG_AGENT_SOCKET, SOCK_SEQPACKET, 0666, AGENT_BACKLOG,
                                &manager->agent_fd);
                if (r < 0)
                        return journal_errno(
                                        LOG_ERR, r, NULL, "Cannot listen on %s/%s", directory,
                                        MG_AGENT_SOCKET);
                manager->agent_socket_own = true;
        }
        return peer_listen(manager);
}

static int on_stop(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata) {
        struct manager *manager = userdata;

        notify_stopping();
        (void) sd_event_exit(manager->event, 0);
        return 0;
}

static int on_hangup(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata) {
        reload_by_signal(userdata);
        return 0;
}

static void trim_self(struct manager *manager) {
        uint64_t before = self_rss_anon(manager->self);
        char buffer[128];
        struct mg_text text;

        self_release();
        text_init(&text, buffer, sizeof(buffer));
        text_put(&text, "trimmed itself by request: anon ");
        text_put_size(&text, before);
        text_put(&text, " -> ");
        text_put_size(&text, self_rss_anon(manager->self));
        journal_log(LOG_INFO, NULL, "%s", buffer);
}

/* "Please trim yourself", to any service that knows it: systemd(1), under SIGNALS. */
static int on_command(
                sd_event_source *source,
                const struct signalfd_siginfo *info,
                void *userdata) {
        struct manager *manager = userdata;

        if (info->ssi_code == SI_QUEUE && info->ssi_int == COMMAND_TRIM_SELF)
                trim_self(manager);
        else
                journal_log(LOG_NOTICE, NULL,
                            "signal SIGRTMIN+18 from pid %u without a known command: ignored",
                            info->ssi_pid);
        return 0;
}

static int add_signals(struct manager *manager) {
        sigset_t mask;
        int r;

        sigemptyset(&mask);
        sigaddset(&mask, SIGTERM);
        sigaddset(&mask, SIGINT);
        sigaddset(&mask, SIGHUP);
        sigaddset(&mask, COMMAND_SIGNAL);
        if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR)
                return -errno;
        r = sd_event_add_signal(manager->event, NULL, SIGTERM, on_stop, manager);
        if (r >= 0)
                r = sd_event_add_signal(manager->event, NULL, SIGINT, on_stop, manager);
        if (r >= 0)
                r = sd_event_add_signal(manager->event, NULL, COMMAND_SIGNAL, on_command, manager);
        if (r >= 0)
                r = sd_event_add_signal(manager->event, NULL, SIGHUP, on_hangup, manager);
        return r;
}

static int add_sources(struct manager *manager) {
        int r;

        r = add_signals(manager);
        if (r < 0)
                return r;
        r = sd_event_add_defer(
                        manager->event, &manager->graveyard_source, peer_on_graveyard, manager);
        if (r < 0)
                return r;
        return sd_event_source_set_enabled(manager->graveyard_source, SD_EVENT_OFF);
}

static struct manager *manager_alloc(struct options *options) {
        struct manager *manager = calloc(1, sizeof(*manager));

        if (!manager)
                return NULL;
        manager->options = *options;
        *options = (struct options){};
        list_init(&manager->units);
        list_init(&manager->peers);
        list_init(&manager->graveyard);
        list_init(&manager->rounds);
        manager->agent_fd = -EBADF;
        manager->bus_fd = -EBADF;
        manager->lock_fd = -EBADF;
        manager->runtime_dir_fd = -EBADF;
        manager->units_dir_fd = -EBADF;
        manager->state_dir_fd = -EBADF;
        return manager;
}

static void share_descriptors(struct manager *manager) {
        unsigned long limit = raise_descriptor_limit();
        unsigned long for_units = manager->n_units * DESCRIPTORS_PER_UNIT +
                                  manager->settings.pressure_clients + DESCRIPTORS_RESERVED;
        unsigned long peers = limit > for_units ? (limit - for_units) / DESCRIPTORS_PER_PEER : 0;

        peers = MG_MAX(peers, (unsigned long) PEERS_MIN);
        manager->max_peers = MG_MIN(peers, (unsigned long) PEERS_MAX);
}

static int set_up(struct manager *manager) {
        int r;

        r = sd_event_default(&manager->event);
        if (r < 0)
                return journal_errno(LOG_ERR, r, NULL, "Cannot make an event loop");
        manager->started_usec = manager_now(manager);
        r = open_directories(manager);
        if (r < 0)
                return r;
        r = find_source(manager);
        if (r < 0)
                return r;
        r = store_open(manager);
        if (r < 0)
                return r;
        manager_apply_paused(manager);
        r = self_new(&manager->self);
        if (r < 0)
                return journal_errno(LOG_ERR, r, NULL, "Cannot look at the daemon's own process");
        r = add_sources(manager);
        if (r < 0)
                return journal_errno(LOG_ERR, r, NULL, "Cannot set up signals and timers");
        r = discovery_start(manager);
        if (r < 0)
                return journal_errno(LOG_ERR, r, NULL, "Cannot look for units");
        share_descriptors(manager);
        r = open_sockets(manager);
        if (r < 0)
                return r;
        r = pressure_new(manager, &manager->pressure);
        if (r < 0)
                return journal_errno(LOG_ERR, r, NULL, "Cannot look out for memory pressure");
        r = bus_server_new(manager, &manager->bus);
        if (r < 0)
                return journal_errno(LOG_ERR, r, NULL, "Cannot serve memguardctl");
        return tick_start(manager);
}

int manager_new(struct options *options, struct manager **ret_manager) {
        MG_CLEANUP(manager_freep) struct manager *manager = manager_alloc(options);
        int r;

        if (!manager)
                return -ENOMEM;
        r = reload_at_start(manager);
        if (r < 0)
                return r;
        r = set_up(manager);
        if (r < 0)
                return r;
        *ret_manager = MG_TAKE(manager);
        return 0;
}

static void free_units(struct manager *manager) {
        while (unit_first(manager))
                unit_free(unit_first(manager));
}

static void free_sources(struct manager *manager) {
        manager->extra_source = sd_event_source_disable_unref(manager->extra_source);
        manager->listen_source = sd_event_source_disable_unref(manager->listen_source);
        manager->listen_retry_source = sd_event_source_disable_unref(manager->listen_retry_source);
}

struct manager *manager_free(struct manager *manager) {
        if (!manager)
                return NULL;
        free_sources(manager);
        discovery_stop(manager);
        manager->pressure = pressure_free(manager->pressure);
        manager->provider = provider_free(manager->provider);
        for (struct unit *u = unit_first(manager); u; u = unit_next(u))
                trim_cancel(u);
        manager->bus = bus_server_free(manager->bus);
        if (manager->store)
                store_save_all(manager);
        peer_close_all(manager);
        free_units(manager);
        store_close(manager);
        manager->graveyard_source = sd_event_source_disable_unref(manager->graveyard_source);
        manager->self = self_free(manager->self);
        manager->config = config_free(manager->config);
        if (manager->agent_socket_own)
                (void) unlinkat(manager->runtime_dir_fd, MG_AGENT_SOCKET, 0);
        file_closep(&manager->agent_fd);
        file_closep(&manager->bus_fd);
        sd_event_unref(manager->event);
        file_closep(&manager->units_dir_fd);
        file_closep(&manager->state_dir_fd);
        file_closep(&manager->lock_fd);
        file_closep(&manager->runtime_dir_fd);
        free(manager->samples);
        free(manager->candidates);
        options_done(&manager->options);
        free(manager);
        return NULL;
}

static void tell_start(const struct manager *manager) {
        journal_start(&(struct mg_journal_start){
                        .hierarchy = hierarchy_to_string(manager->hierarchy),
                        .source = source_to_string(
                                        manager->use_cgroups ? MG_SOURCE_CGROUP : MG_SOURCE_PROC),
                        .allocator = manager->self->allocator,
                        .config = reload_main_file(manager),
                        .units = manager->n_units,
                        .agents = manager->n_peers,
                        .psi = pressure_is_armed(manager->pressure),
                        .paused = manager->paused,
        });
}

/* As sd_event_loop(), with ticks. */
static int loop(struct manager *manager) {
        while (sd_event_get_state(manager->event) != SD_EVENT_FINISHED) {
                int r = tick_run(manager, UINT64_MAX);
                if (r < 0)
                        return r;
        }
        int code = 0;
        (void) sd_event_get_exit_code(manager->event, &code);
        return code;
}

int manager_run(struct manager *manager) {
        int r;

        (void) notify_watchdog(manager->event);
        notify_ready();
        tell_start(manager);
        r = loop(manager);
        if (r < 0)
                journal_errno(LOG_ERR, r, NULL, "The event loop failed");
        journal_stop(&(struct mg_journal_stop){
                        .uptime_usec = mg_sub_floor(manager_now(manager), manager->started_usec),
                        .trims = manager->trims,
                        .trimmed_bytes = manager->trimmed_bytes,
        });
        return r;
}

void manager_apply_paused(struct manager *manager) {
        manager->paused = manager->paused_by_hand || manager->settings.paused;
}

/* What an overrun has taught is forgotten on the disk as well, or the service's next start would learn it from there. */
static void resume_unit(struct unit *unit) {
        bool taught = unit->policy.breaker_open;

        policy_resume(&unit->policy);
        if (taught)
                store_save_unit(unit);
}

int manager_set_paused(struct manager *manager, struct unit *unit, bool paused) {
        if (unit)
                unit->paused = paused;
        else {
                manager->paused_by_hand = paused;
                manager->paused =
                                paused; /* resume is stronger than Paused=yes, until the next reload */
        }
        if (unit && !paused)
                resume_unit(unit);
        if (!unit && !paused)
                for (struct unit *u = unit_first(manager); u; u = unit_next(u)) {
                        u->paused = false;
                        resume_unit(u);
                }
        return store_save_pauses(manager, unit || paused);
}

void manager_set_log_level(struct manager *manager, int level) {
        manager->log_level = level;
        journal_set_level(level);
}

static void count_unit(
                const struct manager *manager,
                const struct unit *unit,
                struct manager_counts *counts) {
        counts->units++;
        counts->agents += unit->n_agents;
        counts->history_bytes += sizeof(unit->history);
        if (unit->n_agents == 0)
                counts->no_agent++;
        else if (unit->config.mode == MG_MODE_TRIM && !manager->paused && !unit->paused)
                counts->trimming++;
        else if (unit->config.mode == MG_MODE_OBSERVE)
                counts->observing++;
}

void manager_count(const struct manager *manager, struct manager_counts *ret_counts) {
        *ret_counts = (struct manager_counts){};
        for (struct unit *u = unit_first(manager); u; u = unit_next(u))
                count_unit(manager, u, ret_counts);
}
