#include "loadgen/report/report_internal.h"

#include <inttypes.h>

/*
 * Opened connections: if some could not be opened, the load was smaller than
 * its title says. A short run by count may end before all connections are open;
 * this is not a failure.
 */

static uint64_t sum(const struct qn_report *r, bool opened)
{
    uint64_t n = 0;
    for (uint32_t a = 0; r->opened != NULL && a < r->address_count; a++) {
        n += opened ? r->opened[a].opened : r->opened[a].wanted;
    }
    return n;
}

uint64_t qn_report_missing(const struct qn_report *r)
{
    uint64_t n = 0;
    for (uint32_t a = 0; r->opened != NULL && a < r->address_count; a++) {
        const struct qn_report_opened *o = &r->opened[a];
        n += o->failed ? o->wanted - o->opened : 0;
    }
    return n;
}

void qn_report_connections(const struct qn_report *r,
                           char text[QN_REPORT_CONNECTIONS_MAX])
{
    uint64_t wanted = sum(r, false);
    uint64_t opened = sum(r, true);
    int n =
        snprintf(text, QN_REPORT_CONNECTIONS_MAX, "%" PRIu64 " connection%s",
                 r->connections, r->connections == 1 ? "" : "s");
    if (opened < wanted && n > 0) {
        snprintf(text + n, QN_REPORT_CONNECTIONS_MAX - (size_t)n,
                 " (%" PRIu64 " of %" PRIu64 " opened)", opened, wanted);
    }
}

void qn_report_opened_table(FILE *to, const struct qn_report *r)
{
    for (uint32_t a = 0; r->opened != NULL && a < r->address_count; a++) {
        const struct qn_report_opened *o = &r->opened[a];
        if (o->failed) {
            fprintf(to,
                    "%s: %" PRIu64 " of %" PRIu64 " connections opened; the "
                    "others sent no requests\n",
                    r->address[a], o->opened, o->wanted);
        }
    }
}

json_t *qn_report_opened_json(const struct qn_report *r)
{
    json_t *list = json_array();
    for (uint32_t a = 0; r->opened != NULL && a < r->address_count; a++) {
        json_t *name = json_string(r->address[a]);
        json_array_append_new(
            list, json_pack("{s:o, s:I, s:I}", "to",
                            name != NULL ? name : json_string("?"), "wanted",
                            (json_int_t)r->opened[a].wanted, "opened",
                            (json_int_t)r->opened[a].opened));
    }
    return list;
}
