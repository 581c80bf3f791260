/*
 * C11 memory: atomic variables, fences and system calls. c11.h says what they
 * mean here. Memory itself always holds the newest value of each variable, so
 * that read-modify-writes, `check` and plain code see that.
 */
#include "core/sim/explore/c11.h"

#include "core/base/assert.h"
#include "core/sim/explore/c11_internal.h"
#include "core/sim/explore/explore_internal.h"
#include "core/sim/explore/visited.h"

#define FENCES  1024 /* release fences of a run that are kept */
#define OBJECTS 16u  /* words and descriptors of system calls */

struct store {
    uint64_t value;
    bool carries;
    struct qn_c11_view view;
};

struct variable {
    const volatile void *at;
    uint32_t bytes; /* 4 or 8 */
    int16_t newest; /* number of the newest store; 0 was there before */
    struct store store[QN_C11_HISTORY];
};

static struct {
    struct node {
        struct qn_c11_view now;   /* must have been seen */
        struct qn_c11_view found; /* will be, behind an acquire fence */
        int16_t fence;            /* its last release fence; 0: none */
        int16_t full;             /* its last seq_cst fence; 0: none */
        uint32_t streams;         /* behind its last full fence */
        struct stream {
            uint16_t variable;
            int16_t before, number; /* seen before the store; of the store */
        } stream[QN_EXPLORE_STREAMS];
    } node[QN_EXPLORE_NODES];
    struct qn_c11_view all; /* of seq_cst */
    struct variable variable[QN_C11_VIEW];
    uint32_t variables; /* numbers below are taken */
    struct qn_c11_view fence[FENCES];
    int16_t fences;
    struct object {
        uintptr_t key;
        struct qn_c11_view given;
    } object[OBJECTS];
    uint32_t objects;
} m;

static struct node *self(void)
{
    return &m.node[qn_sim.self];
}

static void empty(struct qn_c11_view *v)
{
    v->used = QN_EXPLORE_NODES;
    memset(v->at, 0, QN_EXPLORE_NODES * sizeof v->at[0]);
}

void qn_c11_reset(void)
{
    for (uint32_t i = 0; i < QN_EXPLORE_NODES; i++) {
        empty(&m.node[i].now);
        empty(&m.node[i].found);
        m.node[i].fence = 0;
        m.node[i].full = 0;
        m.node[i].streams = 0;
    }
    empty(&m.all);
    m.variables = QN_EXPLORE_NODES; /* clocks come first in a view */
    m.fences = 0;
    m.objects = 0;
    qn_c11_bytes_reset();
}

/* ---- views ---- */

struct qn_c11_view *qn_c11_tick(void)
{
    struct qn_c11_view *v = &self()->now;
    QN_ASSERT(v->at[qn_sim.self] < INT16_MAX);
    v->at[qn_sim.self]++;
    return v;
}

const struct qn_c11_view *qn_c11_fenced(int16_t fence)
{
    return &m.fence[fence - 1];
}

int16_t qn_c11_last_fence(void)
{
    return self()->fence;
}

void qn_c11_found(const struct qn_c11_view *carried)
{
    qn_c11_join(&self()->found, carried);
}

static int16_t seen(const struct qn_c11_view *v, uint32_t variable)
{
    return variable < v->used ? v->at[variable] : 0;
}

static void see(struct qn_c11_view *v, uint32_t variable, int16_t number)
{
    if (variable >= v->used) {
        memset(v->at + v->used, 0, (variable + 1 - v->used) * sizeof v->at[0]);
        v->used = variable + 1;
    }
    v->at[variable] = QN_MAX(v->at[variable], number);
}

/* Happens-before is not what seq_cst orders: clocks stay as they are. */
static void join_but_clocks(struct qn_c11_view *to,
                            const struct qn_c11_view *from)
{
    int16_t clock[QN_EXPLORE_NODES];
    memcpy(clock, to->at, sizeof clock);
    qn_c11_join(to, from);
    memcpy(to->at, clock, sizeof clock);
}

static bool acquires(memory_order order)
{
    return order == memory_order_acquire || order == memory_order_consume ||
           order == memory_order_acq_rel || order == memory_order_seq_cst;
}

static bool releases(memory_order order)
{
    return order == memory_order_release || order == memory_order_acq_rel ||
           order == memory_order_seq_cst;
}

/* ---- variables ---- */

static struct store *store_of(struct variable *v, int16_t number)
{
    return &v->store[(uint32_t)number % QN_C11_HISTORY];
}

static void from_memory(struct variable *v, struct store *s)
{
    s->value = 0;
    memcpy(&s->value, (const void *)v->at, v->bytes);
}

static uint16_t make_variable(struct qn_c11_word *w, uintptr_t at, size_t n)
{
    if (m.variables == QN_C11_VIEW) {
        qn_sim_fail("more atomic variables than the explorer keeps");
    }
    uint16_t i = (uint16_t)m.variables++;
    struct variable *v = &m.variable[i];
    v->at = (const volatile void *)at;
    v->bytes = (uint32_t)n;
    v->newest = 0;
    store_of(v, 0)->carries = false;
    from_memory(v, store_of(v, 0));
    for (size_t half = at % QN_C11_WORD / 4;
         half < at % QN_C11_WORD / 4 + n / 4; half++) {
        w->variable[half] = i;
    }
    return i;
}

/* An atomic access of the running node to the variable at `p`. */
static uint16_t variable_of(const volatile void *p, size_t n,
                            enum qn_c11_access kind)
{
    uintptr_t at = (uintptr_t)p;
    uint32_t from = (uint32_t)(at % QN_C11_WORD);
    struct qn_c11_word *w = qn_c11_word_of(at);
    qn_c11_ordered(w, &self()->now, from, from + (uint32_t)n, kind);
    uint16_t i = w->variable[from / 4];
    if (i == 0) {
        i = make_variable(w, at, n);
    }
    QN_ASSERT(m.variable[i].at == p);    /* a variable has one address ... */
    QN_ASSERT(m.variable[i].bytes == n); /* ... and one width */
    return i;
}

static void take(uint16_t i, const struct store *s, int16_t number,
                 memory_order order)
{
    struct node *me = self();
    see(&me->now, i, number);
    if (!s->carries) {
        return;
    }
    qn_c11_join(acquires(order) ? &me->now : &me->found, &s->view);
}

/* Oldest store of variable i that a load of the running node may take. */
static int16_t oldest(uint16_t i, memory_order order)
{
    const struct variable *v = &m.variable[i];
    int16_t kept = (int16_t)(v->newest - (int16_t)QN_C11_HISTORY + 1);
    int16_t least = QN_MAX(seen(&self()->now, i), QN_MAX(kept, (int16_t)0));
    return order == memory_order_seq_cst ? QN_MAX(least, seen(&m.all, i))
                                         : least;
}

static void load(void *to, const volatile void *from, size_t n,
                 memory_order order)
{
    (void)qn_c11_tick();
    uint16_t i = variable_of(from, n, QN_C11_READ);
    struct variable *v = &m.variable[i];
    uint32_t count = (uint32_t)(v->newest - oldest(i, order)) + 1;
    int16_t number = (int16_t)(v->newest - (int16_t)qn_explore_old(count));
    const struct store *s = store_of(v, number);
    qn_visited_note((uint32_t)number);
    memcpy(to, &s->value, n);
    take(i, s, number, order);
}

/* What the running node publishes: its view without its streaming stores, but
 * those that were overwritten, as far as it knows. The newest first: the store
 * before may be another one. */
static void publish(struct qn_c11_view *v)
{
    const struct node *me = self();
    qn_c11_copy(v, &me->now);
    for (uint32_t i = me->streams; i > 0; i--) {
        const struct stream *s = &me->stream[i - 1];
        if (v->at[s->variable] == s->number) {
            v->at[s->variable] = s->before;
        }
    }
}

/* What a store of the running node carries, but for a release sequence. */
static void carry(struct store *s, memory_order order)
{
    const struct node *me = self();
    s->carries = releases(order) || me->fence != 0;
    if (releases(order)) {
        publish(&s->view);
    } else if (s->carries) {
        qn_c11_copy(&s->view, qn_c11_fenced(me->fence));
    }
}

/* The running node writes variable i. */
static struct store *append(uint16_t i, const void *bytes, memory_order order)
{
    struct variable *v = &m.variable[i];
    struct store *s = store_of(v, ++v->newest);
    QN_ASSERT(v->newest < INT16_MAX);
    memcpy((void *)(uintptr_t)v->at, bytes, v->bytes);
    from_memory(v, s);
    see(&self()->now, i, v->newest);
    carry(s, order);
    if (order == memory_order_seq_cst) {
        see(&m.all, i, v->newest);
    }
    return s;
}

static void store(volatile void *at, const void *bytes, size_t n,
                  memory_order order)
{
    (void)qn_c11_tick();
    (void)append(variable_of(at, n, QN_C11_WRITE), bytes, order);
}

static void stream(volatile void *at, const void *bytes, size_t n)
{
    struct node *me = self();
    (void)qn_c11_tick();
    uint16_t i = variable_of(at, n, QN_C11_WRITE);
    if (me->streams == QN_EXPLORE_STREAMS) {
        me->streams--;
        memmove(me->stream, me->stream + 1, me->streams * sizeof *me->stream);
    }
    struct stream *behind = &me->stream[me->streams++];
    behind->variable = i;
    behind->before = seen(&me->now, i);
    struct store *s = append(i, bytes, memory_order_relaxed);
    behind->number = m.variable[i].newest;
    s->carries = me->full != 0;
    if (s->carries) {
        qn_c11_copy(&s->view, qn_c11_fenced(me->full));
    }
}

static void latest(void *to, const volatile void *from, size_t n,
                   memory_order order)
{
    self()->streams = 0;
    (void)qn_c11_tick();
    for (size_t k = 0; k < n; k += QN_C11_WORD) { /* a pair is two variables */
        size_t piece = QN_MIN(n - k, (size_t)QN_C11_WORD);
        uint16_t i =
            variable_of((const volatile uint8_t *)from + k, piece, QN_C11_READ);
        struct variable *v = &m.variable[i];
        take(i, store_of(v, v->newest), v->newest, order);
    }
    memcpy(to, (const void *)from, n);
}

/* One of the variables of a read-modify-write, behind `latest`: so the newest
 * store is the one that was read. */
static void replace_one(uint16_t i, const void *bytes, memory_order order)
{
    struct variable *v = &m.variable[i];
    const struct store *before = store_of(v, v->newest);
    struct store *s = append(i, bytes, order);
    if (before->carries && s->carries) {
        qn_c11_join(&s->view, &before->view);
    } else if (before->carries) {
        s->carries = true;
        qn_c11_copy(&s->view, &before->view);
    }
}

/* Both words of a pair change as one: each carries the other, too. */
static void replace(volatile void *at, const void *bytes, size_t n,
                    memory_order order)
{
    uint16_t i[2];
    uint32_t count = n > QN_C11_WORD ? 2 : 1;
    size_t piece = n / count;
    for (uint32_t k = 0; k < count; k++) {
        i[k] = variable_of((volatile uint8_t *)at + k * piece, piece,
                           QN_C11_WRITE);
        see(&self()->now, i[k], (int16_t)(m.variable[i[k]].newest + 1));
    }
    for (uint32_t k = 0; k < count; k++) {
        replace_one(i[k], (const uint8_t *)bytes + k * piece, order);
    }
}

void qn_c11_overwritten(uint16_t variable)
{
    struct variable *v = &m.variable[variable];
    struct store *s = store_of(v, ++v->newest);
    from_memory(v, s);
    see(&self()->now, variable, v->newest);
    carry(s, memory_order_relaxed);
}

/* ---- fences and system calls ---- */

static void fence(memory_order order)
{
    struct node *me = self();
    (void)qn_c11_tick();
    if (acquires(order)) {
        qn_c11_join(&me->now, &me->found);
    }
    if (order == memory_order_seq_cst) {
        me->streams = 0;
        join_but_clocks(&m.all, &me->now);
        join_but_clocks(&me->now, &m.all);
    }
    if (releases(order)) {
        if (m.fences == FENCES) {
            qn_sim_fail("more release fences than the explorer keeps");
        }
        publish(&m.fence[m.fences]);
        me->fence = ++m.fences;
        me->full = order == memory_order_seq_cst ? me->fence : me->full;
    }
}

static struct qn_c11_view *given_by(uintptr_t key)
{
    for (uint32_t i = 0; i < m.objects; i++) {
        if (m.object[i].key == key) {
            return &m.object[i].given;
        }
    }
    if (m.objects == OBJECTS) {
        qn_sim_fail("more words and descriptors than the explorer keeps");
    }
    struct object *o = &m.object[m.objects++];
    o->key = key;
    empty(&o->given);
    return &o->given;
}

static void sync_call(const volatile void *word, int fd, bool gives)
{
    struct qn_c11_view *given =
        given_by(word != NULL ? (uintptr_t)word : (uintptr_t)fd);
    if (word != NULL) {
        fence(memory_order_seq_cst);
    } else {
        (void)qn_c11_tick();
    }
    if (gives) {
        qn_c11_join(given, &self()->now);
    } else {
        qn_c11_join(&self()->now, given);
    }
}

void qn_c11_time_passes(void)
{
    for (uint32_t n = 0; n < qn_sim.nodes; n++) {
        for (uint32_t i = QN_EXPLORE_NODES; i < m.variables; i++) {
            see(&m.node[n].now, i, m.variable[i].newest);
        }
    }
}

const struct qn_sim_memory qn_c11 = {
    .load = load,
    .store = store,
    .stream = stream,
    .latest = latest,
    .replace = replace,
    .fence = fence,
    .copy_in = qn_c11_copy_in,
    .copy_checked = qn_c11_copy_checked,
    .copy_out = qn_c11_copy_out,
    .touch = qn_c11_touch,
    .sync = sync_call,
};
