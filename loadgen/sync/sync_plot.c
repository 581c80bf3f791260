/*
 * Two panels side by side over the number of threads: rates, and the latency
 * that one operation of a thousand exceeds.
 */
#include "loadgen/sync/sync_plot.h"

#include <stdio.h>

#include "core/base/bits.h"
#include "loadgen/plot/panel.h"
#include "loadgen/plot/plot.h"

/* What a panel shows of a subject. */
static const struct {
    const char *title, *group, *figure;
    void (*label)(char *label, double value);
} shown[] = {
    {"operations per second", "per_second", "median", qn_label_count},
    {"p99.9 of an operation", "ns", "p999", qn_label_time},
};

static void add_run(struct qn_panel *p, uint32_t which, const json_t *run)
{
    const double threads = json_number_value(json_object_get(run, "threads"));
    size_t i;
    json_t *subject;
    json_array_foreach(json_object_get(run, "subjects"), i, subject)
    {
        const json_t *group = json_object_get(subject, shown[which].group);
        qn_panel_add(
            p, json_string_value(json_object_get(subject, "subject")), threads,
            json_number_value(json_object_get(group, shown[which].figure)));
    }
}

int qn_sync_plot(const json_t *report, const char *path, const char *program)
{
    static struct qn_panel panel[QN_ARRAY_COUNT(shown)]; /* for its size */
    const char *machine = json_string_value(json_object_get(report, "machine"));
    char title[300];
    size_t i;
    json_t *run;
    (void)snprintf(title, sizeof title, "%s%s%s", program,
                   machine != NULL ? ", virtual time, " : "",
                   machine != NULL ? machine : "");
    for (uint32_t k = 0; k < QN_ARRAY_COUNT(shown); k++) {
        panel[k] =
            (struct qn_panel){.title = shown[k].title,
                              .x = {.name = "threads",
                                    .label = qn_label_count,
                                    .log = true,
                                    .at_points = true},
                              .y = {.label = shown[k].label, .log = true}};
        json_array_foreach(json_object_get(report, "runs"), i, run)
        {
            add_run(&panel[k], k, run);
        }
    }
    const struct qn_panels s = {
        .title = title,
        .description = "Rate and latency of locks, delegation or concurrent "
                       "objects over the number of threads",
        .panel = panel,
        .count = QN_ARRAY_COUNT(shown),
        .columns = 2,
        .names = 190,
        .height = 550};
    return qn_panels_write(&s, path, program);
}
