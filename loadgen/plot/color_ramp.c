#include "core/base/bits.h"
#include "loadgen/plot/plot.h"

#include <math.h>

/*
 * One ramp for all heat maps. Its low end is close to the background and its
 * high end far from it, so the two colour schemes run in opposite directions,
 * and the text on an area changes its colour half way.
 */

static const char *const fill[2][QN_COLOR_RAMP_STEPS] = {
    {"#fff7dc", "#fee9ae", "#fed67c", "#feb24c", "#fd8d3c", "#ef5a2f",
     "#d42a26", "#a90f28", "#6f0321"},
    {"#2a1d1c", "#451b20", "#661c26", "#8e2329", "#b6382c", "#da5d36",
     "#f18a4c", "#fab86f", "#fee6b0"},
};

/* From this step on, text has the colour of the background. */
enum { TURN_LIGHT = 5, TURN_DARK = 6 };

static void write_steps(FILE *to, bool dark)
{
    for (uint32_t i = 0; i < QN_COLOR_RAMP_STEPS; i++) {
        bool pale = dark ? i < TURN_DARK : i >= TURN_LIGHT;
        fprintf(to, ".h%u{fill:%s}text.o%u{fill:%s}\n", i, fill[dark][i], i,
                pale ? "#fff" : "#1c1c1c");
    }
}

void qn_svg_color_ramp(FILE *to)
{
    fputs("<style>\n", to);
    write_steps(to, false);
    fputs("@media screen and (prefers-color-scheme:dark){\n", to);
    write_steps(to, true);
    fputs("}\n</style>\n", to);
}

uint32_t qn_color_ramp_step(double part)
{
    double step = floor(part * QN_COLOR_RAMP_STEPS);
    return !(step > 0) ? 0 : (uint32_t)QN_MIN(step, QN_COLOR_RAMP_STEPS - 1.0);
}
