/*
 * Simple barriers number their episodes, so nothing is set back; numbers wrap.
 *
 *     dissemination   in round k each tells the member 2^k further, and waits
 *                     for that one 2^k before it; all spin
 *     central         a counter of arrivals; they look for a while, then yield
 *     mcs             arrivals go up a tree of four, the end down one of two;
 *                     all spin
 */
#include "loadgen/barrier/barrier_subject.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/barrier/measured/measured_barrier.h"
#include "core/base/atomic.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/wait/park.h"

#define ROUNDS  6u /* log2 of QN_BARRIER_TEAM_MAX */
#define LOOKS   200u
#define ARRIVAL 4u /* children in the tree of arrivals */

struct qn_barrier_kind {
    size_t (*bytes)(const struct qn_barrier_subject *s, uint32_t members);
    int (*format)(const struct qn_barrier_subject *s, void *memory,
                  uint32_t members, uint32_t cores);
    void (*pass)(struct qn_barrier_client *c);
    /* NULL: a member needs no more than the memory. */
    int (*join)(void *memory, uint32_t member, struct qn_barrier_member *me);
};

/* A word that one member waits for, on a line of its own. */
struct line {
    alignas(QN_CACHELINE) qn_a32 episode;
};

/* ---- core/barrier -------------------------------------------------------- */

static struct qn_barrier_opts opts_of(const struct qn_barrier_subject *s,
                                      uint32_t members, uint32_t cores)
{
    return (struct qn_barrier_opts){.form = s->form,
                                    .members = members,
                                    .cores = cores,
                                    .own_cores = s->own_cores};
}

static size_t ours_bytes(const struct qn_barrier_subject *s, uint32_t members)
{
    const struct qn_barrier_opts o = opts_of(s, members, 0);
    return qn_barrier_bytes(&o);
}

static int ours_format(const struct qn_barrier_subject *s, void *memory,
                       uint32_t members, uint32_t cores)
{
    const struct qn_barrier_opts o = opts_of(s, members, cores);
    return qn_barrier_format(memory, qn_barrier_bytes(&o), &o);
}

static void ours_pass(struct qn_barrier_client *c)
{
    qn_barrier_wait(&c->me);
}

static size_t measured_bytes(const struct qn_barrier_subject *s,
                             uint32_t members)
{
    const struct qn_barrier_opts o = opts_of(s, members, 0);
    return qn_measured_barrier_bytes(&o);
}

static int measured_format(const struct qn_barrier_subject *s, void *memory,
                           uint32_t members, uint32_t cores)
{
    const struct qn_barrier_opts o = opts_of(s, members, cores);
    return qn_measured_barrier_format(memory, qn_measured_barrier_bytes(&o),
                                      &o);
}

static int measured_join(void *memory, uint32_t member,
                         struct qn_barrier_member *me)
{
    return qn_measured_barrier_join(memory, member, NULL, me);
}

/* ---- of the system ------------------------------------------------------- */

static size_t pthread_bytes(const struct qn_barrier_subject *s,
                            uint32_t members)
{
    (void)s;
    (void)members;
    return qn_align_up(sizeof(pthread_barrier_t), QN_CACHELINE);
}

static int pthread_format(const struct qn_barrier_subject *s, void *memory,
                          uint32_t members, uint32_t cores)
{
    pthread_barrierattr_t attr;
    (void)s;
    (void)cores;
    if (pthread_barrierattr_init(&attr) != 0) {
        return QN_ENOMEM;
    }
    (void)pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    return pthread_barrier_init(memory, &attr, members) == 0 ? QN_OK
                                                             : QN_EINVAL;
}

static void pthread_pass(struct qn_barrier_client *c)
{
    (void)pthread_barrier_wait(c->memory);
}

/* ---- simple ones --------------------------------------------------------- */

static size_t simple_bytes(const struct qn_barrier_subject *s, uint32_t members)
{
    (void)s;
    return members * ROUNDS * sizeof(struct line);
}

static int simple_format(const struct qn_barrier_subject *s, void *memory,
                         uint32_t members, uint32_t cores)
{
    (void)s;
    (void)memory;
    (void)members;
    (void)cores;
    return QN_OK;
}

/* acquire <- tell of the one that is waited for: what it did before, and what
 * it has heard of. */
static void spin_for(struct line *l, uint32_t episode)
{
    while (qn_load(&l->episode, QN_ACQUIRE) != episode) {
        qn_pause();
    }
}

/* release -> spin_for of the one that is told. */
static void tell(struct line *l, uint32_t episode)
{
    qn_store(&l->episode, episode, QN_RELEASE);
}

/* The one that tells may be an episode ahead: with two members it leaves as
 * soon as it has heard of this one, and comes again. */
static void dissemination_pass(struct qn_barrier_client *c)
{
    struct line *line = c->memory;
    c->episode++;
    for (uint32_t k = 0; UINT32_C(1) << k < c->members; k++) {
        const uint32_t to = (c->member + (UINT32_C(1) << k)) % c->members;
        tell(&line[to * ROUNDS + k], c->episode);
        struct line *own = &line[c->member * ROUNDS + k];
        while ((int32_t)(qn_load(&own->episode, QN_ACQUIRE) - c->episode) < 0) {
            qn_pause(); /* acquire <- tell */
        }
    }
}

static void central_pass(struct qn_barrier_client *c)
{
    qn_a32 *arrived = &((struct line *)c->memory)->episode;
    const uint32_t all = ++c->episode * c->members;
    uint32_t looks = 0;
    /* acq_rel -> the loads and the additions of the others. */
    uint32_t now = qn_fetch_add(arrived, 1, QN_ACQ_REL) + 1;
    while ((int32_t)(now - all) < 0) {
        if (++looks % LOOKS == 0) {
            qn_park_yield();
        }
        qn_pause();
        now = qn_load(arrived, QN_ACQUIRE);
    }
}

/* Two lines of each member: it has arrived, with all below it; it may go. */
static void mcs_pass(struct qn_barrier_client *c)
{
    struct line *arrived = c->memory, *go = arrived + c->members;
    c->episode++;
    for (uint32_t i = 1; i <= ARRIVAL; i++) {
        const uint32_t child = ARRIVAL * c->member + i;
        if (child < c->members) {
            spin_for(&arrived[child], c->episode);
        }
    }
    if (c->member > 0) {
        tell(&arrived[c->member], c->episode);
        spin_for(&go[c->member], c->episode);
    }
    for (uint32_t child = 2 * c->member + 1;
         child <= 2 * c->member + 2 && child < c->members; child++) {
        tell(&go[child], c->episode);
    }
}

/* ---- all of them --------------------------------------------------------- */

static const struct qn_barrier_kind ours = {ours_bytes, ours_format, ours_pass,
                                            qn_barrier_join};
static const struct qn_barrier_kind measured = {measured_bytes, measured_format,
                                                ours_pass, measured_join};
static const struct qn_barrier_kind of_pthread = {pthread_bytes, pthread_format,
                                                  pthread_pass, NULL};
static const struct qn_barrier_kind dissemination = {
    simple_bytes, simple_format, dissemination_pass, NULL};
static const struct qn_barrier_kind central = {simple_bytes, simple_format,
                                               central_pass, NULL};
static const struct qn_barrier_kind mcs = {simple_bytes, simple_format,
                                           mcs_pass, NULL};

static void add(struct qn_barrier_subject *out, uint32_t *n, const char *name,
                const struct qn_barrier_subject *like)
{
    struct qn_barrier_subject *s = &out[(*n)++];
    *s = *like;
    snprintf(s->name, sizeof s->name, "%s%s%s%s", name,
             like->form != NULL ? "/" : "",
             like->form != NULL ? like->form : "",
             like->own_cores ? "/own-cores" : "");
}

uint32_t qn_barrier_subjects(struct qn_barrier_subject *out, uint32_t members,
                             uint32_t cores)
{
    uint32_t n = 0;
    struct qn_barrier_subject like = {.kind = &ours};
    for (int own = 0; own <= (members <= cores); own++) {
        like.own_cores = own != 0;
        like.form = NULL;
        add(out, &n, "quoin", &like);
        for (uint32_t i = 0;
             qn_barrier_forms[i] != NULL && n < QN_BARRIER_SUBJECTS_MAX - 6;
             i++) {
            like.form = qn_barrier_forms[i]->name;
            add(out, &n, "quoin", &like);
        }
        add(out, &n, "quoin/measured",
            &(struct qn_barrier_subject){.kind = &measured,
                                         .own_cores = like.own_cores});
    }
    add(out, &n, "pthread", &(struct qn_barrier_subject){.kind = &of_pthread});
    add(out, &n, "simple/dissemination",
        &(struct qn_barrier_subject){.kind = &dissemination});
    add(out, &n, "simple/central-yield",
        &(struct qn_barrier_subject){.kind = &central});
    add(out, &n, "simple/mcs", &(struct qn_barrier_subject){.kind = &mcs});
    return n;
}

size_t qn_barrier_subject_bytes(const struct qn_barrier_subject *s,
                                uint32_t members)
{
    return s->kind->bytes(s, members);
}

int qn_barrier_subject_format(const struct qn_barrier_subject *s, void *memory,
                              uint32_t members, uint32_t cores)
{
    return s->kind->format(s, memory, members, cores);
}

int qn_barrier_subject_join(const struct qn_barrier_subject *s, void *memory,
                            uint32_t member, uint32_t members,
                            struct qn_barrier_client *c)
{
    *c = (struct qn_barrier_client){
        .subject = s, .memory = memory, .member = member, .members = members};
    return s->kind->join != NULL ? s->kind->join(memory, member, &c->me)
                                 : QN_OK;
}

void qn_barrier_subject_pass(void *client)
{
    struct qn_barrier_client *c = client;
    c->subject->kind->pass(c);
}
