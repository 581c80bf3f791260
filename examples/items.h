#ifndef QN_EXAMPLES_ITEMS_H
#define QN_EXAMPLES_ITEMS_H

/*
 * The keys and values of store.c, in the order of the keys. An item is never
 * written in place but replaced, and may be in several lists: so a copy of the
 * list is the state as it is now, whatever is changed afterwards.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes, which belong to something else. */
struct text {
    const char *at;
    size_t len;
};

/* @return the first word, which is taken off. */
struct text text_word(struct text *t);
bool text_is(struct text t, const char *s);
int64_t text_number(struct text t); /* 0, if it is none */

struct item {
    uint32_t owners; /* lists; not in a snapshot. What follows is: */
    uint32_t key_len, value_len;
    char bytes[]; /* key, value */
};

enum { ITEM_HEAD = 2 * sizeof(uint32_t) }; /* of an item in a snapshot */

struct items {
    struct item **item;
    size_t count, room;
};

/* @return NULL: no memory. */
struct item *item_make(size_t key_len, size_t value_len);
void item_drop(struct item *i); /* NULL is fine */
struct text item_value(const struct item *i);

static inline size_t item_bytes(const struct item *i) /* in a snapshot */
{
    return ITEM_HEAD + i->key_len + i->value_len;
}

static inline char *item_begin(struct item *i) /* of these bytes */
{
    return (char *)&i->key_len;
}

/* @return where the key is; if it is absent, where it belongs. */
size_t items_find(const struct items *l, struct text key, bool *found);
void items_remove(struct items *l, size_t at);

/* @return false: there is no memory, and nothing has changed. */
bool items_reserve(struct items *l, size_t room);
bool items_insert(struct items *l, size_t at, struct item *i); /* taken */
bool items_put(struct items *l, struct text key, struct text value);
bool items_copy(struct items *to, const struct items *from);
void items_clear(struct items *l);
uint64_t items_digest(const struct items *l);

#endif
