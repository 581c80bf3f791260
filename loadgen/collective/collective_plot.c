/*
 * One panel for threads and one for processes, with the same axes: nodes on a
 * logarithmic axis of base 2, times on a logarithmic one. Lines are named at
 * their ends, their names moved apart.
 */
#include <math.h>
#include <string.h>

#include "core/base/bits.h"
#include "loadgen/collective/collective_report.h"
#include "loadgen/plot/plot.h"

#define PANEL_WIDTH 300.0
#define PANEL_GAP   150.0
#define LEFT        70.0
#define TOP         70.0
#define HEIGHT      340.0
#define LABEL_GAP   14.0

static const char *const kinds[] = {"threads", "processes"};

struct axes {
    struct qn_scale nodes, ns;
};

static bool is_kind(const json_t *group, const char *kind)
{
    return strcmp(json_string_value(json_object_get(group, "kind")), kind) == 0;
}

static double nodes_of(const json_t *group)
{
    return (double)json_integer_value(json_object_get(group, "nodes"));
}

/* The median of an operation of a group; 0: it was not run. */
static double median_of(const json_t *group, const char *operation)
{
    size_t i;
    json_t *o;
    json_array_foreach(json_object_get(group, "operations"), i, o)
    {
        const char *name = json_string_value(json_object_get(o, "operation"));
        if (strcmp(name, operation) == 0) {
            return json_number_value(
                json_object_get(json_object_get(o, "ns"), "median"));
        }
    }
    return 0;
}

static void find_axes(struct axes *a, const json_t *groups)
{
    double lo = INFINITY, hi = 0, most = 2;
    size_t i;
    json_t *g;
    const struct qn_collective_form *f;
    json_array_foreach(groups, i, g)
    {
        most = QN_MAX(most, nodes_of(g));
        for (uint32_t k = 0; (f = qn_collective_form(k)) != NULL; k++) {
            const double ns = median_of(g, f->name);
            lo = ns > 0 ? QN_MIN(lo, ns) : lo;
            hi = QN_MAX(hi, ns);
        }
    }
    if (hi == 0) {
        lo = hi = 1;
    }
    qn_axis_log(&lo, &hi);
    a->nodes = (struct qn_scale){
        .log = true, .lo = 1.8, .hi = most * 1.1, .to = PANEL_WIDTH};
    a->ns = (struct qn_scale){
        .log = true, .lo = lo, .hi = hi, .from = TOP + HEIGHT, .to = TOP};
}

static void draw_grid(FILE *to, const struct axes *a, const json_t *groups,
                      const char *kind, double left)
{
    struct qn_ticks t;
    size_t i;
    json_t *g;
    qn_svg_text(to, "strong", left, TOP - 10, kind);
    qn_ticks_log(&t, a->ns.lo, a->ns.hi, 12);
    for (uint32_t k = 0; k < t.count; k++) {
        char label[QN_LABEL_MAX];
        const double y = qn_scale_at(&a->ns, t.at[k]);
        qn_label_time(label, t.at[k]);
        qn_svg_line(to, "grid", left, y, left + PANEL_WIDTH, y);
        qn_svg_text(to, "tick end", left - 6, y + 4, label);
    }
    json_array_foreach(groups, i, g)
    {
        if (is_kind(g, kind)) {
            qn_svg_printf(to, "tick mid",
                          left + qn_scale_at(&a->nodes, nodes_of(g)),
                          TOP + HEIGHT + 18, "%.0f", nodes_of(g));
        }
    }
    qn_svg_text(to, "note mid", left + PANEL_WIDTH / 2, TOP + HEIGHT + 36,
                "nodes");
}

/* @return the height of its end; NAN: there is nothing to draw. */
static double draw_line(FILE *to, const struct axes *a, const json_t *groups,
                        const char *kind, double left, uint32_t form)
{
    static const char *const line[] = {"line c0", "line c1", "line c2",
                                       "line c3", "line c4", "line c5"};
    struct qn_svg_path p;
    double end = NAN;
    size_t i;
    json_t *g;
    qn_svg_path_begin(&p, to, line[form % QN_ARRAY_COUNT(line)]);
    json_array_foreach(groups, i, g)
    {
        const double ns = median_of(g, qn_collective_form(form)->name);
        if (is_kind(g, kind) && ns > 0) {
            end = qn_scale_at(&a->ns, ns);
            qn_svg_path_point(&p, left + qn_scale_at(&a->nodes, nodes_of(g)),
                              end);
        }
    }
    qn_svg_path_end(&p);
    return end;
}

static void draw_panel(FILE *to, const struct axes *a, const json_t *groups,
                       const char *kind, double left)
{
    static const char *const text[] = {"c0", "c1", "c2", "c3", "c4", "c5"};
    double y[QN_COLLECTIVE_FORMS_MAX];
    uint32_t form[QN_COLLECTIVE_FORMS_MAX], n = 0;
    draw_grid(to, a, groups, kind, left);
    for (uint32_t k = 0; qn_collective_form(k) != NULL; k++) {
        const double end = draw_line(to, a, groups, kind, left, k);
        if (isfinite(end)) {
            form[n] = k;
            y[n++] = end;
        }
    }
    qn_labels_spread(y, n, LABEL_GAP, TOP, TOP + HEIGHT);
    for (uint32_t k = 0; k < n; k++) {
        qn_svg_text(to, text[form[k] % QN_ARRAY_COUNT(text)],
                    left + PANEL_WIDTH + 6, y[k] + 4,
                    qn_collective_form(form[k])->name);
    }
}

void qn_collective_plot(const json_t *groups, FILE *to)
{
    struct axes a;
    find_axes(&a, groups);
    qn_svg_begin(to, LEFT + 2 * (PANEL_WIDTH + PANEL_GAP), TOP + HEIGHT + 60,
                 "Collective operations",
                 "Time of each operation over the number of nodes");
    qn_svg_text(to, "title", 20, 30, "Collective operations, time of each");
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(kinds); i++) {
        draw_panel(to, &a, groups, kinds[i],
                   LEFT + i * (PANEL_WIDTH + PANEL_GAP));
    }
    qn_svg_end(to);
}
