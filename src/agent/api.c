/* SPDX-License-Identifier: MIT */
/* The public functions, as they are in both objects: errno kept, the rest by the table. Layer: agent. */
#include <errno.h>

#include "agent/entry.h"
#include "base/macros.h"

/* Only the preload object defines it. */
extern const struct mg_entry memguard_preloaded __attribute__((weak));

static const struct mg_entry *find_entry(void) {
        return &memguard_preloaded ? &memguard_preloaded : &own_entry;
}

/* Runs CALL and puts errno back. */
#define QUIETLY(call)                \
        ({                           \
                int saved = errno;   \
                int result = (call); \
                errno = saved;       \
                result;              \
        })

MG_PUBLIC int memguard_start(const struct memguard_options *options) {
        return QUIETLY(find_entry()->start(options));
}

MG_PUBLIC int memguard_stop(void) {
        return QUIETLY(find_entry()->stop());
}

MG_PUBLIC int memguard_open(const struct memguard_options *options) {
        return QUIETLY(find_entry()->open(options));
}

MG_PUBLIC int memguard_get_fd(void) {
        return QUIETLY(find_entry()->get_fd());
}

MG_PUBLIC int memguard_dispatch(void) {
        return QUIETLY(find_entry()->dispatch());
}

MG_PUBLIC int memguard_close(void) {
        return QUIETLY(find_entry()->close());
}

MG_PUBLIC int memguard_cache_register(
                const char *name,
                memguard_cache_bytes_fn bytes,
                memguard_cache_shrink_fn shrink,
                void *userdata,
                struct memguard_cache **ret_cache) {
        return QUIETLY(find_entry()->cache_register(name, bytes, shrink, userdata, ret_cache));
}

MG_PUBLIC int memguard_cache_unregister(struct memguard_cache *cache) {
        return QUIETLY(find_entry()->cache_unregister(cache));
}

MG_PUBLIC int memguard_checkpoint(const char *tag) {
        return QUIETLY(find_entry()->checkpoint(tag));
}

MG_PUBLIC int memguard_suspend(const char *reason) {
        return QUIETLY(find_entry()->suspend(reason));
}

MG_PUBLIC int memguard_resume(const char *reason) {
        return QUIETLY(find_entry()->resume(reason));
}

MG_PUBLIC const char *memguard_version(void) {
        return MG_VERSION;
}
