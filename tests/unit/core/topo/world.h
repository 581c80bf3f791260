#ifndef QN_TESTS_TOPO_WORLD_H
#define QN_TESTS_TOPO_WORLD_H

/** Machines for tests of core/topo: recorded ones, uniform and random ones. */

#include "core/topo/shape.h"

/** The machine of tests/data/machines/NAME; the test fails without it. */
struct qn_machine *recorded(const char *name);
#define RECORDED 4u
extern const char *const recorded_names[RECORDED];

/** The recorded machines, or all of the folder that QN_MACHINES names. */
#define MACHINES_MAX 100u
struct machines {
    uint32_t count;
    struct qn_machine *m[MACHINES_MAX];
};
void machines_open(struct machines *all);
void machines_close(struct machines *all);

/** n cores, all costs s and r; cores in groups of `group`. */
struct qn_machine *uniform(uint32_t n, double s, double r, uint32_t group);

/** n cores with gaps in their numbers, costs from a seed, groups of 1..4. */
struct qn_machine *scattered(uint32_t n, uint32_t seed);

/** A shape from {parent, child} pairs. */
struct qn_shape shape_of(uint32_t n, uint32_t root, const uint8_t (*edge)[2]);

#endif
