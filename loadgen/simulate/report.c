/*
 * Unknown values are "-" in the table and null in JSON.
 */
#include <jansson.h>
#include <math.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/simulate/command.h"
#include "loadgen/simulate/timeline/account.h"

static void cell(FILE *to, double x, int width, int digits)
{
    if (isfinite(x)) {
        fprintf(to, " %*.*f", width, digits, x);
    } else {
        fprintf(to, " %*s", width, "-");
    }
}

static uint64_t accesses(const struct qn_simulate *s)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->rows; i++) {
        sum += s->row[i].run.accesses;
    }
    return sum;
}

static void write_text(const struct qn_simulate *s, FILE *to)
{
    char sources[32] = "";
    if (s->sources > 0) {
        (void)snprintf(sources, sizeof sources, " of %u sources",
                       (unsigned)s->sources);
    }
    fprintf(
        to,
        "%s%s over %s on %s, %u nodes, %u bytes, %u operations, seed %llu%s\n",
        qn_virtual_name(s->op), sources, s->transport->name,
        s->m->name[0] != '\0' ? s->m->name : s->machine, s->m->n,
        (unsigned)s->size, (unsigned)s->count, (unsigned long long)s->seed,
        s->clock_known ? "" : ", clock unknown: 2 GHz");
    fprintf(to, "%-20s %10s %10s %10s %6s %10s %10s %6s\n", "topology",
            "median_ns", "p99_ns", "predicted", "ratio", "per_second", "bound",
            "ratio");
    for (uint32_t i = 0; i < s->rows; i++) {
        const struct qn_simulate_row *row = &s->row[i];
        fprintf(to, "%-20s", row->name);
        cell(to, row->median_ns, 10, 1);
        cell(to, row->p99_ns, 10, 1);
        cell(to, row->predicted_ns, 10, 1);
        cell(to, row->median_ns / row->predicted_ns, 6, 3);
        cell(to, row->rate, 10, 0);
        cell(to, row->bound, 10, 0);
        cell(to, row->rate / row->bound, 6, 3);
        fputs(row->incomplete ? "  incomplete\n"
              : row->chosen   ? "  chosen\n"
                              : "\n",
              to);
    }
    if (s->rows == 1) {
        qn_account_print(&s->row[0].run, s->row[0].name, to);
    }
    fprintf(to,
            "%llu accesses in %.2f s of this host: %.1f million per second; "
            "hash of the last run %016llx\n",
            (unsigned long long)accesses(s), s->host_s,
            (double)accesses(s) / s->host_s / 1e6,
            (unsigned long long)s->row[s->rows - 1].run.hash);
}

static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *row_json(const struct qn_simulate_row *row)
{
    char hash[20];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)row->run.hash);
    return json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:b, s:I, s:s, "
        "s:o, s:b}",
        "topology", row->name, "median_ns", number(row->median_ns), "p99_ns",
        number(row->p99_ns), "predicted_ns", number(row->predicted_ns),
        "latency_ratio", number(row->median_ns / row->predicted_ns),
        "per_second", number(row->rate), "bound_per_second", number(row->bound),
        "rate_ratio", number(row->rate / row->bound), "operations",
        (json_int_t)row->operations, "wrong", (json_int_t)row->wrong,
        "incomplete", row->incomplete, "accesses",
        (json_int_t)row->run.accesses, "hash", hash, "node_ns",
        qn_account_json(&row->run), "chosen", row->chosen);
}

static int write_json(const struct qn_simulate *s, FILE *to)
{
    json_t *rows = json_array();
    for (uint32_t i = 0; i < s->rows; i++) {
        json_array_append_new(rows, row_json(&s->row[i]));
    }
    json_t *all = json_pack(
        "{s:s, s:s, s:s, s:i, s:f, s:b, s:i, s:I, s:f, s:f, s:o}", "sim",
        qn_virtual_name(s->op), "transport", s->transport->name, "machine",
        s->m->name, "nodes", (int)s->m->n, "clock_ghz", s->ghz, "clock_known",
        s->clock_known, "size", (int)s->size, "seed", (json_int_t)s->seed,
        "jitter", s->jitter, "host_seconds", s->host_s, "topologies", rows);
    if (s->sources > 0) { /* acknowledged broadcasts only have them */
        (void)json_object_set_new(all, "sources",
                                  json_integer((json_int_t)s->sources));
    }
    bool bad = all == NULL || json_dumpf(all, to, JSON_INDENT(2)) != 0 ||
               fputc('\n', to) == EOF;
    json_decref(all);
    return bad ? QN_EIO : QN_OK;
}

int qn_simulate_report(const struct qn_simulate *s, FILE *to)
{
    int err = QN_OK;
    if (s->json) {
        err = write_json(s, to);
    } else {
        write_text(s, to);
    }
    return fflush(to) != 0 || ferror(to) != 0 ? QN_EIO : err;
}
