/*
 * From processing units to a machine. What units share are objects whose own
 * numbers may repeat (logical numbers per level, operating system numbers per
 * package), so they are numbered as they are met, in the order of core numbers.
 * Only memory nodes keep theirs, since that is how the rest of the house calls
 * them.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/text.h"
#include "core/discover/topology_internal.h"

/* Objects that were met on one level; the place in the list is the number. */
struct numbering {
    uint32_t count;
    uint64_t met[QN_CORES_MAX];
};

struct numberings {
    struct numbering phys, cache, socket;
};

static uint32_t number_of(struct numbering *n, uint64_t object)
{
    uint32_t i = 0;
    while (i < n->count && n->met[i] != object) {
        i++;
    }
    if (i == n->count) {
        n->met[n->count++] = object;
    }
    return i;
}

static int by_number(const void *left, const void *right)
{
    const struct qn_unit *a = left, *b = right;
    return (a->os > b->os) - (a->os < b->os);
}

/* Cores of which no memory node is known are a node per package, beside those
 * that there are: they are near each other and near no other memory. */
static void give_nodes(struct qn_machine *m)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        if (m->core[i].node != QN_NODE_UNKNOWN) {
            next = QN_MAX(next, m->core[i].node + 1);
        }
    }
    for (uint32_t i = 0; i < m->n; i++) {
        if (m->core[i].node == QN_NODE_UNKNOWN) {
            m->core[i].node = next + m->core[i].socket;
        }
    }
}

/* "Intel(R) Xeon(R) E5-2670 v2 @ 2.50GHz" becomes intel_xeon_e5_2670_v2. */
static void slug(char *to, size_t room, const char *from)
{
    size_t n = 0;
    for (; *from != '\0' && *from != '@' && n + 1 < room; from++) {
        if (strncmp(from, "(R)", 3) == 0 || strncmp(from, "(r)", 3) == 0) {
            from += 2;
        } else if (strncasecmp(from, "(TM)", 4) == 0) {
            from += 3;
        } else if (isalnum((unsigned char)*from)) {
            to[n++] = (char)tolower((unsigned char)*from);
        } else if (n > 0 && to[n - 1] != '_') {
            to[n++] = '_';
        }
    }
    while (n > 0 && to[n - 1] == '_') {
        n--;
    }
    to[n] = '\0';
}

static void give_name(struct qn_machine *m, const char *cpu,
                      const struct numberings *n)
{
    char base[40];
    qn_text_copy(m->facts.cpu, sizeof m->facts.cpu, cpu);
    slug(base, sizeof base, cpu[0] != '\0' ? cpu : "machine");
    QN_ASSERT(n->phys.count > 0 && n->socket.count > 0);
    uint32_t cores = n->phys.count / n->socket.count;
    uint32_t threads = m->n / n->phys.count;
    int len = snprintf(m->name, sizeof m->name, "%s_%ux%u", base,
                       n->socket.count, cores);
    if (threads > 1 && len > 0) {
        (void)snprintf(m->name + len, sizeof m->name - (size_t)len, "x%u",
                       threads);
    }
}

static int check(const struct qn_unit *unit, uint32_t count, const char *file,
                 struct qn_parse_error *parse_error)
{
    if (count == 0) {
        return qn_parse_error_set(parse_error, file, 0, NULL,
                                  "there is no usable core");
    }
    if (unit[count - 1].os > QN_CORE_NUMBER_MAX) {
        return qn_parse_error_set(
            parse_error, file, 0, NULL,
            "core %u: numbers above %u are not known; restrict "
            "the process (taskset) or the file",
            unit[count - 1].os, QN_CORE_NUMBER_MAX);
    }
    for (uint32_t i = 1; i < count; i++) {
        if (unit[i].os == unit[i - 1].os) {
            return qn_parse_error_set(parse_error, file, 0, NULL,
                                      "core %u is there twice; remove one",
                                      unit[i].os);
        }
    }
    return QN_OK;
}

int qn_units_to_machine(struct qn_machine **out, struct qn_unit *unit,
                        uint32_t count, const char *cpu, const char *file,
                        struct qn_parse_error *parse_error)
{
    struct numberings *n = calloc(1, sizeof *n);
    struct qn_machine *m = NULL;
    qsort(unit, count, sizeof *unit, by_number);
    int err = check(unit, count, file, parse_error);
    if (err == QN_OK && (n == NULL || qn_machine_create(&m, count) != QN_OK)) {
        (void)qn_parse_error_set(parse_error, file, 0, NULL,
                                 "not enough memory");
        err = QN_ENOMEM;
    }
    for (uint32_t i = 0; err == QN_OK && i < count; i++) {
        m->core[i] = (struct qn_machine_core){
            .os = unit[i].os,
            .phys = number_of(&n->phys, unit[i].phys),
            .cache = number_of(&n->cache, unit[i].cache),
            .node = unit[i].node,
            .socket = number_of(&n->socket, unit[i].socket)};
    }
    if (err == QN_OK) {
        give_nodes(m);
        give_name(m, cpu, n);
        *out = m;
    }
    free(n);
    return err;
}
