/*
 * Stages are first said (which tree, which direction, what they wait for),
 * then links are added in their order: all predecessors, then all successors.
 * A list that is too long for one member cannot occur: in a tree a member has
 * at most n-1 links per stage, in a ring 2k.
 *
 * The index of a link at the receiver (`there`) is found from the receiver's
 * side of the same data: children of a tree are numbered in their parent's
 * send order; links into a member of a ring in the order in which the ring
 * lists them, by sender and sending order.
 */
#include "core/coll/wiring.h"

#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/err.h"

static struct qn_wiring *allocate(enum qn_wiring_kind kind, uint32_t links)
{
    struct qn_wiring *w = calloc(1, sizeof *w + links * sizeof w->link[0]);
    if (w != NULL) {
        w->kind = kind;
    }
    return w;
}

void qn_wiring_destroy(struct qn_wiring *w)
{
    free(w);
}

/* ---- trees ---- */

/* Of each kind, whether its stages go down. */
static const struct {
    uint32_t stages;
    bool down[QN_STAGES_MAX];
} course[] = {
    [QN_WIRING_BROADCAST] = {1, {true}},
    [QN_WIRING_ACKNOWLEDGED] = {2, {true, false}},
    [QN_WIRING_REDUCE] = {1, {false}},
    [QN_WIRING_ALLREDUCE] = {2, {false, true}},
    [QN_WIRING_COMMIT] = {3, {true, false, true}},
    [QN_WIRING_EXCHANGE] = {2, {true, true}}, /* of `down`, not along it */
};

static bool reduces(enum qn_wiring_kind kind)
{
    return kind == QN_WIRING_REDUCE || kind == QN_WIRING_ALLREDUCE ||
           kind == QN_WIRING_EXCHANGE;
}

static bool answers(enum qn_wiring_kind kind)
{
    return kind == QN_WIRING_ACKNOWLEDGED || kind == QN_WIRING_COMMIT;
}

static bool same_members(const struct qn_tree *a, const struct qn_tree *b)
{
    bool same = a->n == b->n && a->root == b->root;
    for (qn_node_t v = 0; same && v < QN_MEMBERS_MAX; v++) {
        same = qn_tree_has(a, v) == qn_tree_has(b, v);
    }
    return same;
}

static bool tree_opts_ok(const struct qn_wiring_opts *o)
{
    if ((uint32_t)o->kind >= QN_WIRING_RING) {
        return false;
    }
    const struct qn_tree *used = NULL;
    for (uint32_t s = 0; s < course[o->kind].stages; s++) {
        used = course[o->kind].down[s] ? o->down : o->up;
        if (used == NULL || qn_tree_check(used) != QN_OK) {
            return false;
        }
    }
    QN_ASSERT(used != NULL);
    return qn_tree_has(used, o->self) &&
           (course[o->kind].stages == 1 || o->kind == QN_WIRING_EXCHANGE ||
            same_members(o->down, o->up)) &&
           (o->called || !reduces(o->kind));
}

/* Index of a child in its parent's send order. */
static uint16_t rank_of(const struct qn_tree *t, qn_node_t child)
{
    const uint16_t *list = t->child + t->child_at[t->parent[child]];
    uint16_t i = 0;
    while (list[i] != child) {
        i++;
    }
    return i;
}

static void add_children(struct qn_wiring *w, const struct qn_tree *t,
                         qn_node_t self, uint32_t stage)
{
    const uint16_t *list = t->child + t->child_at[self];
    for (uint32_t i = 0; i < t->child_count[self]; i++) {
        w->link[w->links++] =
            (struct qn_link){.node = list[i], .stage = (uint8_t)stage};
    }
}

static void add_parent(struct qn_wiring *w, const struct qn_tree *t,
                       qn_node_t self, uint32_t stage, bool up)
{
    if (self != t->root) {
        w->link[w->links++] =
            (struct qn_link){.node = t->parent[self],
                             .there = up ? rank_of(t, self) : 0,
                             .stage = (uint8_t)stage};
    }
}

static void add_preds(struct qn_wiring *w, const struct qn_wiring_opts *o,
                      uint32_t s)
{
    struct qn_stage *stage = &w->stage[s];
    stage->pred_at = w->links;
    if (course[o->kind].down[s]) {
        add_parent(w, o->down, o->self, s, false);
    } else {
        add_children(w, o->up, o->self, s);
    }
    stage->preds = w->links - stage->pred_at;
}

static void add_succs(struct qn_wiring *w, const struct qn_wiring_opts *o,
                      uint32_t s)
{
    struct qn_stage *stage = &w->stage[s];
    stage->succ_at = w->links;
    if (course[o->kind].down[s]) {
        add_children(w, o->down, o->self, s);
    } else {
        add_parent(w, o->up, o->self, s, true);
    }
    stage->succs = w->links - stage->succ_at;
}

/* What stage s waits for, and what its messages are. */
static void describe(struct qn_wiring *w, const struct qn_wiring_opts *o,
                     uint32_t s)
{
    struct qn_stage *stage = &w->stage[s];
    bool down = course[o->kind].down[s];
    bool first = s == 0;
    stage->payload = down                                ? QN_PAYLOAD_COPY
                     : o->kind == QN_WIRING_ACKNOWLEDGED ? QN_PAYLOAD_NONE
                                                         : QN_PAYLOAD_COMBINE;
    stage->begun = first && (w->root || reduces(o->kind));
    stage->worked = !down && answers(o->kind);
    stage->delivers = first && down;
    stage->must = !down || (first && answers(o->kind));
}

/* ---- exchanges ---- */

/* The own contribution goes to all, from the next member on; when those of all
 * others are in, it is over. A successor that has ended needs none, and what it
 * contributed counts if it came. */
static void add_exchange(struct qn_wiring *w, const struct qn_tree *t,
                         qn_node_t self)
{
    uint16_t below = 0; /* members below `self` */
    struct qn_stage *out = &w->stage[0], *in = &w->stage[1];
    for (qn_node_t v = 0; v < QN_MEMBERS_MAX; v++) {
        if (qn_tree_has(t, v) && v != self) {
            w->link[w->links++] = (struct qn_link){.node = (uint16_t)v};
            below = (uint16_t)(below + (v < self));
        }
    }
    const uint32_t others = w->links;
    for (uint32_t i = 0; i < others; i++) {
        const uint32_t at = (below + i) % others;
        const uint16_t v = w->link[at].node;
        w->link[w->links++] =
            (struct qn_link){.node = v,
                             .there = (uint16_t)(below - (at < below ? 1 : 0)),
                             .stage = 1};
    }
    *out = (struct qn_stage){.payload = QN_PAYLOAD_COPY,
                             .succs = others,
                             .succ_at = others,
                             .begun = true};
    *in = (struct qn_stage){
        .payload = QN_PAYLOAD_COMBINE, .preds = others, .succ_at = w->links};
    w->preds = others;
}

/* ---- of either sort ---- */

int qn_wiring_tree(struct qn_wiring **out, const struct qn_wiring_opts *o)
{
    if (!tree_opts_ok(o)) {
        return QN_EINVAL;
    }
    const struct qn_tree *any = course[o->kind].down[0] ? o->down : o->up;
    const uint32_t most = QN_STAGES_MAX * any->n; /* a neighbour at most once
                                                     per stage */
    struct qn_wiring *w = allocate(o->kind, most);
    if (w == NULL) {
        return QN_ENOMEM;
    }
    w->root = o->self == any->root;
    w->called = o->called;
    w->stages = course[o->kind].stages;
    *out = w;
    if (o->kind == QN_WIRING_EXCHANGE) {
        add_exchange(w, any, o->self);
        return QN_OK;
    }
    for (uint32_t s = 0; s < w->stages; s++) {
        describe(w, o, s);
        add_preds(w, o, s);
    }
    w->preds = w->links;
    for (uint32_t s = 0; s < w->stages; s++) {
        add_succs(w, o, s);
    }
    QN_ASSERT(w->links <= most);
    return QN_OK;
}

/* ---- rings ---- */

static qn_node_t node_of(const struct qn_wiring_ring_opts *o, uint32_t id)
{
    uint16_t core = o->ring->core[id];
    return o->node != NULL ? o->node[core] : core;
}

/* The id of `self`, or n: the map must name n different nodes. */
static uint32_t find_self(const struct qn_wiring_ring_opts *o)
{
    const uint32_t n = o->ring->o.n;
    bool core_seen[QN_CORES_MAX] = {false}, seen[QN_MEMBERS_MAX] = {false};
    uint32_t self = n;
    for (uint32_t id = 0; id < n; id++) {
        uint16_t core = o->ring->core[id];
        if (core >= n || core_seen[core]) {
            return n;
        }
        core_seen[core] = true;
        qn_node_t v = node_of(o, id);
        if (v >= QN_MEMBERS_MAX || seen[v]) {
            return n;
        }
        seen[v] = true;
        self = v == o->self ? id : self;
    }
    return self;
}

/* At the root messages arrive in its second stage, at others in the first. */
static struct qn_link ring_link(const struct qn_wiring_ring_opts *o,
                                uint32_t other, uint32_t to, uint32_t there)
{
    return (struct qn_link){.node = (uint16_t)node_of(o, other),
                            .there = (uint16_t)there,
                            .stage = to == 0,
                            .bare = to == 0};
}

/* Links into `self`, and then those out of it. One pass for each: of all links
 * into a member, one is numbered by how many were listed before it. */
static void add_ring_preds(struct qn_wiring *w,
                           const struct qn_wiring_ring_opts *o, uint32_t self)
{
    const struct qn_diamond_ring *r = o->ring;
    for (uint32_t from = 0; from < r->o.n; from++) {
        for (uint32_t i = r->first[from]; i < r->first[from + 1]; i++) {
            if (r->next[i] == self) {
                w->link[w->links] = ring_link(o, from, self, w->links);
                w->links++;
            }
        }
    }
    w->preds = w->links;
}

static void add_ring_succs(struct qn_wiring *w,
                           const struct qn_wiring_ring_opts *o, uint32_t self)
{
    const struct qn_diamond_ring *r = o->ring;
    for (uint32_t i = r->first[self]; i < r->first[self + 1]; i++) {
        uint32_t there = 0;
        for (uint32_t j = 0; j < i; j++) {
            there += r->next[j] == r->next[i];
        }
        w->link[w->links++] = ring_link(o, r->next[i], r->next[i], there);
    }
}

static void describe_ring(struct qn_wiring *w, bool root, bool observed)
{
    const uint32_t preds = w->preds, succs = w->links - w->preds;
    struct qn_stage *out = &w->stage[0], *in = &w->stage[1];
    w->root = root;
    w->stages = root ? 2 : 1;
    *out = (struct qn_stage){.payload = QN_PAYLOAD_COPY,
                             .preds = root ? 0 : preds,
                             .succs = succs,
                             .succ_at = preds,
                             .begun = root,
                             .worked = !root && !observed,
                             .delivers = true,
                             .must = true};
    *in = (struct qn_stage){.preds = root ? preds : 0,
                            .pred_at = root ? 0 : preds,
                            .succ_at = w->links,
                            .worked = root && !observed};
}

int qn_wiring_ring(struct qn_wiring **out, const struct qn_wiring_ring_opts *o)
{
    const struct qn_diamond_ring *r = o->ring;
    uint32_t self = find_self(o);
    if (self == r->o.n) {
        return QN_EINVAL;
    }
    struct qn_wiring *w = allocate(
        QN_WIRING_RING, r->preds[self] + r->first[self + 1] - r->first[self]);
    if (w == NULL) {
        return QN_ENOMEM;
    }
    add_ring_preds(w, o, self);
    QN_ASSERT(w->preds == r->preds[self]);
    add_ring_succs(w, o, self);
    describe_ring(w, self == 0, o->observed);
    *out = w;
    return QN_OK;
}
