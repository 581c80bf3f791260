/*
 * Two panels, threads and processes: the median time of a barrier over the
 * number of members, both logarithmic. Lines are named at their ends.
 */
#include <math.h>
#include <string.h>

#include "core/base/bits.h"
#include "loadgen/barrier/barrier_table.h"
#include "loadgen/plot/plot.h"

#define PANEL_WIDTH 300.0
#define PANEL_GAP   210.0
#define LEFT        80.0
#define TOP         70.0
#define HEIGHT      460.0
#define LABEL_GAP   13.0
#define NAMES_MAX   24u

struct axes {
    struct qn_scale members, ns;
};

static const char *const kinds[] = {"threads", "processes"};

static double members_of(const json_t *group)
{
    return json_number_value(json_object_get(group, "members"));
}

static bool is_kind(const json_t *group, const char *kind)
{
    return strcmp(json_string_value(json_object_get(group, "kind")), kind) == 0;
}

static const char *name_of(const json_t *subject)
{
    return json_string_value(json_object_get(subject, "subject"));
}

/* ns; 0: it was not measured. */
static double ns_of(const json_t *subject)
{
    return json_number_value(
        json_object_get(json_object_get(subject, "ns"), "median"));
}

static double ns_named(const json_t *group, const char *name)
{
    size_t i;
    json_t *subject;
    json_array_foreach(json_object_get(group, "subjects"), i, subject)
    {
        if (strcmp(name_of(subject), name) == 0) {
            return ns_of(subject);
        }
    }
    return 0;
}

static void find_axes(struct axes *a, const json_t *groups)
{
    double lo = INFINITY, hi = 0, most = 2;
    size_t i, k;
    json_t *group, *subject;
    json_array_foreach(groups, i, group)
    {
        most = QN_MAX(most, members_of(group));
        json_array_foreach(json_object_get(group, "subjects"), k, subject)
        {
            const double ns = ns_of(subject);
            lo = ns > 0 ? QN_MIN(lo, ns) : lo;
            hi = QN_MAX(hi, ns);
        }
    }
    if (hi == 0) {
        lo = hi = 1;
    }
    qn_axis_log(&lo, &hi);
    a->members = (struct qn_scale){
        .log = true, .lo = 1.8, .hi = most * 1.1, .to = PANEL_WIDTH};
    a->ns = (struct qn_scale){
        .log = true, .lo = lo, .hi = hi, .from = TOP + HEIGHT, .to = TOP};
}

static void draw_grid(FILE *to, const struct axes *a, const json_t *groups,
                      const char *kind, double left)
{
    struct qn_ticks t;
    size_t i;
    json_t *group;
    qn_svg_text(to, "strong", left, TOP - 10, kind);
    qn_ticks_log(&t, a->ns.lo, a->ns.hi, 12);
    for (uint32_t k = 0; k < t.count; k++) {
        char label[QN_LABEL_MAX];
        const double y = qn_scale_at(&a->ns, t.at[k]);
        qn_label_time(label, t.at[k]);
        qn_svg_line(to, "grid", left, y, left + PANEL_WIDTH, y);
        qn_svg_text(to, "tick end", left - 6, y + 4, label);
    }
    json_array_foreach(groups, i, group)
    {
        if (is_kind(group, kind)) {
            qn_svg_printf(to, "tick mid",
                          left + qn_scale_at(&a->members, members_of(group)),
                          TOP + HEIGHT + 18, "%.0f", members_of(group));
        }
    }
    qn_svg_text(to, "note mid", left + PANEL_WIDTH / 2, TOP + HEIGHT + 36,
                "members");
}

/* The names of all subjects of a kind. @return their number. */
static uint32_t find_names(const json_t *groups, const char *kind,
                           const char **name)
{
    uint32_t n = 0;
    size_t i, k;
    json_t *group, *subject;
    json_array_foreach(groups, i, group)
    {
        json_array_foreach(json_object_get(group, "subjects"), k, subject)
        {
            bool known = !is_kind(group, kind) || n == NAMES_MAX;
            for (uint32_t j = 0; j < n; j++) {
                known = known || strcmp(name[j], name_of(subject)) == 0;
            }
            if (!known) {
                name[n++] = name_of(subject);
            }
        }
    }
    return n;
}

/* @return the height of its end; NAN: there is nothing to draw. */
static double draw_line(FILE *to, const struct axes *a, const json_t *groups,
                        const char *kind, double left, const char *name,
                        const char *classes)
{
    struct qn_svg_path p;
    double end = NAN;
    size_t i;
    json_t *group;
    qn_svg_path_begin(&p, to, classes);
    json_array_foreach(groups, i, group)
    {
        const double ns = is_kind(group, kind) ? ns_named(group, name) : 0;
        if (ns > 0) {
            const double x = left + qn_scale_at(&a->members, members_of(group));
            end = qn_scale_at(&a->ns, ns);
            qn_svg_path_point(&p, x, end);
        }
    }
    qn_svg_path_end(&p);
    return end;
}

static void draw_panel(FILE *to, const struct axes *a, const json_t *groups,
                       const char *kind, double left)
{
    static const char *const line[] = {"line c0", "line c1", "line c2",
                                       "line c3", "line c4", "line c5"};
    static const char *const text[] = {"c0", "c1", "c2", "c3", "c4", "c5"};
    const char *name[NAMES_MAX];
    double y[NAMES_MAX];
    uint32_t drawn[NAMES_MAX], n = 0;
    const uint32_t names = find_names(groups, kind, name);
    draw_grid(to, a, groups, kind, left);
    for (uint32_t i = 0; i < names; i++) {
        const double end = draw_line(to, a, groups, kind, left, name[i],
                                     line[i % QN_ARRAY_COUNT(line)]);
        if (isfinite(end)) {
            drawn[n] = i;
            y[n++] = end;
        }
    }
    qn_labels_spread(y, n, LABEL_GAP, TOP, TOP + HEIGHT);
    for (uint32_t i = 0; i < n; i++) {
        qn_svg_text(to, text[drawn[i] % QN_ARRAY_COUNT(text)],
                    left + PANEL_WIDTH + 6, y[i] + 4, name[drawn[i]]);
    }
}

void qn_barrier_plot(const json_t *groups, FILE *to)
{
    struct axes a;
    find_axes(&a, groups);
    qn_svg_begin(to, LEFT + 2 * (PANEL_WIDTH + PANEL_GAP), TOP + HEIGHT + 60,
                 "Barriers", "Time of a barrier over the number of members");
    qn_svg_text(to, "title", 20, 30, "Barriers, time of each");
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(kinds); i++) {
        draw_panel(to, &a, groups, kinds[i],
                   LEFT + i * (PANEL_WIDTH + PANEL_GAP));
    }
    qn_svg_end(to);
}
