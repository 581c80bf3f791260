/*
 * A panel for each operation of a group, titled by both. The speed is that of
 * one member: its bytes per time.
 */
#include "loadgen/large/large_plot.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/plot/plot.h"

static const char beside[] = "memcpy";

static void label_bytes(char *label, double value)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    uint64_t bytes = (uint64_t)value;
    uint32_t unit = 0;
    while (unit < 3 && bytes >= 1024 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    (void)snprintf(label, QN_LABEL_MAX, "%" PRIu64 " %s", bytes, units[unit]);
}

/* NULL: no memory. */
static struct qn_panel *begin(struct qn_large_plot *p, const char *title)
{
    const size_t n = p->count + 1;
    struct qn_panel *panel = realloc(p->panel, n * sizeof *panel);
    p->panel = panel != NULL ? panel : p->panel;
    char(*titles)[64] = realloc(p->title, n * sizeof *titles);
    p->title = titles != NULL ? titles : p->title;
    if (panel == NULL || titles == NULL) {
        return NULL;
    }
    (void)snprintf(titles[p->count], sizeof titles[0], "%s", title);
    panel[p->count] = (struct qn_panel){
        .x = {.label = label_bytes, .log = true, .at_points = true},
        .y = {.name = "MB/s of each member",
              .label = qn_label_count,
              .log = true}};
    return &panel[p->count++];
}

static struct qn_panel *panel_of(struct qn_large_plot *p, const char *title)
{
    for (uint32_t i = 0; i < p->count; i++) {
        if (strcmp(p->title[i], title) == 0) {
            return &p->panel[i];
        }
    }
    return begin(p, title);
}

static bool has_point(const struct qn_panel *p, const char *name, double x)
{
    for (uint32_t c = 0; c < p->curves; c++) {
        const struct qn_panel_curve *curve = &p->curve[c];
        for (uint32_t i = 0; i < curve->points; i++) {
            if (strcmp(curve->name, name) == 0 && !(curve->x[i] < x) &&
                !(curve->x[i] > x)) {
                return true;
            }
        }
    }
    return false;
}

void qn_large_plot_add(struct qn_large_plot *p, const char *group,
                       const char *name, uint64_t bytes, double ns)
{
    char title[64];
    const char *rest = strchr(name, '/');
    if (rest == NULL) {
        p->memcpy_ns = ns;
        return;
    }
    (void)snprintf(title, sizeof title, "%.*s, %s", (int)(rest - name), name,
                   group);
    struct qn_panel *panel = panel_of(p, title);
    if (panel == NULL) {
        return;
    }
    const double x = (double)bytes;
    if (p->memcpy_ns > 0 && !has_point(panel, beside, x)) {
        qn_panel_add(panel, beside, x, x / p->memcpy_ns * 1e3);
    }
    qn_panel_add(panel, rest + 1, x, x / ns * 1e3);
}

int qn_large_plot_write(const struct qn_large_plot *p, const char *title,
                        const char *path, const char *program)
{
    const struct qn_panels s = {
        .title = title,
        .description = "Speed of large collectives over their size: a panel "
                       "for each operation of each group, a curve for each "
                       "variant",
        .panel = p->panel,
        .count = p->count,
        .columns = 2,
        .names = 180,
        .height = 400};
    for (uint32_t i = 0; i < p->count; i++) {
        p->panel[i].title = p->title[i]; /* which may have moved before */
    }
    return qn_panels_write(&s, path, program);
}

void qn_large_plot_free(struct qn_large_plot *p)
{
    free(p->panel);
    free(p->title);
    *p = (struct qn_large_plot){.panel = NULL};
}
