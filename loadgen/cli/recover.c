#include "loadgen/cli/recover.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"

/*
 * Lines of INFO are `name:value`; the value of a replica is `key=value,...`. A
 * group can continue only from a replica that is online: any other replica is
 * about to replace its data.
 */

/* Value of the line `name`, up to its end; NULL if there is none. */
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

/* Value of `key` in the line of a replica; NULL if there is none. */
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
        return QN_OK; /* this replica has not answered */
    }
    const char *state = field(value, "state");
    if (state == NULL || !number(field(value, "learned"), &x->has) ||
        !number(field(value, "clients"), &x->clients) ||
        !number(field(value, "commit"), &commit)) {
        return QN_ECORRUPT;
    }
    snprintf(x->state, sizeof x->state, "%.*s", (int)strcspn(state, ",\r\n"),
             state);
    x->heard = x->member = true;
    x->complete = strcmp(x->state, "online") == 0;
    p->decided = QN_MAX(p->decided, QN_MAX(commit, x->has));
    return QN_OK;
}

/* "0,2": they are members, and have not answered. */
static void silent_read(struct qn_recover_plan *p, const char *nodes)
{
    while (nodes != NULL && *nodes >= '0' && *nodes <= '9') {
        char *end;
        const unsigned long node = strtoul(nodes, &end, 10);
        if (node < QN_NODES_MAX) {
            p->part[node].member = true;
        }
        nodes = end + (*end == ',');
    }
}

static bool better(const struct qn_recover_part *a,
                   const struct qn_recover_part *b)
{
    return a->has != b->has ? a->has > b->has : a->clients > b->clients;
}

static int parts_read(struct qn_recover_plan *p, const char *info)
{
    int err = QN_OK;
    silent_read(p, line(info, "replicas_missing"));
    for (qn_node_t i = 0; err == QN_OK && i < QN_NODES_MAX; i++) {
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
        return "the group waits for a stalled replica, which may hold data "
               "that "
               "the others lack: resume it, or end it";
    }
    if (!is(line(info, "group"), "stopped") && !p->incomplete) {
        return "the group has not stopped: it is changing roles, or waits for "
               "a "
               "majority of its replicas";
    }
    if (is(line(info, "group_reason"), "overwritten")) {
        return "the leader has overwritten the accept register, so it is not "
               "known what is decided: copy what you need, end quoind, and "
               "start it again";
    }
    if (is(line(info, "supervisor"), "down")) {
        return "the supervisor has ended: start quoind again with the same "
               "options, so that it adopts the replicas; then recover";
    }
    return p->complete == 0 ? "no replica is complete: wait until one is "
                              "online, then try again"
                            : NULL;
}

int qn_recover_make(struct qn_recover_plan *plan, const char *info, char *why,
                    size_t cap)
{
    uint64_t replicas = 0;
    *plan = (struct qn_recover_plan){0};
    if (!number(line(info, "epoch"), &plan->epoch) ||
        !number(line(info, "replicas"), &replicas) || replicas == 0 ||
        replicas > QN_NODES_MAX || line(info, "group") == NULL) {
        snprintf(why, cap, "not a quoind, or an older version");
        return QN_ECORRUPT;
    }
    plan->replicas = (uint32_t)replicas;
    plan->serving = is(line(info, "group"), "serving");
    plan->incomplete = is(line(info, "group"), "incomplete");
    plan->memory = is(line(info, "acceptor_kind"), "memory");
    if (parts_read(plan, info) != QN_OK) {
        snprintf(
            why, cap,
            "cannot parse the replicas in its INFO; is it a newer version?");
        return QN_ECORRUPT;
    }
    const char *no = objection(plan, info);
    if (no != NULL) {
        snprintf(why, cap, "%s", no);
        return QN_EBUSY;
    }
    return QN_OK;
}

/* ---- text ---------------------------------------------------------------- */

static void print_part(const struct qn_recover_plan *p, qn_node_t i, FILE *to)
{
    const struct qn_recover_part *x = &p->part[i];
    if (!x->heard) {
        fprintf(
            to,
            "  replica %u  does not answer; its data is unknown and will be "
            "discarded\n",
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
            p->memory ? "the leader was lost, and no replica\nhas all "
                        "positions that its memory no longer holds"
            : p->incomplete
                ? "leader and acceptor were lost before the next "
                  "leader\nhad their whole log, and no replica that "
                  "answers has the rest"
                : "leader and acceptor were lost together");
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        if (p->part[i].member) {
            print_part(p, i, to);
        }
    }
    fprintf(to,
            "It would continue from replica %u, position %" PRIu64
            ". All other replicas are ended\nand started again with the data "
            "of this one.\n",
            p->from, has);
    if (p->decided > has) {
        fprintf(to,
                "Positions %" PRIu64 " to %" PRIu64
                " may be lost: they were decided, perhaps acknowledged,\nand "
                "no remaining replica has them.\n",
                has + 1, p->decided);
    } else {
        fputs("No higher position is known to have been decided.\n", to);
    }
    fputs("Positions that were decided beyond these are lost, too.\n", to);
    return fflush(to) == 0 && !ferror(to);
}
