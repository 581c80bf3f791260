#include "loadgen/report/report_internal.h"

/*
 * The cost of a fail-over: the longest time without a success, and when it
 * began. The table shows reads and writes; the JSON has each kind, too.
 */

static double ms(qn_time_t ns)
{
    return (double)ns / 1e6;
}

static void print_one(FILE *to, const char *name,
                      struct qn_unavailability_row row)
{
    if (row.asked) {
        fprintf(to, "  %s %.1f ms at %.2f s", name, ms(row.longest),
                (double)row.began / 1e9);
    }
}

static bool was_asked(const struct qn_report *r)
{
    return r->address_count > 0 &&
           (qn_unavailability_get(r->unavailability, 0, QN_UNAVAILABILITY_READ)
                .asked ||
            qn_unavailability_get(r->unavailability, 0, QN_UNAVAILABILITY_WRITE)
                .asked);
}

static void print_address(FILE *to, const struct qn_report *r, uint32_t address,
                          const char *name)
{
    struct qn_unavailability_row reads = qn_unavailability_get(
        r->unavailability, address, QN_UNAVAILABILITY_READ);
    struct qn_unavailability_row writes = qn_unavailability_get(
        r->unavailability, address, QN_UNAVAILABILITY_WRITE);
    fprintf(to, "longest without a success, %s:", name);
    print_one(to, "reads", reads);
    print_one(to, "writes", writes);
    fputc('\n', to);
}

void qn_report_unavailability_table(FILE *to, const struct qn_report *r)
{
    if (!was_asked(r)) {
        return; /* the load was PING only */
    }
    fputc('\n', to);
    for (uint32_t a = 0; a < r->address_count; a++) {
        print_address(to, r, a, r->address[a]);
    }
    if (r->address_count > 1) {
        print_address(to, r, r->address_count, "all");
    }
}

static void add_address(json_t *list, const struct qn_report *r,
                        uint32_t address, json_t *name)
{
    for (uint32_t i = 0; i < QN_UNAVAILABILITY_ROWS; i++) {
        struct qn_unavailability_row row =
            qn_unavailability_get(r->unavailability, address, i);
        if (row.asked) {
            json_array_append_new(
                list,
                json_pack("{s:O, s:s, s:f, s:f}", "to", name, "kind",
                          qn_unavailability_name(i), "longest_ms",
                          ms(row.longest), "began_s", (double)row.began / 1e9));
        }
    }
    json_decref(name);
}

json_t *qn_report_unavailability_json(const struct qn_report *r)
{
    json_t *list = json_array();
    for (uint32_t a = 0; a < r->address_count; a++) {
        json_t *name = json_string(r->address[a]);
        add_address(list, r, a, name != NULL ? name : json_string("?"));
    }
    if (r->address_count > 1) {
        add_address(list, r, r->address_count, json_string("all"));
    }
    return list;
}
