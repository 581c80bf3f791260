/*
 * A tree of parts: the whole, groups, and cores as leaves. Sizes are computed
 * from the leaves up: the children of a part are placed in rows of k, each row
 * as high as its highest child and as wide as all of them; k is the number that
 * gives the desired shape with the least waste. Then positions are assigned
 * from the top down.
 *
 * Rows instead of a denser packing: the order of the groups stays readable, and
 * equal groups look equal.
 */
#include "loadgen/topo/draw/layout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"

#define NONE UINT32_MAX

/* Desired ratio of width to height of a part: wide, like text. */
#define ASPECT      1.7
#define ASPECT_PAGE 2.4

enum key { KEY_SOCKET, KEY_NODE, KEY_CACHE, KEY_PHYS, KEYS };

static const char *const key_name[KEYS] = {"socket", "node", "cache", "core"};

struct part {
    uint32_t first, next; /* first child, next sibling; NONE */
    uint32_t parent;
    uint32_t core; /* core of a leaf; NONE: a group */
    uint32_t columns;
    bool boxed;
    bool bare;
    double x, y, w, h;
    char label[QN_LAYOUT_LABEL];
};

struct plan {
    const struct qn_machine *m;
    double width, pitch;
    enum key key[KEYS]; /* coarsest first */
    struct part *part;
    uint32_t count, cap;
};

static uint32_t label_of(const struct qn_machine *m, enum key key, uint32_t v)
{
    const struct qn_machine_core *c = &m->core[v];
    return key == KEY_SOCKET  ? c->socket
           : key == KEY_NODE  ? c->node
           : key == KEY_CACHE ? c->cache
                              : c->phys;
}

static uint32_t count_groups(const struct qn_machine *m, enum key key)
{
    uint32_t count = 0;
    for (uint32_t v = 0; v < m->n; v++) {
        uint32_t u = 0;
        while (label_of(m, key, u) != label_of(m, key, v)) {
            u++;
        }
        count += u == v;
    }
    return count;
}

/* Sort the levels, coarsest first; equal ones in the order of their names
 * above. */
static void sort_keys(struct plan *p)
{
    uint32_t groups[KEYS];
    for (uint32_t i = 0; i < KEYS; i++) {
        uint32_t mine = count_groups(p->m, (enum key)i), at = i;
        for (; at > 0 && groups[at - 1] > mine; at--) {
            groups[at] = groups[at - 1];
            p->key[at] = p->key[at - 1];
        }
        groups[at] = mine;
        p->key[at] = (enum key)i;
    }
}

/* Parts are made once per group and level, so there is always room. */
static uint32_t new_part(struct plan *p, uint32_t parent)
{
    QN_ASSERT(p->count < p->cap);
    uint32_t i = p->count++;
    p->part[i] = (struct part){
        .first = NONE, .next = NONE, .parent = parent, .core = NONE};
    if (parent != NONE) {
        uint32_t *at = &p->part[parent].first;
        while (*at != NONE) {
            at = &p->part[*at].next;
        }
        *at = i;
    }
    return i;
}

static void append_label(struct part *part, enum key key, uint32_t label)
{
    size_t used = strlen(part->label);
    (void)snprintf(part->label + used, sizeof part->label - used, "%s%s %u",
                   used > 0 ? ", " : "", key_name[key], label);
}

static void split(struct plan *p, uint32_t part, const uint16_t *core,
                  uint32_t count, uint32_t level);

/* Group core[] by a level, in the order of their first members. */
static uint32_t find_groups(const struct plan *p, enum key key,
                            const uint16_t *core, uint32_t count,
                            uint16_t *group)
{
    uint32_t groups = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t j = 0;
        while (label_of(p->m, key, core[j]) != label_of(p->m, key, core[i])) {
            j++;
        }
        group[i] = (uint16_t)(j == i ? groups++ : group[j]);
    }
    return groups;
}

static void add_cores(struct plan *p, uint32_t part, const uint16_t *core,
                      uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t leaf = new_part(p, part);
        p->part[leaf].core = core[i];
        p->part[leaf].w = p->pitch;
        p->part[leaf].h = p->pitch;
    }
}

static void split_groups(struct plan *p, uint32_t part, const uint16_t *core,
                         uint32_t count, uint32_t level, const uint16_t *group,
                         uint32_t groups)
{
    enum key key = p->key[level];
    for (uint32_t g = 0; g < groups; g++) {
        uint16_t mine[QN_CORES_MAX] = {0};
        uint32_t n = 0;
        for (uint32_t i = 0; i < count; i++) {
            if (group[i] == g) {
                mine[n++] = core[i];
            }
        }
        uint32_t child = new_part(p, part);
        p->part[child].boxed = true;
        p->part[child].bare = key == KEY_PHYS;
        append_label(&p->part[child], key, label_of(p->m, key, mine[0]));
        split(p, child, mine, n, level + 1);
    }
}

static void split(struct plan *p, uint32_t part, const uint16_t *core,
                  uint32_t count, uint32_t level)
{
    uint16_t group[QN_CORES_MAX];
    for (; level < KEYS; level++) {
        enum key key = p->key[level];
        uint32_t groups = find_groups(p, key, core, count, group);
        if (groups == 1 && key != KEY_PHYS && !p->part[part].bare) {
            p->part[part].boxed = true;
            append_label(&p->part[part], key, label_of(p->m, key, core[0]));
        } else if (groups > 1 && groups < count) {
            split_groups(p, part, core, count, level, group, groups);
            return;
        }
    }
    add_cores(p, part, core, count);
}

/* ---- sizes ---- */

static double head(const struct part *part)
{
    return !part->boxed ? 0 : part->bare ? 0 : QN_LAYOUT_HEAD;
}

static double pad(const struct part *part)
{
    return !part->boxed ? 0 : part->bare ? 1 : QN_LAYOUT_PAD;
}

/* Cores touch each other; boxes have gaps between them. */
static double gap(const struct plan *p, const struct part *part)
{
    const struct part *child = &p->part[part->first];
    return child->core != NONE ? 0 : child->bare ? 2 : QN_LAYOUT_GAP;
}

struct extent {
    double w, h, used;
};

/* Extent of the children in rows of `columns`. */
static struct extent in_rows(const struct plan *p, const struct part *part,
                             uint32_t columns)
{
    struct extent all = {0, 0, 0};
    double w = 0, h = 0, between = gap(p, part);
    uint32_t i = 0;
    for (uint32_t c = part->first; c != NONE; c = p->part[c].next, i++) {
        const struct part *child = &p->part[c];
        if (i % columns == 0 && i > 0) {
            all.h += h + between;
            w = 0;
            h = 0;
        }
        w += child->w + (i % columns > 0 ? between : 0);
        h = QN_MAX(h, child->h);
        all.w = QN_MAX(all.w, w);
        all.used += (child->w + between) * (child->h + between);
    }
    all.h += h;
    return all;
}

static uint32_t count_children(const struct plan *p, const struct part *part)
{
    uint32_t n = 0;
    for (uint32_t c = part->first; c != NONE; c = p->part[c].next) {
        n++;
    }
    return n;
}

/* Compute the size of a part; parts come after their parents, so the last ones
 * come first. */
static void size(struct plan *p, struct part *part, bool whole)
{
    if (part->core != NONE) {
        return;
    }
    double least = 0, around = 2 * pad(part), between = gap(p, part);
    uint32_t n = count_children(p, part);
    for (uint32_t k = 1; k <= n; k++) {
        struct extent e = in_rows(p, part, k);
        double waste = 1 - e.used / ((e.w + between) * (e.h + between));
        double bad =
            fabs(log(e.w / e.h / (whole ? ASPECT_PAGE : ASPECT))) + 2 * waste;
        if (k > 1 && e.w + around > p->width) {
            break; /* the next ones are wider still */
        }
        if (k == 1 || bad < least) {
            least = bad;
            part->columns = k;
            part->w = e.w + around;
            part->h = e.h + around + head(part);
        }
    }
    if (part->boxed && !part->bare) {
        part->w = QN_MAX(part->w, QN_LAYOUT_LEAST);
    }
}

static void place(struct plan *p, struct part *part)
{
    if (part->core != NONE) {
        return;
    }
    double x = part->x + pad(part), y = part->y + pad(part) + head(part);
    double h = 0, left = x, between = gap(p, part);
    uint32_t i = 0;
    for (uint32_t c = part->first; c != NONE; c = p->part[c].next, i++) {
        struct part *child = &p->part[c];
        if (i % part->columns == 0 && i > 0) {
            x = left;
            y += h + between;
            h = 0;
        }
        child->x = x;
        child->y = y;
        x += child->w + between;
        h = QN_MAX(h, child->h);
    }
}

/* ---- the result ---- */

static void take_part(struct qn_layout *l, const struct plan *p, uint32_t i,
                      uint32_t *box_of)
{
    const struct part *part = &p->part[i];
    uint32_t around = part->parent != NONE ? box_of[part->parent] : NONE;
    box_of[i] = around;
    if (part->core != NONE) {
        l->x[part->core] = part->x + part->w / 2;
        l->y[part->core] = part->y + part->h / 2;
    } else if (part->boxed) {
        struct qn_box *b = &l->box[l->boxes];
        *b = (struct qn_box){.x = part->x,
                             .y = part->y,
                             .width = part->w,
                             .height = part->h,
                             .parent = around != NONE ? around : l->boxes,
                             .depth =
                                 around != NONE ? l->box[around].depth + 1 : 0,
                             .bare = part->bare};
        memcpy(b->label, part->label, sizeof b->label);
        box_of[i] = l->boxes++;
    }
}

static int take(struct qn_layout *l, const struct plan *p)
{
    uint32_t *box_of = calloc(p->cap, sizeof *box_of);
    l->box = calloc(p->cap, sizeof *l->box);
    if (l->box == NULL || box_of == NULL) {
        free(box_of);
        return QN_ENOMEM;
    }
    l->width = p->part[0].w;
    l->height = p->part[0].h;
    for (uint32_t i = 0; i < p->count; i++) {
        take_part(l, p, i, box_of);
    }
    free(box_of);
    return QN_OK;
}

int qn_layout_create(struct qn_layout **out, const struct qn_machine *m,
                     double width, double pitch)
{
    struct plan p = {.m = m, .width = width, .pitch = pitch};
    struct qn_layout *l = calloc(1, sizeof *l);
    uint16_t core[QN_CORES_MAX] = {0};
    QN_ASSERT(pitch > 0);
    p.cap = 1 + (KEYS + 1) * m->n;
    p.part = calloc(p.cap, sizeof *p.part);
    int err = l != NULL && p.part != NULL ? QN_OK : QN_ENOMEM;
    if (err == QN_OK) {
        l->n = m->n;
        l->pitch = pitch;
        for (uint32_t v = 0; v < m->n; v++) {
            core[v] = (uint16_t)v;
        }
        sort_keys(&p);
        split(&p, new_part(&p, NONE), core, m->n, 0);
        for (uint32_t i = p.count; i-- > 0;) {
            size(&p, &p.part[i], i == 0);
        }
        for (uint32_t i = 0; i < p.count; i++) {
            place(&p, &p.part[i]);
        }
        err = take(l, &p);
    }
    free(p.part);
    if (err != QN_OK) {
        qn_layout_destroy(l);
        return err;
    }
    *out = l;
    return QN_OK;
}

void qn_layout_destroy(struct qn_layout *l)
{
    if (l != NULL) {
        free(l->box);
        free(l);
    }
}
