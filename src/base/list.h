/* SPDX-License-Identifier: MIT */
/*
 * An intrusive, circular, doubly linked list. The owner embeds struct mg_list;
 * nothing here allocates. Layer: base.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct mg_list {
        struct mg_list *prev;
        struct mg_list *next;
};

#define MG_LIST_INIT(name) \
        { &(name), &(name) }

#define MG_CONTAINER_OF(pointer, type, member) \
        ((type *) ((char *) (pointer) -offsetof(type, member)))

#define MG_LIST_FOREACH(entry, head) \
        for (struct mg_list *entry = (head)->next; entry != (head); entry = entry->next)

/* ENTRY itself may be removed inside the loop. */
#define MG_LIST_FOREACH_SAFE(entry, head)                                                        \
        for (struct mg_list *entry = (head)->next, *entry##_next = entry->next; entry != (head); \
             entry = entry##_next, entry##_next = entry->next)

static inline void list_init(struct mg_list *head) {
        head->prev = head;
        head->next = head;
}

static inline bool list_is_empty(const struct mg_list *head) {
        return head->next == head;
}

static inline void list_append(struct mg_list *head, struct mg_list *entry) {
        entry->prev = head->prev;
        entry->next = head;
        head->prev->next = entry;
        head->prev = entry;
}

/* Safe on an entry that is already out: it then points to itself. */
static inline void list_remove(struct mg_list *entry) {
        entry->prev->next = entry->next;
        entry->next->prev = entry->prev;
        list_init(entry);
}
