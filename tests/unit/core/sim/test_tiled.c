/*
 * Descriptions of tiled machines: those that come with the program, and what is
 * refused, with the line that has to be corrected.
 */
#include <stdlib.h>

#include "core/base/bits.h"
#include "core/machine/csv.h"
#include "core/machine/machine.h"
#include "tests/unit/core/sim/tiled_world.h"

static char text[1 << 16];

static void read_text(const char *name)
{
    char path[256];
    char *bytes;
    size_t len;
    (void)snprintf(path, sizeof path, "%s/%s.json", QN_DATA, name);
    cr_assert_eq(qn_file_read(path, sizeof text - 1, &bytes, &len, NULL),
                 QN_OK);
    memcpy(text, bytes, len);
    text[len] = '\0';
    free(bytes);
}

/* Replace the first `from` in the text. */
static void replace(const char *from, const char *to)
{
    char *at = strstr(text, from);
    cr_assert_neq(at, NULL, "%s", from);
    size_t old = strlen(from), new = strlen(to);
    memmove(at + new, at + old, strlen(at + old) + 1);
    memcpy(at, to, new);
}

/* @return what the reader says of the text. */
static const char *said(void)
{
    static struct qn_parse_error e;
    struct qn_tiled m;
    memset(&e, 0, sizeof e);
    cr_assert_eq(qn_tiled_parse(&m, "f", text, strlen(text), &e), QN_EINVAL);
    return e.text;
}

static void check_said(const char *name, const char *from, const char *to,
                       const char *want)
{
    read_text(name);
    replace(from, to);
    cr_assert_str_eq(said(), want, "%s", said());
}

Test(tiled, the_described_machines_are_read)
{
    static const struct {
        const char *name;
        enum qn_tiled_kind kind;
        uint32_t cores;
        double ghz;
    } all[] = {{"scc", QN_TILED_SCC, 48, 0.533},
               {"tilegx_8036", QN_TILED_TILEGX, 36, 1.2},
               {"tilegx_8072", QN_TILED_TILEGX, 72, 1.0}};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(all); i++) {
        load_machine(all[i].name);
        cr_assert_str_eq(world.m.name, all[i].name);
        cr_assert_eq(world.m.kind, all[i].kind);
        cr_assert_eq(qn_grid_cores(&world.m.grid), all[i].cores);
        cr_assert_eq(world.m.clock_ghz, all[i].ghz);
    }
}

Test(tiled, a_file_says_whether_it_is_one)
{
    cr_assert(qn_tiled_is(QN_DATA "/scc.json"));
    cr_assert(!qn_tiled_is(QN_DATA "/README.md"));
    cr_assert(!qn_tiled_is(QN_DATA "/no_such_file"));
}

Test(tiled, a_parameter_in_cycles_depends_on_the_clock_one_in_ns_does_not)
{
    load_machine("tilegx_8036");
    cr_assert_eq(qn_tiled_ps(&world.m, QN_TILEGX_FENCE), 33333);
    load_machine("scc");
    cr_assert_eq(qn_tiled_ps(&world.m, QN_SCC_HOP), 5000);
}

Test(tiled, the_table_names_each_parameter_and_its_source)
{
    char *table = NULL;
    size_t bytes = 0;
    load_machine("tilegx_8036");
    FILE *f = open_memstream(&table, &bytes);
    cr_assert_neq(f, NULL);
    qn_tiled_print(&world.m, f);
    (void)fclose(f);
    cr_assert_neq(strstr(table, "tilegx_8036: tilegx, 6 x 6 tiles"), NULL);
    for (uint32_t i = 0; i < world.m.parameters; i++) {
        const char *at = strstr(table, world.m.parameter[i].note);
        cr_assert_neq(at, NULL, "%s", world.m.parameter[i].name);
    }
    cr_assert_neq(strstr(table, "fence              40 cycles   fitted"), NULL,
                  "%s", table);
    free(table);
}

Test(tiled, routes_are_counted_on_the_grid)
{
    load_machine("scc");
    const struct qn_grid *g = &world.m.grid;
    cr_assert_eq(qn_grid_hops(g, 0, 1), 0);
    cr_assert_eq(qn_grid_hops(g, 0, 47), 8);
    cr_assert_eq(qn_grid_hops(g, 47, 0), 8);
    cr_assert_eq(qn_grid_hops(g, 11, 12), 6); /* the next row begins */
}

/* ---- what is refused ---- */

Test(tiled, a_wrong_head_is_refused_with_its_line)
{
    check_said("scc", "quoin-tiled", "quoin-table",
               "f:1: format: this describes no such machine; it must say "
               "\"format\": \"quoin-tiled\"");
    check_said("scc", "\"version\": 1", "\"version\": 2",
               "f:1: version: only version 1 is known");
    check_said("scc", "\"scc\", \"name\"", "\"ssc\", \"name\"",
               "f:1: kind: write \"scc\" or \"tilegx\"");
    check_said("scc", "\"columns\": 6", "\"columns\": 0",
               "f:2: columns: write a whole number from 1 to 1024");
    check_said("scc", "\"columns\": 6", "\"columns\": 600",
               "f:2: columns: at most 1024 cores; write a smaller grid");
    check_said("scc", "\"clock_ghz\": 0.533", "\"clock_ghz\": 0",
               "f:2: clock_ghz: write cycles per ns, above 0");
    check_said("scc", "\"rows\"", "\"rouws\": 1, \"rows\"",
               "f:2: rouws: unknown member; remove it or correct it");
}

Test(tiled, a_wrong_parameter_is_refused_with_its_line)
{
    check_said("scc", "\"hop\": {\"value\": 5", "\"hop\": {\"value\": 0",
               "f:4: hop: write its value, above 0 and up to 1e9");
    check_said("scc", "\"port\": {\"value\": 12.5", "\"port\": {\"value\": -1",
               "f:20: port: write its value as a number from 0 to 1e9");
    check_said("scc", "\"unit\": \"ns\"", "\"unit\": \"us\"",
               "f:4: hop: its unit must be \"ns\"");
    check_said("scc", "documented", "guessed",
               "f:4: hop: its source must be \"documented\", \"fitted\" or "
               "\"assumed\"");
    check_said("scc", "\"note\"", "\"why\"",
               "f:4: hop: a parameter has value, unit, source and note, and "
               "nothing else");
    check_said("scc", "\"note\"", "\"why\": \"\", \"note\"",
               "f:4: hop: a parameter has value, unit, source and note, and "
               "nothing else");
    check_said("scc", "\"hop\"", "\"hope\"",
               "f:3: hop: this parameter is missing; each of its kind must be "
               "there");
    check_said("tilegx_8036", "\"l1\": {", "\"l3\": {\"value\": 1}, \"l1\": {",
               "f:4: l3: this kind has no such parameter; remove it");
}

Test(tiled, more_than_four_fitted_parameters_are_refused)
{
    check_said("tilegx_8036", "documented", "fitted",
               "f:3: parameters: at most four may be fitted");
}

Test(tiled, a_cut_file_is_refused)
{
    read_text("scc");
    text[strlen(text) / 2] = '\0';
    cr_assert_neq(strstr(said(), "; correct it"), NULL, "%s", said());
}

Test(tiled, nodes_need_cores_of_their_own)
{
    struct qn_prices *p;
    load_machine("scc");
    cr_assert_eq(qn_tiled_prices(&p, &world.m, world.core, 49), QN_EINVAL);
    cr_assert_eq(qn_tiled_prices(&p, &world.m, world.core, 0), QN_EINVAL);
    world.core[1] = 0;
    cr_assert_eq(qn_tiled_prices(&p, &world.m, world.core, 2), QN_EINVAL);
    world.core[1] = 48;
    cr_assert_eq(qn_tiled_prices(&p, &world.m, world.core, 2), QN_EINVAL);
    world.core[1] = 47;
    cr_assert_eq(qn_tiled_prices(&p, &world.m, world.core, 2), QN_OK);
    qn_prices_destroy(p);
}

/* ---- costs for plans ---- */

/* Mean distance to a home: 5 hops from a corner, 3 from the middle. */
Test(tiled, costs_are_those_of_a_line_through_a_mean_home)
{
    struct qn_machine *m;
    load_machine("tilegx_8036");
    cr_assert_eq(qn_tiled_machine(&m, &world.m), QN_OK);
    cr_assert_eq(m->n, 36);
    cr_assert_eq(qn_machine_check(m), QN_OK);
    cr_assert_eq(m->facts.clock_ghz, 1.2);
    /* Of 36 homes one is the own core: no trip. */
    double ack = (35 * 32 + 11 + 2 * 5 * 36) / 36.0;
    double drop = 12 + 2 * 3, trip = (35 * 32 + 11 + 2 * 3 * 36) / 36.0;
    cr_assert_float_eq(qn_send_cost(m, 0, 14), 1 + ack + drop, 1e-9, "%f",
                       qn_send_cost(m, 0, 14));
    cr_assert_float_eq(qn_receive_cost(m, 0, 14), (ack + drop) / 2 + trip, 1e-9,
                       "%f", qn_receive_cost(m, 0, 14));
    cr_assert(m->facts.queued_factor > 0.4 && m->facts.queued_factor < 0.7,
              "%f", m->facts.queued_factor);
    qn_machine_destroy(m);
}

Test(tiled, a_machine_without_coherence_has_no_costs)
{
    struct qn_machine *m;
    load_machine("scc");
    cr_assert_eq(qn_tiled_machine(&m, &world.m), QN_EINVAL);
}
