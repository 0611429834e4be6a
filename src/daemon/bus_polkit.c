/* SPDX-License-Identifier: MIT */
/*
 * Who may act: root and the daemon's own user, and on the system bus whomever polkit allows. Layer: daemon.
 *
 * polkit is asked in the background, and when it says yes the method's handler runs a second time. One that hangs costs the
 * caller a timeout and nobody else anything: what may wait for it is bounded. Where there is none, root alone may act.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/macros.h"
#include "daemon/bus_server.h"
#include "daemon/journal.h"

#define POLKIT_NAME      "org.freedesktop.PolicyKit1"
#define POLKIT_PATH      "/org/freedesktop/PolicyKit1/Authority"
#define POLKIT_INTERFACE "org.freedesktop.PolicyKit1.Authority"

#define ALLOW_USER_INTERACTION 1u

#define WAITING_MAX            64
#define WAITING_PER_SENDER_MAX 4

/* A rule is evaluated in milliseconds; a person has to find and type a password. */
#define RULE_TIMEOUT_USEC   (10 * MG_USEC_PER_SEC)
#define PERSON_TIMEOUT_USEC (2 * MG_USEC_PER_MIN)

/* A call that waits for polkit's answer. */
struct authorization {
        struct mg_list all; /* server->authorizations */
        struct bus_server *server;
        sd_bus_message *call;
        sd_bus_message_handler_t handler;
        sd_bus_slot *slot;
};

static struct authorization *authorization_free(struct authorization *authorization) {
        list_remove(&authorization->all);
        authorization->server->n_authorizations--;
        sd_bus_slot_unref(authorization->slot);
        sd_bus_message_unref(authorization->call);
        free(authorization);
        return NULL;
}
MG_DEFINE_CLEANUP(struct authorization *, authorization_free)

void bus_polkit_forget(struct bus_server *server) {
        while (!list_is_empty(&server->authorizations))
                authorization_free(MG_CONTAINER_OF(
                                server->authorizations.next, struct authorization, all));
}

static int deny(sd_bus_error *error) {
        return sd_bus_error_set(
                        error, SD_BUS_ERROR_ACCESS_DENIED,
                        "Acting is for root, and for whom polkit allows it on the system bus");
}

/* Returns 1 for yes, or sets the error. */
static int read_answer(sd_bus_message *answer, sd_bus_error *error) {
        const sd_bus_error *failure = sd_bus_message_get_error(answer);
        int authorized, challenge, r;

        if (failure) {
                if (!sd_bus_error_has_name(failure, SD_BUS_ERROR_SERVICE_UNKNOWN) &&
                    !sd_bus_error_has_name(failure, SD_BUS_ERROR_NAME_HAS_NO_OWNER))
                        journal_log(LOG_DEBUG, NULL, "polkit has no answer: %s",
                                    failure->message ?: failure->name);
                return deny(error);
        }
        r = sd_bus_message_enter_container(answer, 'r', "bba{ss}");
        if (r >= 0)
                r = sd_bus_message_read(answer, "bb", &authorized, &challenge);
        if (r < 0)
                return r;
        if (authorized)
                return 1;
        if (challenge)
                return sd_bus_error_set(
                                error, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
                                "Interactive authentication required");
        return deny(error);
}

/* The handler reads its arguments, and looks for its unit, once more: it may have gone meanwhile. */
static int run_handler(struct authorization *authorization, sd_bus_error *error) {
        struct bus_server *server = authorization->server;
        int r = sd_bus_message_rewind(authorization->call, true);

        if (r < 0)
                return r;
        server->granted = authorization->call;
        r = authorization->handler(authorization->call, server, error);
        server->granted = NULL;
        return r;
}

static int on_answer(sd_bus_message *answer, void *userdata, sd_bus_error *unused) {
        MG_CLEANUP(authorization_freep) struct authorization *authorization = userdata;
        MG_CLEANUP(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int r = read_answer(answer, &error);

        if (r >= 0)
                r = run_handler(authorization, &error);
        if (r < 0)
                (void) sd_bus_reply_method_errno(authorization->call, r, &error);
        return 1;
}

static bool is_interactive(sd_bus_message *call) {
        return sd_bus_message_get_allow_interactive_authorization(call) > 0;
}

/* A rule may look at the unit: action.lookup("unit"). */
static int make_question(
                struct bus_server *server,
                sd_bus_message *call,
                const char *action,
                const char *unit,
                sd_bus_message **ret_question) {
        MG_CLEANUP(sd_bus_message_unrefp) sd_bus_message *question = NULL;
        int r = sd_bus_message_new_method_call(
                        server->system, &question, POLKIT_NAME, POLKIT_PATH, POLKIT_INTERFACE,
                        "CheckAuthorization");

        if (r >= 0)
                r = sd_bus_message_append(
                                question, "(sa{sv})s", "system-bus-name", 1, "name", "s",
                                sd_bus_message_get_sender(call), action);
        if (r >= 0)
                r = unit[0] == '\0' ? sd_bus_message_append(question, "a{ss}", 0)
                                    : sd_bus_message_append(question, "a{ss}", 1, "unit", unit);
        if (r >= 0)
                r = sd_bus_message_append(
                                question, "us", is_interactive(call) ? ALLOW_USER_INTERACTION : 0u,
                                "");
        if (r >= 0)
                *ret_question = MG_TAKE(question);
        return r;
}

static bool has_room_for(const struct bus_server *server, sd_bus_message *call) {
        const char *sender = sd_bus_message_get_sender(call);
        size_t n = 0;

        MG_LIST_FOREACH(entry, &server->authorizations) {
                struct authorization *waiting = MG_CONTAINER_OF(entry, struct authorization, all);
                n += mg_streq(sd_bus_message_get_sender(waiting->call), sender);
        }
        return n < WAITING_PER_SENDER_MAX && server->n_authorizations < WAITING_MAX;
}

static int ask(struct bus_server *server,
               sd_bus_message *call,
               sd_bus_message *question,
               sd_bus_message_handler_t handler) {
        MG_CLEANUP(authorization_freep)
        struct authorization *authorization = calloc(1, sizeof(*authorization));
        int r;

        if (!authorization)
                return -ENOMEM;
        authorization->server = server;
        authorization->call = sd_bus_message_ref(call);
        authorization->handler = handler;
        list_append(&server->authorizations, &authorization->all);
        server->n_authorizations++;
        r = sd_bus_call_async(
                        server->system, &authorization->slot, question, on_answer, authorization,
                        is_interactive(call) ? PERSON_TIMEOUT_USEC : RULE_TIMEOUT_USEC);
        if (r < 0)
                return r;
        (void) MG_TAKE(authorization);
        return 0;
}

int bus_authorize(
                struct bus_server *server,
                sd_bus_message *call,
                const char *action,
                const char *unit,
                sd_bus_message_handler_t handler,
                sd_bus_error *error) {
        MG_CLEANUP(sd_bus_message_unrefp) sd_bus_message *question = NULL;
        int r;

        if (server->granted == call)
                return 1;
        r = sd_bus_query_sender_privilege(call, -1);
        if (r > 0)
                return 1;
        if (r < 0 || sd_bus_message_get_bus(call) != server->system)
                return deny(error);
        if (!has_room_for(server, call))
                return sd_bus_error_set(
                                error, SD_BUS_ERROR_LIMITS_EXCEEDED,
                                "Too many calls wait for polkit already");
        r = make_question(server, call, action, unit, &question);
        if (r < 0)
                return r;
        return ask(server, call, question, handler);
}
