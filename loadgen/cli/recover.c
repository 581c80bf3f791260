#include "loadgen/cli/recover.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"

/*
 * INFO's lines are `name:value`; a replica's value is `key=value,...`. Only a
 * replica that is online counts as one to go on from: another one is about to
 * replace what it has.
 */

/* The value of the line `name`, up to its end; NULL: there is none. */
static const char *line(const char *info, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = info; at != NULL && *at != '\0';) {
        if (strncmp(at, name, len) == 0 && at[len] == ':') {
            return at + len + 1;
        }
        at = strchr(at, '\n');
        at = at != NULL ? at + 1 : NULL;
    }
    return NULL;
}

static bool is(const char *value, const char *word)
{
    size_t len = strlen(word);
    return value != NULL && strncmp(value, word, len) == 0 &&
           strchr("\r\n", value[len]) != NULL;
}

static bool number(const char *value, uint64_t *out)
{
    char *end = NULL;
    if (value == NULL || *value < '0' || *value > '9') {
        return false;
    }
    *out = strtoull(value, &end, 10);
    return true;
}

/* The value of `key` in a replica's line; NULL: there is none. */
static const char *field(const char *value, const char *key)
{
    size_t len = strlen(key);
    while (value != NULL && *value != '\r' && *value != '\n' &&
           *value != '\0') {
        if (strncmp(value, key, len) == 0 && value[len] == '=') {
            return value + len + 1;
        }
        size_t skip = strcspn(value, ",\r\n");
        value += skip + (value[skip] == ',');
    }
    return NULL;
}

static int part_read(struct qn_recover_plan *p, const char *info, qn_node_t i)
{
    struct qn_recover_part *x = &p->part[i];
    char name[32];
    uint64_t commit;
    snprintf(name, sizeof name, "replica%u", i);
    const char *value = line(info, name);
    if (value == NULL) {
        return QN_OK; /* it has not answered */
    }
    const char *state = field(value, "state");
    if (state == NULL || !number(field(value, "learned"), &x->has) ||
        !number(field(value, "clients"), &x->clients) ||
        !number(field(value, "commit"), &commit)) {
        return QN_ECORRUPT;
    }
    snprintf(x->state, sizeof x->state, "%.*s", (int)strcspn(state, ",\r\n"),
             state);
    x->heard = true;
    x->complete = strcmp(x->state, "online") == 0;
    p->decided = QN_MAX(p->decided, QN_MAX(commit, x->has));
    return QN_OK;
}

static bool better(const struct qn_recover_part *a,
                   const struct qn_recover_part *b)
{
    return a->has != b->has ? a->has > b->has : a->clients > b->clients;
}

static int parts_read(struct qn_recover_plan *p, const char *info)
{
    int err = QN_OK;
    for (qn_node_t i = 0; err == QN_OK && i < p->replicas; i++) {
        const struct qn_recover_part *x = &p->part[i];
        err = part_read(p, info, i);
        if (x->complete && (p->complete == 0 || better(x, &p->part[p->from]))) {
            p->from = i;
        }
        p->complete += x->complete;
    }
    return err;
}

static const char *objection(const struct qn_recover_plan *p, const char *info)
{
    if (p->serving) {
        return "the group serves: there is nothing to recover";
    }
    if (is(line(info, "group"), "waiting")) {
        return "the group waits for a replica that stands still, and may have "
               "what the others lack: let it go on, or end it";
    }
    if (!is(line(info, "group"), "stopped") && !p->incomplete) {
        return "the group has not stopped: it changes roles, or waits for a "
               "majority of its replicas";
    }
    if (is(line(info, "supervisor"), "down")) {
        return "the supervisor has ended: start quoind again with the same "
               "options, which adopts the replicas; then recover";
    }
    return p->complete == 0 ? "no replica is complete" : NULL;
}

int qn_recover_make(struct qn_recover_plan *plan, const char *info, char *why,
                    size_t cap)
{
    uint64_t replicas = 0;
    *plan = (struct qn_recover_plan){0};
    if (!number(line(info, "epoch"), &plan->epoch) ||
        !number(line(info, "replicas"), &replicas) || replicas == 0 ||
        replicas > QN_NODES_MAX || line(info, "group") == NULL) {
        snprintf(why, cap, "it is no quoind, or an older one");
        return QN_ECORRUPT;
    }
    plan->replicas = (uint32_t)replicas;
    plan->serving = is(line(info, "group"), "serving");
    plan->incomplete = is(line(info, "group"), "incomplete");
    plan->memory = is(line(info, "acceptor_kind"), "memory");
    if (parts_read(plan, info) != QN_OK) {
        snprintf(why, cap, "what it says of its replicas is not understood");
        return QN_ECORRUPT;
    }
    const char *no = objection(plan, info);
    if (no != NULL) {
        snprintf(why, cap, "%s", no);
        return QN_EBUSY;
    }
    return QN_OK;
}

/* ---- words --------------------------------------------------------------- */

static void print_part(const struct qn_recover_plan *p, qn_node_t i, FILE *to)
{
    const struct qn_recover_part *x = &p->part[i];
    if (!x->heard) {
        fprintf(to,
                "  replica %u  does not answer; what it has is not known, and "
                "is given up\n",
                i);
    } else if (!x->complete) {
        fprintf(to, "  replica %u  %s\n", i, x->state);
    } else {
        fprintf(to, "  replica %u  has all positions up to %" PRIu64 "%s\n", i,
                x->has, i == p->from ? "  <- from here" : "");
    }
}

bool qn_recover_print(const struct qn_recover_plan *p, FILE *to)
{
    uint64_t has = p->part[p->from].has;
    fprintf(to, "The group has stopped in epoch %" PRIu64 ": %s.\n", p->epoch,
            p->memory       ? "the leader was lost, and no replica\nhas all "
                              "that its memory does not keep any more"
            : p->incomplete ? "leader and acceptor were lost before the next "
                              "leader\nhad all of their log, and nobody who "
                              "answers has the rest"
                            : "leader and acceptor were lost together");
    for (qn_node_t i = 0; i < p->replicas; i++) {
        print_part(p, i, to);
    }
    fprintf(to,
            "It would go on from replica %u, position %" PRIu64
            ". All others are ended and\nstarted again with what that one "
            "has.\n",
            p->from, has);
    if (p->decided > has) {
        fprintf(to,
                "Positions %" PRIu64 " to %" PRIu64
                " may be lost: they were decided, perhaps acknowledged,\nand "
                "no replica that is left has them.\n",
                has + 1, p->decided);
    } else {
        fputs("No position above that is known to have been decided.\n", to);
    }
    fputs("Whatever was decided beyond what is known here is lost, too.\n", to);
    return fflush(to) == 0 && !ferror(to);
}
