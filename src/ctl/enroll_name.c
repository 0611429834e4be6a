/* SPDX-License-Identifier: MIT */
/* Which units can be enrolled, by their names. Layer: ctl; pure. */
#include "ctl/enroll.h"

#include "base/macros.h"

static const struct {
        const char *suffix;
        const char *why; /* NULL: can be */
} types[] = {
        { ".service", NULL },
        { ".slice", "a slice is a group of units: enroll the services in it, one by one" },
        { ".scope",
          "the processes of a scope are started by somebody else than systemd: whoever does has to set LD_PRELOAD" },
        { ".socket", "a socket runs no program: enroll the service it starts" },
        { ".timer", "a timer runs no program: enroll the service it starts" },
        { ".path", "a path unit runs no program: enroll the service it starts" },
        { ".target", "a target is a group of units: enroll the services in it, one by one" },
        { ".mount", "a mount is no service" },
        { ".automount", "a mount is no service" },
        { ".swap", "a swap is no service" },
        { ".device", "a device is no service" },
        { ".process", "it is in no unit: start the program with LD_PRELOAD= as its user does" },
};

/* systemd's VALID_CHARS. */
static bool is_name(const char *name) {
        static const char valid[] = "0123456789abcdefghijklmnopqrstuvwxyz"
                                    "ABCDEFGHIJKLMNOPQRSTUVWXYZ:-_.\\@";

        return name[0] != '\0' && name[0] != '@' && name[0] != '.' &&
               name[strspn(name, valid)] == '\0';
}

static bool ends_with(const char *name, const char *suffix) {
        size_t length = strlen(name), tail = strlen(suffix);

        return length > tail && mg_streq(name + length - tail, suffix);
}

static const char *check_service(const char *unit) {
        if (ends_with(unit, "@.service"))
                return "a template runs nothing: name an instance, as in worker@1.service";
        if (mg_streq(unit, "memguard.service") || mg_streq(unit, "memguard-exporter.service"))
                return "memguard is not enrolled with itself";
        return NULL;
}

const char *enroll_check_name(const char *name, char ret_unit[static MG_UNIT_NAME_MAX]) {
        struct mg_text text;
        size_t type = 0;

        ret_unit[0] = '\0';
        if (!is_name(name) || strlen(name) > MG_UNIT_NAME_MAX - sizeof(".service"))
                return "not the name of a unit";
        while (type < MG_ELEMENTS(types) && !ends_with(name, types[type].suffix))
                type++;
        text_init(&text, ret_unit, MG_UNIT_NAME_MAX);
        text_put(&text, name);
        if (type == MG_ELEMENTS(types)) {
                text_put(&text, ".service");
                type = 0;
        }
        return types[type].why ?: check_service(ret_unit);
}
