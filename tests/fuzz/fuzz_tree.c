/*
 * Fuzzing topologies: CSV trees over six cores with gaps in their numbers.
 * What is accepted must be a spanning tree and read back as it was written;
 * what is refused must say so in one line. The same bytes are also read as a
 * ring's map, which must be a permutation if it is accepted.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/plan/tree_io.h"
#include "tests/fuzz/fuzz.h"

#define CORES 6u

static struct qn_machine *machine;
static struct qn_diamond_ring *ring;

static void must(bool ok)
{
    if (!ok) {
        abort();
    }
}

static void at_end(void)
{
    qn_machine_destroy(machine);
    qn_diamond_ring_destroy(ring);
}

static void prepare(void)
{
    const struct qn_diamond_ring_opts o = {.n = CORES, .k = 2};
    must(qn_machine_create(&machine, CORES) == QN_OK);
    must(qn_diamond_ring_create(&ring, &o) == QN_OK);
    for (uint32_t i = 0; i < CORES; i++) {
        machine->core[i].os = 2 * i;
    }
    atexit(at_end);
}

static void must_read_back(const struct qn_shape *s)
{
    struct qn_shape again;
    char *text = NULL;
    size_t len = 0;
    must(qn_shape_check(s) == QN_OK);
    FILE *f = open_memstream(&text, &len);
    must(f != NULL && qn_tree_write_csv(machine, s, f) == QN_OK);
    must(fclose(f) == 0);
    must(qn_tree_parse_csv(&again, machine, "f", text, len, NULL) == QN_OK);
    must(qn_shape_equal(s, &again));
    free(text);
}

static void must_be_a_permutation(void)
{
    uint32_t seen = 0;
    for (uint32_t i = 0; i < CORES; i++) {
        seen |= 1U << ring->core[i];
    }
    must(seen == (1U << CORES) - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (machine == NULL) {
        prepare();
    }
    char *text = malloc(n > 0 ? n : 1);
    must(text != NULL);
    if (n > 0) {
        memcpy(text, data, n);
    }
    struct qn_shape s;
    struct qn_parse_error f = {""};
    if (qn_tree_parse_csv(&s, machine, "f", text, n, &f) == QN_OK) {
        must_read_back(&s);
    } else {
        must(f.text[0] == 'f' && strchr(f.text, '\n') == NULL);
    }
    (void)qn_diamond_ring_parse_map(ring, machine, "f", text, n, &f);
    must_be_a_permutation();
    free(text);
    return 0;
}
