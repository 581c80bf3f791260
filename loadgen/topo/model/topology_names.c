#include "loadgen/topo/model/topology_names.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"

/* Does it begin with an option of the topology before it? */
static bool belongs(const char *word)
{
    static const char *const whole[] = {"full", "companion"};
    static const char *const begin[] = {"map=", "up="};
    const size_t len = strcspn(word, ",");
    for (size_t i = 0; i < QN_ARRAY_COUNT(whole); i++) {
        if (strlen(whole[i]) == len && memcmp(whole[i], word, len) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < QN_ARRAY_COUNT(begin); i++) {
        if (strncmp(word, begin[i], strlen(begin[i])) == 0) {
            return true;
        }
    }
    return false;
}

int qn_topology_names_add(struct qn_topology_names *n, const char *list)
{
    const size_t len = strlen(list) + 1;
    char *grown = realloc(n->text, n->bytes + len);
    if (grown == NULL) {
        return QN_ENOMEM;
    }
    char *added = grown + n->bytes;
    memcpy(added, list, len);
    for (char *at = strchr(added, ','); at != NULL; at = strchr(at + 1, ',')) {
        if (!belongs(at + 1)) {
            *at = '\0';
        }
    }
    n->text = grown;
    n->bytes += len;
    return QN_OK;
}

const char *qn_topology_names_next(const struct qn_topology_names *n,
                                   const char *name)
{
    const char *next = name == NULL ? n->text : name + strlen(name) + 1;
    return next != NULL && next < n->text + n->bytes ? next : NULL;
}

void qn_topology_names_fini(struct qn_topology_names *n)
{
    free(n->text);
    *n = (struct qn_topology_names){NULL, 0};
}
