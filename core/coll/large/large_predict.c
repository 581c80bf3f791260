/*
 * A walk in the order of time. Of the members that can go on, the one whose
 * clock is least does its next step, or one piece of it; so copies ask for what
 * they share in the order in which they would. A member that waits for a word
 * is blocked until the word has come so far.
 *
 * The operation is walked twice. The first one leaves in caches what the second
 * one finds there.
 */
#include "core/coll/large/large_predict.h"

#include <stdlib.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/machine/bulk.h"

#define GHZ_USUAL   2.0
#define PS          1e3 /* per ns */
#define STEPS_FIRST 64u

struct step {
    enum qn_large_kind kind;
    uint32_t member, value;
    uint32_t owner, taker, left_owner; /* of a copy */
    uint64_t bytes, from, to, left;
};

struct walker {
    struct step *step;
    uint32_t steps, room, next;
    uint64_t done;  /* bytes of the next step */
    bool left_done; /* of a combination: the left operand's next piece */
    uint64_t clock;
    uint32_t word;
    bool blocked;
};

struct walk {
    const struct qn_large_plan *p;
    const struct qn_machine *m;
    struct qn_bulk *b;
    struct walker *walker; /* [n] */
    double ps_per_cycle;
    uint32_t self; /* whose steps are noted */
};

/* ---- the steps of all members ---- */

/* An invented address: member, buffer, offset. */
static uint64_t address(const struct walk *w, const struct qn_large_at *at,
                        uint32_t *owner)
{
    const bool shown = at->buffer == QN_LARGE_SHOWN;
    *owner = shown ? at->member : w->self;
    const enum qn_large_buffer b =
        shown ? qn_large_shows(w->p, at->member) : at->buffer;
    return ((uint64_t)*owner << 40) + ((uint64_t)b << 38) + at->offset;
}

static int note(void *ctx, const struct qn_large_step *s)
{
    const struct walk *w = ctx;
    struct walker *x = &w->walker[w->self];
    if (x->steps == x->room) {
        const uint32_t room = QN_MAX(2 * x->room, STEPS_FIRST);
        struct step *more = realloc(x->step, room * sizeof *more);
        if (more == NULL) {
            return QN_ENOMEM;
        }
        x->step = more;
        x->room = room;
    }
    struct step *to = &x->step[x->steps++];
    *to = (struct step){.kind = s->kind,
                        .member = s->member,
                        .value = s->value,
                        .bytes = s->bytes};
    to->from = address(w, &s->from, &to->owner);
    to->to = address(w, &s->to, &to->taker);
    to->left = address(w, &s->left, &to->left_owner);
    return QN_OK;
}

/* ---- one step ---- */

static void piece(struct walk *w, uint32_t by, uint64_t from, uint32_t owner,
                  uint64_t to, uint32_t taker, uint64_t bytes)
{
    struct walker *x = &w->walker[by];
    const struct qn_bulk_request c = {.by = by,
                                      .owner = owner,
                                      .taker = taker,
                                      .from = from,
                                      .to = to,
                                      .bytes = bytes};
    x->clock = qn_bulk_piece(w->b, &c, x->clock);
}

static void go_on(struct walk *w, uint32_t by, const struct step *s)
{
    struct walker *x = &w->walker[by];
    const uint64_t at = x->done;
    const uint64_t bytes = QN_MIN(s->bytes - at, QN_BULK_PIECE);
    /* By itself: others may ask between the two. */
    if (s->kind == QN_LARGE_COMBINE && s->left != s->to && !x->left_done) {
        piece(w, by, s->left + at, s->left_owner, s->to + at, s->taker, bytes);
        x->left_done = true;
        return;
    }
    x->left_done = false;
    piece(w, by, s->from + at, s->owner, s->to + at, s->taker, bytes);
    x->done += bytes;
    if (x->done >= s->bytes) {
        x->done = 0;
        x->next++;
    }
}

/* The word of `s->member` has come so far: its line is received. */
static void pass(struct walk *w, uint32_t by, const struct step *s,
                 uint64_t then)
{
    struct walker *x = &w->walker[by];
    const double ps = qn_receive_cost(w->m, s->member, by) * w->ps_per_cycle;
    x->clock = QN_MAX(x->clock, then) + (uint64_t)ps;
    x->blocked = false;
    x->next++;
}

static void raise_word(struct walk *w, uint32_t by, uint32_t value)
{
    struct walker *x = &w->walker[by];
    double dearest = 0;
    x->word = value;
    x->next++;
    for (uint32_t i = 0; i < w->p->n; i++) {
        struct walker *y = &w->walker[i];
        const struct step *s = &y->step[y->next];
        if (y->blocked && s->member == by && s->value <= value) {
            dearest = QN_MAX(dearest, qn_send_cost(w->m, by, i));
            pass(w, i, s, x->clock);
        }
    }
    x->clock += (uint64_t)(dearest * w->ps_per_cycle);
}

static void do_step(struct walk *w, uint32_t by)
{
    struct walker *x = &w->walker[by];
    const struct step *s = &x->step[x->next];
    switch (s->kind) {
    case QN_LARGE_WAIT:
        if (w->walker[s->member].word >= s->value) {
            pass(w, by, s, 0);
        } else {
            x->blocked = true;
        }
        break;
    case QN_LARGE_RAISE:
        raise_word(w, by, s->value);
        break;
    default:
        go_on(w, by, s);
    }
}

/* ---- the walk ---- */

/* @return n: none can go on. */
static uint32_t earliest(const struct walk *w)
{
    uint32_t best = w->p->n;
    for (uint32_t i = 0; i < w->p->n; i++) {
        const struct walker *x = &w->walker[i];
        if (!x->blocked && x->next < x->steps &&
            (best == w->p->n || x->clock < w->walker[best].clock)) {
            best = i;
        }
    }
    return best;
}

/* @return ps until all have left. */
static uint64_t walk_once(struct walk *w)
{
    uint64_t end = 0;
    qn_bulk_rest(w->b);
    for (uint32_t i = 0; i < w->p->n; i++) {
        struct walker *x = &w->walker[i];
        x->next = x->word = 0;
        x->clock = 0;
    }
    for (uint32_t i; (i = earliest(w)) < w->p->n;) {
        do_step(w, i);
    }
    for (uint32_t i = 0; i < w->p->n; i++) {
        end = QN_MAX(end, w->walker[i].clock);
    }
    return end;
}

/* Inputs lie in the caches of their members, as far as these hold them. One
 * after the other: only where they lie counts. */
static void touch_inputs(struct walk *w)
{
    const struct qn_large_plan *p = w->p;
    uint64_t now = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        const bool all =
            i == p->root && p->variant->operation == QN_LARGE_SCATTER;
        const uint64_t bytes = p->bytes * (all ? p->n : 1);
        const struct qn_large_at in = {.buffer = QN_LARGE_IN};
        uint32_t owner;
        w->self = i;
        const uint64_t at = address(w, &in, &owner);
        for (uint64_t k = 0; k < bytes; k += QN_BULK_PIECE) {
            w->walker[i].clock = now;
            piece(w, i, at + k, i, at + k, i, QN_BULK_PIECE);
            now = w->walker[i].clock;
        }
    }
}

static int walk_plan(struct walk *w, double *ns)
{
    int rc = QN_OK;
    for (w->self = 0; w->self < w->p->n && rc == QN_OK; w->self++) {
        rc = qn_large_steps(w->p, w->self, note, w);
    }
    if (rc == QN_OK) {
        touch_inputs(w);
        (void)walk_once(w);
        *ns = (double)walk_once(w) / PS;
    }
    for (uint32_t i = 0; i < w->p->n; i++) {
        free(w->walker[i].step);
    }
    return rc;
}

static int predict(const struct qn_machine *m, const struct qn_large_plan *p,
                   double *ns)
{
    static const double usual = PS / GHZ_USUAL;
    uint32_t *core = calloc(m->n, sizeof *core);
    struct walk w = {.p = p, .m = m};
    w.ps_per_cycle = m->facts.clock_ghz > 0 ? PS / m->facts.clock_ghz : usual;
    w.walker = calloc(m->n, sizeof *w.walker);
    int rc = core == NULL || w.walker == NULL ? QN_ENOMEM : QN_OK;
    for (uint32_t i = 0; rc == QN_OK && i < m->n; i++) {
        core[i] = i;
    }
    rc = rc == QN_OK ? qn_bulk_create(&w.b, m, core, m->n) : rc;
    rc = rc == QN_OK ? walk_plan(&w, ns) : rc;
    qn_bulk_destroy(w.b);
    free(w.walker);
    free(core);
    return rc;
}

int qn_large_predict(const struct qn_machine *m,
                     const struct qn_large_place *place,
                     const struct qn_large_variant *v, uint32_t root,
                     uint64_t bytes, double *ns)
{
    if (m->n < 2 || root >= m->n || !qn_machine_has_costs(m)) {
        return QN_EINVAL;
    }
    struct qn_shape *tree = calloc(1, sizeof *tree);
    if (tree == NULL) {
        return QN_ENOMEM;
    }
    qn_large_tree_build(tree, place, m->n, root, v->tree);
    const struct qn_large_plan p = {.variant = v,
                                    .tree = tree,
                                    .place = place,
                                    .n = m->n,
                                    .root = root,
                                    .bytes = bytes,
                                    .threshold = QN_LARGE_CHUNK,
                                    .entry = QN_LARGE_ALL,
                                    .exit = QN_LARGE_ALL};
    const int rc = predict(m, &p, ns);
    free(tree);
    return rc;
}

/* ---- choices ---- */

void qn_large_places(const struct qn_machine *m, struct qn_large_place *place)
{
    for (uint32_t i = 0; i < m->n; i++) {
        place[i] = (struct qn_large_place){(uint16_t)i, (uint16_t)i};
        for (uint32_t j = 0; j < i; j++) {
            if (m->core[j].socket == m->core[i].socket) {
                place[i].node = place[j].node;
            }
            if (m->core[j].node == m->core[i].node) {
                place[i].region = place[j].region;
            }
        }
    }
}

/* Of equal ones that which is taken without prices. */
int qn_large_predict_best(const struct qn_machine *m,
                          const struct qn_large_place *place,
                          enum qn_large_operation op, uint64_t bytes, bool push,
                          const struct qn_large_variant **best)
{
    const struct qn_large_variant *v =
        qn_large_variant_choose(op, qn_large_tree_regions(place, m->n), push);
    double least = 0;
    int rc = qn_large_predict(m, place, v, 0, bytes, &least);
    *best = v;
    for (uint32_t i = 0; rc == QN_OK && (v = qn_large_variant_at(i)) != NULL;
         i++) {
        double ns = 0;
        if (v->operation != op || (v->direction == QN_LARGE_PUSH && !push)) {
            continue;
        }
        rc = qn_large_predict(m, place, v, 0, bytes, &ns);
        if (rc == QN_OK && ns < least) {
            least = ns;
            *best = v;
        }
    }
    return rc;
}

static uint64_t size_at(uint32_t i)
{
    return (uint64_t)16384 << 2 * i;
}

int qn_large_choices_make(struct qn_large_choices *c,
                          const struct qn_machine *m,
                          const struct qn_large_place *place, bool push)
{
    int rc = QN_OK;
    for (uint32_t op = 0; op < QN_LARGE_OPERATIONS; op++) {
        for (uint32_t i = 0; i < QN_LARGE_CHOICES && rc == QN_OK; i++) {
            rc = qn_large_predict_best(m, place, (enum qn_large_operation)op,
                                       size_at(i), push, &c->of[op][i]);
        }
    }
    return rc;
}

const struct qn_large_variant *qn_large_choices_of(
    const struct qn_large_choices *c, enum qn_large_operation op,
    uint64_t bytes)
{
    uint32_t i = 0;
    while (i + 1 < QN_LARGE_CHOICES && size_at(i) < bytes) {
        i++;
    }
    return c->of[op][i];
}
