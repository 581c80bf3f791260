/* What barriers have in common: names, memory, members. */
#include "core/barrier/barrier.h"

#include <string.h>

#include "core/barrier/barrier_internal.h"
#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/wait/park.h"

/* One more with each change of a layout or of the list of forms. */
#define VERSION 2u

_Static_assert(sizeof(struct qn_barrier_seat) == QN_CACHELINE, "one line each");
_Static_assert(sizeof(struct qn_barrier_flag) == QN_CACHELINE, "one line each");
_Static_assert(sizeof(struct qn_barrier_memory) == 2 * QN_CACHELINE,
               "constants and arrivals do not share a line");

const struct qn_barrier_form *const qn_barrier_forms[] = {
    &qn_barrier_central, &qn_barrier_dissemination, &qn_barrier_mcs,
    &qn_barrier_tree, NULL};
#define FORMS (QN_ARRAY_COUNT(qn_barrier_forms) - 1)

/* What memory says that holds a barrier of that form. */
static uint32_t says(uint32_t form)
{
    return VERSION << 16 | (form + 1);
}

bool qn_barrier_shares_cores(const struct qn_barrier_opts *opts)
{
    const uint32_t cores = opts->cores != 0 ? opts->cores : qn_park_cores();
    return !opts->own_cores && opts->members > cores;
}

static const char *form_that_suits(const struct qn_barrier_opts *opts)
{
    return opts->members <= QN_BARRIER_CENTRAL || qn_barrier_shares_cores(opts)
               ? "central"
           : opts->tree != NULL ? "tree"
                                : "dissemination";
}

/* @return its number; FORMS: there is none of that name. */
static uint32_t form_named(const char *name)
{
    uint32_t i = 0;
    while (i < FORMS && strcmp(qn_barrier_forms[i]->name, name) != 0) {
        i++;
    }
    return i;
}

/* The same for all forms: which one suits may depend on the thread that asks.
 */
size_t qn_barrier_bytes(const struct qn_barrier_opts *opts)
{
    if (opts->members < 1 || opts->members > QN_BARRIER_MEMBERS_MAX ||
        (opts->form != NULL && form_named(opts->form) == FORMS)) {
        return 0;
    }
    return sizeof(struct qn_barrier_memory) +
           opts->members * (sizeof(struct qn_barrier_seat) +
                            qn_barrier_flags(opts->members) *
                                sizeof(struct qn_barrier_flag));
}

/* One more child of a member, told behind the others. relaxed, all: no other
 * thread has the barrier yet. */
static void add_child(struct qn_barrier_memory *m, uint32_t parent,
                      uint32_t child)
{
    struct qn_barrier_seat *seat = &m->seat[parent];
    const uint32_t children = qn_load(&seat->children, QN_RELAXED);
    const uint32_t last = qn_load(&seat->last, QN_RELAXED);
    qn_store(&m->seat[child].parent, parent, QN_RELAXED);
    qn_store(&m->seat[child].before, last, QN_RELAXED);
    qn_store(children > 0 ? &m->seat[last].next : &seat->first, child,
             QN_RELAXED);
    qn_store(&seat->last, child, QN_RELAXED);
    qn_store(&seat->children, children + 1, QN_RELAXED);
}

/* Without a tree: two children each, in the order of members. */
static void lay_tree(struct qn_barrier_memory *m,
                     const struct qn_barrier_opts *opts)
{
    const struct qn_shape *s = opts->tree;
    for (uint32_t i = 1; s == NULL && i < opts->members; i++) {
        add_child(m, (i - 1) / 2, i);
    }
    for (uint32_t i = 0; s != NULL && i < opts->members; i++) {
        for (uint32_t k = 0; k < s->count[i]; k++) {
            add_child(m, i, qn_shape_children(s, i)[k]);
        }
    }
    const uint32_t root = s != NULL ? s->root : 0;
    qn_store(&m->seat[root].parent, root, QN_RELAXED);
}

int qn_barrier_format(void *memory, size_t bytes,
                      const struct qn_barrier_opts *opts)
{
    struct qn_barrier_memory *m = memory;
    const size_t needed = qn_barrier_bytes(opts);
    if (needed == 0 ||
        (opts->tree != NULL && (opts->tree->n != opts->members ||
                                qn_shape_check(opts->tree) != QN_OK))) {
        return QN_EINVAL;
    }
    if (bytes < needed) {
        return QN_EMSGSIZE;
    }
    QN_ASSERT((uintptr_t)memory % QN_CACHELINE == 0);
    const char *name = opts->form != NULL ? opts->form : form_that_suits(opts);
    memset(memory, 0, needed);
    /* relaxed, all: no other thread has the barrier yet. */
    qn_store(&m->says, says(form_named(name)), QN_RELAXED);
    qn_store(&m->members, opts->members, QN_RELAXED);
    qn_store(&m->own_cores, opts->own_cores, QN_RELAXED);
    qn_store(&m->shared_cores, qn_barrier_shares_cores(opts), QN_RELAXED);
    lay_tree(m, opts);
    return QN_OK;
}

int qn_barrier_join(void *memory, uint32_t member, struct qn_barrier_member *me)
{
    struct qn_barrier_memory *m = memory;
    /* relaxed, all: constant since before the caller got the memory. */
    const uint32_t form = qn_load(&m->says, QN_RELAXED) - says(0);
    const uint32_t members = qn_load(&m->members, QN_RELAXED);
    uint32_t free_seat = 0;
    if (form >= FORMS || member >= members) {
        return QN_EINVAL;
    }
    /* acquire -> the store of qn_barrier_leave: the episode is there. */
    if (!qn_cas(&m->seat[member].taken, &free_seat, 1, QN_ACQUIRE)) {
        return QN_EBUSY;
    }
    *me = (struct qn_barrier_member){
        .form = qn_barrier_forms[form],
        .memory = m,
        .member = member,
        .members = members,
        .flags = qn_barrier_flags(members),
        /* relaxed: written by the holder of the seat only. */
        .episode = qn_load(&m->seat[member].episode, QN_RELAXED),
        .own_cores = qn_load(&m->own_cores, QN_RELAXED) != 0,
        .shared_cores = qn_load(&m->shared_cores, QN_RELAXED) != 0,
        .parent = qn_load(&m->seat[member].parent, QN_RELAXED),
        .children = qn_load(&m->seat[member].children, QN_RELAXED),
        .first_child = qn_load(&m->seat[member].first, QN_RELAXED),
        .last_child = qn_load(&m->seat[member].last, QN_RELAXED)};
    return QN_OK;
}

void qn_barrier_leave(struct qn_barrier_member *me)
{
    struct qn_barrier_seat *seat = &me->memory->seat[me->member];
    /* relaxed: published by the next store. */
    qn_store(&seat->episode, me->episode, QN_RELAXED);
    /* release -> the compare-and-swap of qn_barrier_join. */
    qn_store(&seat->taken, 0, QN_RELEASE);
}

const char *qn_barrier_form_name(const struct qn_barrier_member *me)
{
    return me->form->name;
}
