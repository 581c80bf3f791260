#include "tests/unit/core/topo/world.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/err.h"
#include "tests/support/test.h"

const char *const recorded_names[RECORDED] = {"intel_xeon_e5_v2_2x10",
                                              "syn_8x4x1", "amd64_sparse_10",
                                              "threadripper_1950x_1x16"};

struct qn_machine *recorded(const char *name)
{
    char path[512];
    struct qn_parse_error f = {""};
    struct qn_machine *m = NULL;
    snprintf(path, sizeof path, QN_DATA "/%s", name);
    cr_assert_eq(qn_machine_load(&m, path, &f), QN_OK, "%s", f.text);
    return m;
}

static void open_folder(struct machines *all, const char *folder)
{
    DIR *d = opendir(folder);
    cr_assert_not_null(d, "%s: no folder", folder);
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        char path[4096];
        struct qn_parse_error f;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.' && all->count < MACHINES_MAX &&
            qn_machine_load(&all->m[all->count], path, &f) == QN_OK) {
            all->count++;
        }
    }
    closedir(d);
}

void machines_open(struct machines *all)
{
    const char *folder = getenv("QN_MACHINES");
    all->count = 0;
    if (folder != NULL) {
        open_folder(all, folder);
        return;
    }
    for (uint32_t i = 0; i < RECORDED; i++) {
        all->m[all->count++] = recorded(recorded_names[i]);
    }
}

void machines_close(struct machines *all)
{
    for (uint32_t i = 0; i < all->count; i++) {
        qn_machine_destroy(all->m[i]);
    }
}

static void set(struct qn_machine *m, uint32_t u, uint32_t v, double s,
                double r)
{
    m->send[(size_t)u * m->n + v] = u == v ? 0 : s;
    m->receive[(size_t)u * m->n + v] = u == v ? 0 : r;
}

struct qn_machine *uniform(uint32_t n, double s, double r, uint32_t group)
{
    struct qn_machine *m = NULL;
    cr_assert_eq(qn_machine_create(&m, n), QN_OK);
    for (uint32_t u = 0; u < n; u++) {
        m->core[u].node = m->core[u].cache = m->core[u].socket = u / group;
        for (uint32_t v = 0; v < n; v++) {
            set(m, u, v, s, r);
        }
    }
    return m;
}

struct qn_machine *scattered(uint32_t n, uint32_t seed)
{
    uint32_t x = seed * 2654435761U + 12345, group = 1 + seed % 4;
    struct qn_machine *m = uniform(n, 1, 1, group);
    for (uint32_t u = 0; u < n; u++) {
        m->core[u].os = 3 * u + (u % 2);
        for (uint32_t v = 0; v < n; v++) {
            x = x * 1664525U + 1013904223U;
            double far = u / group == v / group ? 1 : 4;
            set(m, u, v, far * (10 + (x >> 8) % 64),
                far * (20 + (x >> 16) % 200));
        }
    }
    return m;
}

struct qn_shape shape_of(uint32_t n, uint32_t root, const uint8_t (*edge)[2])
{
    struct qn_edges e;
    struct qn_shape s;
    qn_edges_init(&e, n);
    for (uint32_t i = 0; i + 1 < n; i++) {
        qn_edges_add(&e, edge[i][0], edge[i][1]);
    }
    cr_assert_eq(qn_shape_from_edges(&s, &e, root), QN_OK);
    return s;
}
