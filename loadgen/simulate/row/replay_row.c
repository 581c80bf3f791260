#include "loadgen/simulate/row/replay_row.h"

void qn_replay_row_of(struct qn_replay_row *r, const struct qn_replay_claim *c,
                      double got, const char *what, va_list args)
{
    *r = (struct qn_replay_row){.id = c->id,
                                .published = c->published,
                                .why = c->why,
                                .limit = c->limit,
                                .most = c->most,
                                .got = got};
    (void)vsnprintf(r->what, sizeof r->what, what, args);
}

bool qn_replay_row_print(const struct qn_replay_row *r, FILE *to)
{
    const bool holds = qn_replay_row_holds(r);
    fprintf(to, "%-4s %-74s %9s %s %7.3f %9.3f  %s\n", r->id, r->what,
            r->published != NULL ? r->published : "",
            r->most ? "<=" : ">=", r->limit, r->got,
            holds ? "holds" : "MISSED");
    if (!holds && r->why != NULL) {
        fprintf(to, "     because %s\n", r->why);
    }
    fflush(to);
    return holds;
}
