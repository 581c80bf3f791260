#include "loadgen/collective/kinds_plot.h"

#include <string.h>

#include "core/base/bits.h"
#include "loadgen/plot/panel.h"
#include "loadgen/plot/plot.h"

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static double number_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static void add_groups(struct qn_panel *p, const struct qn_kinds_plot *s,
                       const json_t *groups)
{
    size_t i, k;
    json_t *group, *row;
    json_array_foreach(groups, i, group)
    {
        if (strcmp(text_of(group, "kind"), p->title) != 0) {
            continue;
        }
        json_array_foreach(json_object_get(group, s->rows), k, row)
        {
            qn_panel_add(p, text_of(row, s->row), number_of(group, s->members),
                         number_of(json_object_get(row, "ns"), "median"));
        }
    }
}

int qn_kinds_plot(const struct qn_kinds_plot *s, const json_t *groups,
                  const char *path, const char *program)
{
    static const char *const kinds[] = {"threads", "processes"};
    static struct qn_panel panel[QN_ARRAY_COUNT(kinds)]; /* for its size */
    const struct qn_panels all = {.title = s->title,
                                  .description = s->description,
                                  .panel = panel,
                                  .count = QN_ARRAY_COUNT(kinds),
                                  .columns = 2,
                                  .names = s->names,
                                  .height = s->height,
                                  .same_axes = true};
    for (uint32_t k = 0; k < QN_ARRAY_COUNT(kinds); k++) {
        panel[k] =
            (struct qn_panel){.title = kinds[k],
                              .x = {.name = s->members,
                                    .label = qn_label_count,
                                    .log = true,
                                    .at_points = true},
                              .y = {.label = qn_label_time, .log = true}};
        add_groups(&panel[k], s, groups);
    }
    return qn_panels_write(&all, path, program);
}
