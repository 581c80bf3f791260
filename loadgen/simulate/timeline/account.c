#include "loadgen/simulate/timeline/account.h"

/* Sums over all nodes, in ns. */
struct account {
    const char *name;
    double ns;
};

#define ACCOUNTS 9u

static void sum_up(const struct qn_timed_result *r,
                   struct account account[ACCOUNTS])
{
    const struct account empty[ACCOUNTS] = {
        {"reads", 0},
        {"writes", 0},
        {"hits", 0},
        {"queued for a line", 0},
        {"fences", 0},
        {"library", 0},
        {"work", 0},
        {"paused", 0},
        {"parked or stopped", 0},
    };
    for (uint32_t i = 0; i < ACCOUNTS; i++) {
        account[i] = empty[i];
    }
    for (uint32_t v = 0; v < r->nodes; v++) {
        const struct qn_timed_node *n = &r->node[v];
        const qn_ps_t ps[ACCOUNTS] = {
            n->read,   n->write,  n->hit,
            n->waited, n->fenced, n->library,
            n->worked, n->paused, n->parked + n->stopped};
        for (uint32_t i = 0; i < ACCOUNTS; i++) {
            account[i].ns += (double)ps[i] / 1000;
        }
    }
}

void qn_account_print(const struct qn_timed_result *r, const char *over,
                      FILE *to)
{
    struct account account[ACCOUNTS];
    double all = 0;
    sum_up(r, account);
    for (uint32_t i = 0; i < ACCOUNTS; i++) {
        all += account[i].ns;
    }
    fprintf(to, "where the nodes' time went over %s:", over);
    const char *between = " ";
    for (uint32_t i = 0; i < ACCOUNTS; i++) {
        if (account[i].ns > 0) {
            fprintf(to, "%s%s %.1f %%", between, account[i].name,
                    100 * account[i].ns / all);
            between = ", ";
        }
    }
    fputc('\n', to);
}

json_t *qn_account_json(const struct qn_timed_result *r)
{
    struct account account[ACCOUNTS];
    json_t *where = json_object();
    sum_up(r, account);
    for (uint32_t i = 0; i < ACCOUNTS; i++) {
        json_object_set_new(where, account[i].name, json_real(account[i].ns));
    }
    return where;
}
