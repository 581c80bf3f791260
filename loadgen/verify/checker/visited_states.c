#include "core/base/err.h"
#include "loadgen/verify/checker/visited_states_internal.h"

#include <stdlib.h>

/*
 * Open addressing, at most half full, doubled at that point. The keys are
 * hashes already, so their low bits address the table. A key of two zeros,
 * which occurs once in 2^128, is stored as another one.
 */

enum { SLOTS_MIN = 256 };

void qn_visited_states_init(struct qn_visited_states *f, uint64_t count_max)
{
    *f = (struct qn_visited_states){.count_max = count_max};
}

void qn_visited_states_fini(struct qn_visited_states *f)
{
    free(f->slot);
    *f = (struct qn_visited_states){0};
}

static bool empty(const struct qn_visited_key *k)
{
    return k->a == 0 && k->b == 0;
}

/* Slot of the key, or where it would be. */
static struct qn_visited_key *find(const struct qn_visited_states *f,
                                   struct qn_visited_key key)
{
    for (uint64_t at = key.a;; at++) {
        struct qn_visited_key *k = &f->slot[at & f->mask];
        if (empty(k) || (k->a == key.a && k->b == key.b)) {
            return k;
        }
    }
}

static struct qn_visited_key proper(struct qn_visited_key key)
{
    key.b |= empty(&key);
    return key;
}

static int resize(struct qn_visited_states *f, uint64_t slots)
{
    struct qn_visited_states bigger = *f;
    bigger.mask = slots - 1;
    bigger.slot = calloc(slots, sizeof *bigger.slot);
    if (bigger.slot == NULL) {
        return QN_ENOMEM;
    }
    for (uint64_t i = 0; f->slot != NULL && i <= f->mask; i++) {
        if (!empty(&f->slot[i])) {
            *find(&bigger, f->slot[i]) = f->slot[i];
        }
    }
    free(f->slot);
    *f = bigger;
    return QN_OK;
}

bool qn_visited_states_has(const struct qn_visited_states *f,
                           struct qn_visited_key key)
{
    return f->count > 0 && !empty(find(f, proper(key)));
}

int qn_visited_states_add(struct qn_visited_states *f,
                          struct qn_visited_key key)
{
    if (f->count == f->count_max) {
        return QN_ERANGE;
    }
    if (f->slot == NULL || f->count > f->mask / 2) {
        int err = resize(f, f->slot == NULL ? SLOTS_MIN : 2 * (f->mask + 1));
        if (err != QN_OK) {
            return err;
        }
    }
    *find(f, proper(key)) = proper(key);
    f->count++;
    return QN_OK;
}
