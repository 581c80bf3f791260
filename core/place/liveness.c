/*
 * Liveness words.
 *
 * A liveness word is one pair of words in the pages of its node, {incarnation,
 * futex}, and begins with one CAS of both: a reader finds either the end of the
 * predecessor or the new incarnation, never a mixture. The futex is the low
 * half of the second word, as the kernel knows it (futex(2), "robust futexes"):
 *
 *     tid                  held by that thread
 *     FUTEX_OWNER_DIED     the kernel's mark: the thread has ended
 *     FUTEX_OWNER_DIED | 1 it has left; the kernel's mark has no thread's id
 *     HELD | tid           of that thread; ends with the lock of the node
 *
 * The list that the kernel walks has one element. Head and element are private
 * memory of the thread, and the way from the element to the word is the list's
 * futex_offset:
 *
 *     head.list.next -> element -> head.list (end)     element + offset = word
 *
 * So there is no pointer in shared memory, and a wild store there cannot send
 * the kernel anywhere; the price is one incarnation per thread. At the thread's
 * end the kernel changes the word only if the thread's id stands in it, so the
 * list may be registered before the word is written: killed in between, nothing
 * has begun.
 *
 * Thread-local memory is still there at that moment: the kernel handles the
 * list before it tells the C library that the thread has gone.
 *
 * Why not a robust pthread mutex: it works the same way, but its links lie in
 * the shared pages, and it has no incarnation in the same atomic word.
 */
#include "core/place/liveness.h"

#include <assert.h>
#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/place/commons_internal.h"
#include "core/place/hold.h"

static_assert(sizeof(struct qn_pair) == 16, "");

#define LEFT ((uint64_t)FUTEX_OWNER_DIED | 1)
/* Above the futex: the thread has not registered it. */
#define HELD ((uint64_t)1 << 32)

struct registration {
    struct robust_list_head head;
    struct robust_list element;
    struct robust_list_head *former; /* of the C library; NULL: it has none */
    pid_t tid;    /* of the thread that holds it: a fork's child does not */
    uint64_t inc; /* that lives */
};

static _Thread_local struct registration registration;

/* The futex within the second word: its low half. */
static uintptr_t futex_of(struct qn_pair *liveness)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return (uintptr_t)&liveness->second + 4;
#else
    return (uintptr_t)&liveness->second;
#endif
}

/* The list of the calling thread, which is the C library's. @return false: it
 * has locked robust mutexes, or the kernel does not say. */
static bool is_spare(struct robust_list_head **list)
{
    size_t bytes;
    *list = NULL;
    return syscall(SYS_get_robust_list, 0, list, &bytes) == 0 &&
           (*list == NULL || ((*list)->list.next == &(*list)->list &&
                              (*list)->list_op_pending == NULL));
}

static int enlist(struct qn_pair *liveness, pid_t tid, uint64_t inc)
{
    struct registration *r = &registration;
    if (r->tid == tid || !is_spare(&r->former)) {
        return QN_EBUSY;
    }
    r->head.list.next = &r->element;
    r->element.next = &r->head.list;
    r->head.futex_offset = (long)(futex_of(liveness) - (uintptr_t)&r->element);
    r->head.list_op_pending = NULL;
    if (syscall(SYS_set_robust_list, &r->head, sizeof r->head) != 0) {
        return QN_ENOSYS;
    }
    r->tid = tid;
    r->inc = inc;
    return QN_OK;
}

/* The list of the C library again. Not if this thread lives as another one:
 * what ends may be a dead thread's. */
static void delist(struct qn_pair *liveness, uint64_t inc)
{
    struct registration *r = &registration;
    uintptr_t listed = (uintptr_t)&r->element + (uintptr_t)r->head.futex_offset;
    if (r->tid == gettid() && r->inc == inc && listed == futex_of(liveness)) {
        r->head.list.next = &r->head.list;
        (void)syscall(SYS_set_robust_list,
                      r->former != NULL ? r->former : &r->head, sizeof r->head);
        r->tid = 0;
    }
}

/* Private form: the kernel does not look at the word, and a number that is the
 * same in each run keeps runs of the simulated machine equal. */
static pid_t thread_of(const struct qn_commons *c, qn_node_t node)
{
    return qn_commons_is_shared(c) ? gettid() : (pid_t)node + 1;
}

static bool can_begin(const struct qn_commons *c, qn_node_t node, uint64_t inc)
{
    return node < qn_commons_nodes(c) && inc != 0 && inc < QN_COMMONS_LIVES_MAX;
}

static void begin(struct qn_pair *liveness, uint64_t inc, uint64_t word)
{
    uint64_t first;
    uint64_t second;
    do { /* no other thread writes here, but to mark a former one once */
        qn_load_pair(liveness, &first, &second);
    } while (!qn_cas_pair(liveness, first, second, inc, word));
}

int qn_liveness_begin(struct qn_commons *c, qn_node_t node, uint64_t inc)
{
    if (!can_begin(c, node, inc)) {
        return QN_EINVAL;
    }
    QN_ASSERT(qn_commons_owns(c, node));
    struct qn_pair *liveness = qn_commons_liveness(c, node);
    pid_t tid = thread_of(c, node);
    int err = qn_commons_is_shared(c) ? enlist(liveness, tid, inc) : QN_OK;
    if (err == QN_OK) {
        begin(liveness, inc, (uint64_t)tid);
    }
    return err;
}

int qn_liveness_begin_held(struct qn_commons *c, qn_node_t node, uint64_t inc)
{
    if (!can_begin(c, node, inc)) {
        return QN_EINVAL;
    }
    QN_ASSERT(qn_commons_owns(c, node));
    begin(qn_commons_liveness(c, node), inc,
          HELD | (uint64_t)thread_of(c, node));
    return QN_OK;
}

static void end(struct qn_commons *c, qn_node_t node, uint64_t inc,
                uint64_t mark)
{
    struct qn_pair *liveness = qn_commons_liveness(c, node);
    uint64_t first;
    uint64_t second;
    qn_load_pair(liveness, &first, &second);
    if (first == inc) {
        /* release in it -> acquire in qn_liveness_check: as the kernel's mark.
         */
        (void)qn_cas_pair(liveness, inc, second, inc, mark);
    }
    if (qn_commons_is_shared(c)) {
        delist(liveness, inc); /* also if a later one has begun: it is unmapped
                                  soon */
    }
}

void qn_liveness_end(struct qn_commons *c, qn_node_t node, uint64_t inc)
{
    end(c, node, inc, FUTEX_OWNER_DIED);
}

void qn_liveness_leave(struct qn_commons *c, qn_node_t node, uint64_t inc)
{
    end(c, node, inc, LEFT);
}

bool qn_liveness_left(const struct qn_commons *c, qn_node_t node, uint64_t inc)
{
    uint64_t present;
    uint64_t word;
    qn_load_pair(qn_commons_liveness(c, node), &present, &word);
    return present == inc && word == LEFT;
}

enum qn_liveness qn_liveness_check(const struct qn_commons *c, qn_node_t node,
                                   uint64_t inc)
{
    uint64_t present;
    uint64_t word;
    /* acquire, with the kernel's mark and with the CAS of a successor. The
     * incarnation only grows, as qn_load_pair asks for; one that a wild process
     * left there is as good as any. */
    qn_load_pair(qn_commons_liveness(c, node), &present, &word);
    if (present != inc) {
        return present > inc ? QN_LIVENESS_DEAD : QN_LIVENESS_NONE;
    }
    return (word & FUTEX_OWNER_DIED) != 0 ? QN_LIVENESS_DEAD
                                          : QN_LIVENESS_ALIVE;
}

/* Is it ALIVE and held? @param word  Filled. */
static bool is_held(const struct qn_commons *c, qn_node_t node, uint64_t inc,
                    uint64_t *word)
{
    uint64_t present;
    qn_load_pair(qn_commons_liveness(c, node), &present, word);
    return present == inc && (*word & HELD) != 0 &&
           (*word & FUTEX_OWNER_DIED) == 0;
}

bool qn_liveness_is_held(const struct qn_commons *c, qn_node_t node,
                         uint64_t inc)
{
    uint64_t word;
    return is_held(c, node, inc, &word);
}

/* Without memory for it the others look for themselves. */
static void mark_end(struct qn_commons *c, qn_node_t node, uint64_t inc,
                     uint64_t word)
{
    const bool lent = qn_commons_is_shared(c) && !qn_commons_owns(c, node) &&
                      qn_commons_lend_liveness(c, node, true);
    if (lent) {
        /* release in it -> acquire in qn_liveness_check. */
        (void)qn_cas_pair(qn_commons_liveness(c, node), inc, word, inc,
                          FUTEX_OWNER_DIED);
        (void)qn_commons_lend_liveness(c, node, false);
    }
}

enum qn_liveness qn_liveness_look(struct qn_commons *c, int hold_fd,
                                  qn_node_t node, uint64_t inc)
{
    uint64_t word;
    if (!is_held(c, node, inc, &word)) {
        return qn_liveness_check(c, node, inc);
    }
    if (qn_hold_taken(hold_fd, node)) {
        return QN_LIVENESS_ALIVE;
    }
    mark_end(c, node, inc, word);
    return QN_LIVENESS_DEAD;
}

enum qn_liveness qn_liveness_incarnation(const struct qn_commons *c,
                                         qn_node_t node, uint64_t *inc,
                                         pid_t *tid)
{
    uint64_t word;
    /* acquire, as in qn_liveness_check. */
    qn_load_pair(qn_commons_liveness(c, node), inc, &word);
    bool alive = *inc != 0 && (word & FUTEX_OWNER_DIED) == 0;
    *tid = alive ? (pid_t)(word & FUTEX_TID_MASK) : 0;
    return alive       ? QN_LIVENESS_ALIVE
           : *inc == 0 ? QN_LIVENESS_NONE
                       : QN_LIVENESS_DEAD;
}
