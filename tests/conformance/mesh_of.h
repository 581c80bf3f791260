#ifndef QN_TESTS_CONFORMANCE_MESH_OF_H
#define QN_TESTS_CONFORMANCE_MESH_OF_H

/** Meshes of each transport, between threads or processes. */

#include "loadgen/bench/mesh.h"
#include "tests/conformance/pair.h"

/** A mesh of that transport; a device is strict. Processes survive a death
 *  among them, since what they do then is tested.
 *  @return false: it does not join processes. */
static inline bool make_mesh(struct qn_mesh *m, const struct qn_transport *t,
                             uint32_t nodes, uint32_t cells, bool processes)
{
    const struct qn_mesh_opts o = {.transport = t,
                                   .nodes = nodes,
                                   .cells = cells,
                                   .processes = processes,
                                   .survive = true,
                                   .strict = true,
                                   .seed = nodes};
    if (processes && !joins_processes(t)) {
        return false;
    }
    cr_assert_eq(qn_mesh_create(m, &o), QN_OK, "%s, %u nodes", t->name, nodes);
    return true;
}

#endif
