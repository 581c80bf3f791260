#ifndef QN_KVS_SESSION_WORK_LIST_H
#define QN_KVS_SESSION_WORK_LIST_H

/**
 * An intrusive FIFO list of sessions that a turn looks at.
 *
 * Each element is in the list once at most: adding it again changes nothing. A
 * turn takes the whole list, removes elements from the front, and puts what its
 * budget does not reach back in front. An element that the turn has taken and
 * not yet removed still counts as listed, so it is looked at once and not
 * twice.
 *
 *     batch = qn_work_list_take(&list);
 *     while (budget > 0 && (link = qn_work_list_pop(&batch)) != NULL) { ... }
 *     qn_work_list_put_front(&list, &batch);
 *
 * Pure. All zero: an empty list, a link in no list. One thread. All O(1).
 */

#include <stdbool.h>
#include <stddef.h>

#include "core/base/assert.h"

struct qn_work_link {
    struct qn_work_link *next; /* NULL: the last one, or in no list */
    bool listed;
};

struct qn_work_list {
    struct qn_work_link *first, *last; /* both NULL: empty */
};

static inline bool qn_work_list_is_empty(const struct qn_work_list *l)
{
    QN_DASSERT((l->first == NULL) == (l->last == NULL));
    return l->first == NULL;
}

/** Append it, unless it is listed. */
static inline void qn_work_list_add(struct qn_work_list *l,
                                    struct qn_work_link *link)
{
    if (link->listed) {
        return;
    }
    QN_DASSERT(link->next == NULL);
    link->listed = true;
    if (qn_work_list_is_empty(l)) {
        l->first = link;
    } else {
        l->last->next = link;
    }
    l->last = link;
}

/** Remove the first one. @return NULL: the list is empty. */
static inline struct qn_work_link *qn_work_list_pop(struct qn_work_list *l)
{
    struct qn_work_link *link = l->first;
    if (link == NULL) {
        return NULL;
    }
    QN_ASSERT(link->listed);
    l->first = link->next;
    l->last = l->first != NULL ? l->last : NULL;
    link->next = NULL;
    link->listed = false;
    return link;
}

/** Move all elements to a list of their own. */
static inline struct qn_work_list qn_work_list_take(struct qn_work_list *l)
{
    struct qn_work_list taken = *l;
    *l = (struct qn_work_list){0};
    return taken;
}

/** Move all of `rest` in front of `l`. */
static inline void qn_work_list_put_front(struct qn_work_list *l,
                                          struct qn_work_list *rest)
{
    if (qn_work_list_is_empty(rest)) {
        return;
    }
    rest->last->next = l->first;
    l->first = rest->first;
    l->last = l->last != NULL ? l->last : rest->last;
    *rest = (struct qn_work_list){0};
    QN_DASSERT(l->last->next == NULL);
}

#endif
