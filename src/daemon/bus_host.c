/* SPDX-License-Identifier: MIT */
/* The host and the daemon as a dictionary. Layer: daemon. */
#include <unistd.h>

#include "daemon/bus_units.h"
#include "daemon/pressure.h"
#include "daemon/provider.h"
#include "daemon/self.h"

static void put_self(struct dict *dict, const struct self *self) {
        struct self_heap heap;

        if (!self)
                return;
        self_heap(&heap);
        dict_string(dict, "self_allocator", self->allocator);
        dict_u64(dict, "self_anon_bytes", self_rss_anon(self));
        dict_u64(dict, "self_cpu_permyriad", self_cpu_permyriad(self));
        dict_u64(dict, "self_cpu_usec", self_cpu_usec());
        dict_u64(dict, "self_allocated_bytes", heap.allocated_bytes);
        dict_u64(dict, "self_active_bytes", heap.active_bytes);
        dict_u64(dict, "self_metadata_bytes", heap.metadata_bytes);
        dict_u64(dict, "self_resident_bytes", heap.resident_bytes);
        dict_u64(dict, "self_mapped_bytes", heap.mapped_bytes);
        dict_u64(dict, "self_address_space_bytes", heap.retained_bytes);
}

static void put_counts(struct dict *dict, const struct manager *manager) {
        struct manager_counts counts;

        manager_count(manager, &counts);
        dict_u64(dict, "units", counts.units);
        dict_u64(dict, "trimming", counts.trimming);
        dict_u64(dict, "observing", counts.observing);
        dict_u64(dict, "no_agent", counts.no_agent);
        dict_u64(dict, "agents", counts.agents);
        dict_u64(dict, "history_bytes", counts.history_bytes);
        dict_u64(dict, "late_replies", manager->late_replies);
        dict_u64(dict, "trims", manager->trims);
        dict_u64(dict, "trimmed_bytes", manager->trimmed_bytes);
}

static void put_config_files(struct dict *dict, const struct mg_config *config) {
        const char *const *files = NULL;
        size_t n = config ? config_files(config, &files) : 0;

        dict_strings_begin(dict, "config_files");
        for (size_t i = 0; i < n; i++)
                dict_item(dict, files[i]);
        dict_strings_end(dict);
}

void bus_host(struct dict *dict, const struct manager *manager) {
        char hostname[256] = "";

        if (gethostname(hostname, sizeof(hostname) - 1) < 0)
                hostname[0] = '\0';
        dict_begin(dict);
        dict_string(dict, "version", MG_VERSION);
        dict_string(dict, "hostname", hostname);
        put_counts(dict, manager);
        put_self(dict, manager->self);
        dict_u64(dict, "pressure_clients", provider_clients(manager->provider));
        dict_u64(dict, "pressure_clients_bytes", provider_bytes(manager->provider));
        dict_bool(dict, "psi", pressure_is_armed(manager->pressure));
        dict_string(dict, "hierarchy", hierarchy_to_string(manager->hierarchy));
        dict_string(dict, "source",
                    source_to_string(manager->use_cgroups ? MG_SOURCE_CGROUP : MG_SOURCE_PROC));
        dict_bool(dict, "paused", manager->paused);
        dict_u64(dict, "uptime_usec", manager_now(manager) - manager->started_usec);
        put_config_files(dict, manager->config);
        dict_end(dict);
}
