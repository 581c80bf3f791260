/* One flag per core keeps the list ascending and free of duplicates. */
#include "loadgen/topo/model/cores.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"

/* Parses a number at *text and advances it. n if the machine has no such
 * core. */
static uint32_t take(const struct qn_machine *m, const char **text)
{
    char *end;
    if (**text < '0' || **text > '9') {
        return m->n;
    }
    unsigned long os = strtoul(*text, &end, 10);
    *text = end;
    return os <= QN_CORE_NUMBER_MAX ? qn_machine_find(m, (uint32_t)os) : m->n;
}

int qn_cores_parse(uint32_t *index, uint32_t *count, const struct qn_machine *m,
                   const char *list, struct qn_parse_error *parse_error)
{
    bool chosen[QN_CORES_MAX] = {false};
    for (const char *at = list;; at++) {
        const char *word = at;
        uint32_t from = take(m, &at), to = from;
        if (from < m->n && *at == '-') {
            at++;
            to = take(m, &at);
        }
        if (from == m->n || to == m->n || to < from ||
            (*at != ',' && *at != '\0')) {
            return qn_parse_error_set(
                parse_error, "--cores", 0, NULL,
                "'%.*s' is not a core or range of cores of this machine; use "
                "the numbers of its file, like 0-7,16",
                (int)strcspn(word, ","), word);
        }
        for (uint32_t v = from; v <= to; v++) {
            chosen[v] = true;
        }
        if (*at == '\0') {
            break;
        }
    }
    *count = 0;
    for (uint32_t v = 0; v < m->n; v++) {
        if (chosen[v]) {
            index[(*count)++] = v;
        }
    }
    return QN_OK;
}

void qn_cores_deal(uint32_t *index, const struct qn_machine *m)
{
    uint32_t place[QN_CORES_MAX],
        count = 0; /* position of a core in its node */
    for (uint32_t v = 0; v < m->n; v++) {
        place[v] = 0;
        for (uint32_t u = 0; u < v; u++) {
            place[v] += m->core[u].node == m->core[v].node;
        }
    }
    /* Within a round the order is that of the nodes' first cores, not of the
     * cores. */
    for (uint32_t round = 0; count < m->n; round++) {
        for (uint32_t first = 0; first < m->n; first++) {
            for (uint32_t v = first; place[first] == 0 && v < m->n; v++) {
                if (m->core[v].node == m->core[first].node &&
                    place[v] == round) {
                    index[count++] = v;
                }
            }
        }
    }
}
