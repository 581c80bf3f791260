#include "loadgen/bench/channel_table.h"

#include <string.h>

#include "core/base/bits.h"

static bool is(const json_t *o, const char *key, const char *value)
{
    const char *text = json_string_value(json_object_get(o, key));
    return text != NULL && strcmp(text, value) == 0;
}

/* The results of a form of a run; NULL: it did not run. */
static const json_t *form(const json_t *run, const char *name, const char *kind)
{
    size_t i;
    json_t *f;
    json_array_foreach(json_object_get(run, "two_nodes"), i, f)
    {
        if (is(f, "form", name) && is(f, "kind", kind)) {
            return f;
        }
    }
    return NULL;
}

/* The median of "ns" or "ratio"; 0: there is none. */
static double median(const json_t *f, const char *key)
{
    return json_number_value(
        json_object_get(json_object_get(f, key), "median"));
}

static double cpu_ns(const json_t *run, const char *kind)
{
    size_t i;
    json_t *pairs;
    json_array_foreach(json_object_get(run, "blocking"), i, pairs)
    {
        if (json_integer_value(json_object_get(pairs, "endpoints")) == 2 &&
            is(pairs, "kind", kind)) {
            return json_number_value(
                json_object_get(pairs, "cpu_ns_per_message"));
        }
    }
    return 0;
}

/* A number, or "-" if there is none. */
static void cell(FILE *to, const char *format, double value)
{
    char text[32] = "-";
    if (value > 0) {
        (void)snprintf(text, sizeof text, format, value);
    }
    fprintf(to, " %8s", text);
}

struct row {
    const char *name, *kind;
    double trip_ns, trip_ratio;
    double short_ns, short_ratio;
    double long_ns, long_ratio;
    double cpu_ns, bytes;
};

static void print_row(FILE *to, const struct row *r)
{
    fprintf(to, "%-12s %-9s", r->name, r->kind);
    cell(to, "%.0f", r->trip_ns);
    cell(to, "%.2f", r->trip_ratio);
    cell(to, "%.1f", r->short_ns > 0 ? 1e3 / r->short_ns : 0);
    cell(to, "%.2f", r->short_ratio);
    cell(to, "%.2f", r->long_ns > 0 ? 4096 / r->long_ns : 0);
    cell(to, "%.2f", r->long_ratio);
    cell(to, "%.0f", r->cpu_ns);
    cell(to, "%.0f", r->bytes / 1024);
    fputc('\n', to);
}

/* The best of what the raw forms reached in any run: the limit. */
static void print_raw(FILE *to, const json_t *runs, const char *kind)
{
    struct row r = {.name = "raw", .kind = kind};
    size_t i;
    json_t *run;
    json_array_foreach(runs, i, run)
    {
        double trip = median(form(run, "raw_round_trip", kind), "ns");
        double stream = median(form(run, "raw_stream", kind), "ns");
        bool first = r.trip_ns <= 0;
        if (trip <= 0) {
            continue;
        }
        r.trip_ns = first ? trip : QN_MIN(r.trip_ns, trip);
        r.short_ns = first ? stream : QN_MIN(r.short_ns, stream);
    }
    print_row(to, &r);
}

static void print_run(FILE *to, const json_t *run, const char *kind)
{
    const json_t *trip = form(run, "round_trip", kind);
    const json_t *cells = form(run, "stream_cell", kind);
    const json_t *longer = form(run, "stream_4k", kind);
    const struct row r = {
        .name = json_string_value(json_object_get(run, "transport")),
        .kind = kind,
        .trip_ns = median(trip, "ns"),
        .trip_ratio = median(trip, "ratio"),
        .short_ns = median(cells, "ns"),
        .short_ratio = median(cells, "ratio"),
        .long_ns = median(longer, "ns"),
        .long_ratio = median(longer, "ratio"),
        .cpu_ns = cpu_ns(run, kind),
        .bytes = json_number_value(json_object_get(run, "bytes_of_two_nodes"))};
    if (trip != NULL || r.cpu_ns > 0) {
        print_row(to, &r);
    }
}

void qn_channel_table(const json_t *runs, FILE *to)
{
    static const char *const kinds[] = {"threads", "processes"};
    fprintf(to,
            "\n%-22s %8s %8s %8s %8s %8s %8s %8s %8s\n"
            "%-22s %8s %8s %8s %8s %8s %8s %8s %8s\n",
            "", "trip", "of raw", "56 B", "of raw", "4 KiB", "of raw", "CPU",
            "memory", "", "ns", "", "M/s", "", "GB/s", "", "ns", "KiB");
    for (size_t k = 0; k < QN_ARRAY_COUNT(kinds); k++) {
        size_t i;
        json_t *run;
        print_raw(to, runs, kinds[k]);
        json_array_foreach(runs, i, run)
        {
            print_run(to, run, kinds[k]);
        }
    }
}
