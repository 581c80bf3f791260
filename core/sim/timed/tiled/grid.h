#ifndef QN_SIM_TIMED_TILED_GRID_H
#define QN_SIM_TIMED_TILED_GRID_H

/** Cores on a grid of tiles. Core c is on tile c / cores_per_tile; tiles are
 *  numbered along the rows; packets go along x, then along y. Pure. */

#include <stdint.h>

struct qn_grid {
    uint32_t columns, rows, cores_per_tile;
};

static inline uint32_t qn_grid_cores(const struct qn_grid *g)
{
    return g->columns * g->rows * g->cores_per_tile;
}

static inline uint32_t qn_grid_x(const struct qn_grid *g, uint32_t core)
{
    return core / g->cores_per_tile % g->columns;
}

static inline uint32_t qn_grid_y(const struct qn_grid *g, uint32_t core)
{
    return core / g->cores_per_tile / g->columns;
}

/** Links between the tile of a core and tile (x, y). */
static inline uint32_t qn_grid_hops_to(const struct qn_grid *g, uint32_t core,
                                       uint32_t x, uint32_t y)
{
    uint32_t cx = qn_grid_x(g, core);
    uint32_t cy = qn_grid_y(g, core);
    return (cx > x ? cx - x : x - cx) + (cy > y ? cy - y : y - cy);
}

/** Links between two cores; 0 on one tile. */
static inline uint32_t qn_grid_hops(const struct qn_grid *g, uint32_t a,
                                    uint32_t b)
{
    return qn_grid_hops_to(g, a, qn_grid_x(g, b), qn_grid_y(g, b));
}

#endif
