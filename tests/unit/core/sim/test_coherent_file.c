/* prices.json of coherent machines: what is read, and what is refused. */
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/machine/csv.h"
#include "core/sim/timed/coherent_file.h"
#include "tests/support/test.h"

#define FOLDER QN_MACHINES "/westmere_8x10x2"

static char *text(void)
{
    char *bytes;
    size_t len;
    cr_assert_eq(
        qn_file_read(FOLDER "/prices.json", 1 << 16, &bytes, &len, NULL),
        QN_OK);
    char *copy = calloc(1, len + 1);
    cr_assert_not_null(copy);
    memcpy(copy, bytes, len);
    free(bytes);
    return copy;
}

/* Every `from` becomes `to`, which is not longer. */
static void change(char *in, const char *from, const char *to)
{
    size_t n = strlen(to);
    char *at;
    while ((at = strstr(in, from)) != NULL) {
        memcpy(at, to, n);
        memmove(at + n, at + strlen(from), strlen(at + strlen(from)) + 1);
    }
}

static int parse(const char *in, struct qn_parse_error *e)
{
    struct qn_coherent_file f;
    return qn_coherent_file_parse(&f, "p", in, strlen(in), e);
}

Test(coherent_file, machines_that_ship_are_read)
{
    static const char *const folder[] = {FOLDER, QN_MACHINES
                                         "/by_formula/opteron_6176_4x12"};
    static const uint32_t to_be_fitted[] = {2, 2};
    for (uint32_t i = 0; i < 2; i++) {
        struct qn_coherent_file f;
        struct qn_parse_error e = {{0}};
        cr_assert_eq(qn_coherent_file_load(&f, folder[i], &e), QN_OK, "%s",
                     e.text);
        struct qn_coherent_opts o = qn_coherent_file_opts(&f);
        cr_assert_eq(o.clock_ghz, f.clock_ghz);
        cr_assert(o.prefetch > 0 && o.memory_cycles > 0 && o.shared_store > 0);
        uint32_t fitted = 0;
        for (uint32_t k = 0; k < QN_COHERENT_FILE_PARAMETERS; k++) {
            fitted += f.parameter[k].source == QN_PARAMETER_FITTED;
        }
        cr_assert_eq(fitted, to_be_fitted[i], "%s", folder[i]);
    }
}

Test(coherent_file, cycles_become_picoseconds_by_the_clock)
{
    struct qn_coherent_file f;
    cr_assert_eq(qn_coherent_file_load(&f, FOLDER, NULL), QN_OK);
    f.parameter[QN_COHERENT_FILE_INCREMENT].value = 213;
    cr_assert_eq(qn_coherent_file_ps(&f, QN_COHERENT_FILE_INCREMENT), 100000);
}

static void refused(const char *from, const char *to, const char *because)
{
    char *t = text();
    struct qn_parse_error e = {{0}};
    change(t, from, to);
    cr_assert_eq(parse(t, &e), QN_EINVAL, "%s", from);
    cr_assert_not_null(strstr(e.text, because), "%s: %s", from, e.text);
    free(t);
}

Test(coherent_file, what_is_no_such_file_is_refused)
{
    refused("quoin-prices", "prices", "it must say \"format\"");
    refused("\"clock_ghz\": 2.13", "\"clock_ghz\": 0", "above 0");
    refused("\"rmw\"", "\"r\"", "this parameter is missing");
    refused("assumed", "fitted", "at most four");
    refused("\"cycles\"", "\"ns\"", "its unit must be");
}

Test(coherent_file, a_folder_without_one_is_not_found)
{
    struct qn_coherent_file f;
    struct qn_parse_error e = {{0}};
    cr_assert_eq(qn_coherent_file_load(&f, QN_MACHINES "/graviton3_1x64", &e),
                 QN_ENOENT);
    cr_assert_neq(e.text[0], 0);
}
