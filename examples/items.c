#include "examples/items.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text text_word(struct text *t)
{
    const char *space = memchr(t->at, ' ', t->len);
    const struct text w = {t->at, space ? (size_t)(space - t->at) : t->len};
    const size_t taken = w.len + (space != NULL);
    *t = (struct text){t->at + taken, t->len - taken};
    return w;
}

bool text_is(struct text t, const char *s)
{
    return t.len == strlen(s) && memcmp(t.at, s, t.len) == 0;
}

int64_t text_number(struct text t)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%.*s", (int)(t.len < 23 ? t.len : 23),
             t.at);
    return strtoll(digits, NULL, 10);
}

struct item *item_make(size_t key_len, size_t value_len)
{
    struct item *i = malloc(sizeof *i + key_len + value_len);
    if (i != NULL) {
        *i = (struct item){1, (uint32_t)key_len, (uint32_t)value_len};
    }
    return i;
}

void item_drop(struct item *i)
{
    if (i != NULL && --i->owners == 0) {
        free(i);
    }
}

static struct text key_of(const struct item *i)
{
    return (struct text){i->bytes, i->key_len};
}

struct text item_value(const struct item *i)
{
    return (struct text){i->bytes + i->key_len, i->value_len};
}

static int compare(struct text a, struct text b)
{
    int c = memcmp(a.at, b.at, a.len < b.len ? a.len : b.len);
    return c != 0 ? c : (a.len > b.len) - (a.len < b.len);
}

size_t items_find(const struct items *l, struct text key, bool *found)
{
    size_t low = 0, high = l->count;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (compare(key_of(l->item[mid]), key) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    *found = low < l->count && compare(key_of(l->item[low]), key) == 0;
    return low;
}

bool items_reserve(struct items *l, size_t room)
{
    if (l->room < room) {
        struct item **more = realloc(l->item, 2 * room * sizeof *more);
        if (more == NULL) {
            return false;
        }
        l->item = more;
        l->room = 2 * room;
    }
    return true;
}

bool items_insert(struct items *l, size_t at, struct item *i)
{
    if (!items_reserve(l, l->count + 1)) {
        return false;
    }
    memmove(&l->item[at + 1], &l->item[at], (l->count - at) * sizeof *l->item);
    l->item[at] = i;
    l->count++;
    return true;
}

void items_remove(struct items *l, size_t at)
{
    item_drop(l->item[at]);
    l->count--;
    memmove(&l->item[at], &l->item[at + 1], (l->count - at) * sizeof *l->item);
}

void items_clear(struct items *l)
{
    for (size_t i = 0; i < l->count; i++) {
        item_drop(l->item[i]);
    }
    free(l->item);
    *l = (struct items){0};
}

bool items_put(struct items *l, struct text key, struct text value)
{
    bool found;
    const size_t at = items_find(l, key, &found);
    struct item *i = item_make(key.len, value.len);
    if (i == NULL) {
        return false;
    }
    memcpy(i->bytes, key.at, key.len);
    memcpy(i->bytes + key.len, value.at, value.len);
    if (found) {
        item_drop(l->item[at]);
        l->item[at] = i;
    } else if (!items_insert(l, at, i)) {
        item_drop(i);
        return false;
    }
    return true;
}

bool items_copy(struct items *to, const struct items *from)
{
    if (!items_reserve(to, from->count)) {
        return false;
    }
    for (size_t i = 0; i < from->count; i++) {
        to->item[i] = from->item[i];
        to->item[i]->owners++;
    }
    to->count = from->count;
    return true;
}

uint64_t items_digest(const struct items *l)
{
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < l->count; i++) {
        const char *b = item_begin(l->item[i]);
        for (size_t k = 0; k < item_bytes(l->item[i]); k++) {
            h = (h ^ (uint8_t)b[k]) * 1099511628211u;
        }
    }
    return h;
}
