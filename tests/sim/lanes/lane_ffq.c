/* Either form of ffq: CMakeLists.txt says which one. */
#include "tests/sim/lanes/lane_world.h"
#include "transports/ffq/ffq.h"

static const char *const files[] = {"transports/ffq/ffq", NULL};

static const char *const opening[] = {"accept", "open_lane", NULL};

static const struct unfound unfound[] = {
    {"accept load ", 10, "each pairs with a store that is strong, too"},
    {"open_lane store ", 12, "likewise: two are weak together or not at all"},
    {NULL, 0, NULL},
};

const struct lane_kind lane_kind = {.transport = &LANE_FFQ,
                                    .open_at = LANE_FFQ_OPEN_AT,
                                    .full = LANE_CELLS,
                                    .again = LANE_CELLS,
                                    .eager = true,
                                    .files = files,
                                    .unfound = unfound,
                                    .levels = 2,
                                    .least = 20,
                                    .opening = opening};
