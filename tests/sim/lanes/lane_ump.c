#include "tests/sim/lanes/lane_world.h"
#include "transports/ump/ump.h"

static const char *const files[] = {"transports/ump/ump", "wait/doorbell.c",
                                    NULL};

static const char *const opening[] = {"qn_ump_accept", "open_lane", NULL};

static const struct unfound unfound[] = {
    {"qn_ump_accept load ", 10, "each pairs with a store that is strong, too"},
    {"open_lane store ", 14, "likewise: two are weak together or not at all"},
    {"qn_doorbell_wake cas 1", 3, "the epoch publishes nothing"},
    {"qn_doorbell_ring cas 1", 3, "the epoch publishes nothing"},
    {NULL, 0, NULL},
};

/* One cell is never used, and of a run that is not complete nothing is free. */
const struct lane_kind lane_kind = {.transport = &qn_ump,
                                    .open_at = qn_ump_open_at,
                                    .full = LANE_CELLS - 1,
                                    .again = LANE_CELLS - 2,
                                    .files = files,
                                    .unfound = unfound,
                                    .levels = 3,
                                    .least = 40,
                                    .opening = opening};
