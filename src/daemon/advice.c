/* SPDX-License-Identifier: MIT */
/* The facts that advice rests on; see advice.h. Layer: daemon. */
#include "daemon/advice.h"

#include <string.h>
#include <unistd.h>

#include "core/account.h"
#include "daemon/peer.h"
#include "daemon/process.h"
#include "daemon/unit.h"

bool advice_is_tuned(enum mg_advice_allocator allocator, const char *options) {
        if (allocator != MG_ALLOCATOR_GLIBC || !options || options[0] == '\0')
                return false;
        return strncmp(options, "tunables:", strlen("tunables:")) != 0 ||
               strstr(options, "glibc.malloc.");
}

bool advice_has_background_thread(const char *options) {
        static const char word[] = "background_thread:true";
        const char *at = options;

        while (at && (at = strstr(at, word))) {
                char after = at[sizeof(word) - 1];

                /* Not the end of another option's name, nor the beginning of another value. */
                if ((at == options || at[-1] == ' ' || at[-1] == ',') &&
                    (after == '\0' || after == ' ' || after == ','))
                        return true;
                at += sizeof(word) - 1;
        }
        return false;
}

/* Of those with an agent, or nobody could say more than that it is large. */
static const struct process *worst_process(const struct unit *unit) {
        const struct process *worst = NULL;
        uint64_t most = 0;

        for (const struct process *p = process_first(unit); p; p = process_next(p)) {
                uint64_t retained = 0;

                if (p->gone || !p->peer || p->peer->n_heaps == 0)
                        continue;
                if (p->sample.stats_at_usec != MG_UNKNOWN)
                        retained = account_process_retained(&p->sample);
                if (worst && retained <= most)
                        continue;
                worst = p;
                most = retained;
        }
        return worst;
}

/* A jemalloc program has a glibc heap too, which serves nothing. */
static const struct peer_heap *serving_heap(const struct peer *peer) {
        for (uint32_t i = 0; i < peer->n_heaps; i++) {
                uint64_t serves = peer->heaps[i].number[MG_HEAP_SERVES_MALLOC];

                if (serves != MG_UNKNOWN && serves > 0)
                        return &peer->heaps[i];
        }
        return &peer->heaps[0];
}

void advice_facts(const struct unit *unit, struct mg_advice_facts *ret_facts) {
        const struct process *worst = worst_process(unit);
        long cpus = sysconf(_SC_NPROCESSORS_ONLN);

        *ret_facts = (struct mg_advice_facts){
                .allocator = MG_ALLOCATOR_OTHER,
                .arenas = MG_UNKNOWN,
                .free_chunks = MG_UNKNOWN,
                .cpus = cpus > 0 ? (uint64_t) cpus : 0,
        };
        if (!worst)
                return;
        const struct peer_heap *heap = serving_heap(worst->peer);
        if (!heap->allocator)
                return;
        ret_facts->allocator = (enum mg_advice_allocator) advice_allocator_from_string(
                        heap->allocator, strlen(heap->allocator));
        ret_facts->arenas = heap->number[MG_HEAP_ARENAS];
        ret_facts->free_chunks = heap->number[MG_HEAP_FREE_CHUNKS];
        ret_facts->tuned = advice_is_tuned(ret_facts->allocator, heap->options);
        ret_facts->background_thread = ret_facts->allocator == MG_ALLOCATOR_JEMALLOC &&
                                       advice_has_background_thread(heap->options);
}
