/* Replays a fuzzer's corpus, QN_CORPUS, and every prefix and some damaged
 * copies of each file, so that the unit run walks the same paths. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/support/test.h"

#define FILE_MAX ((size_t)1 << 20)

static size_t load(const char *name, uint8_t *bytes)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", QN_CORPUS, name);
    FILE *f = fopen(path, "rb");
    cr_assert_not_null(f, "%s", path);
    size_t n = fread(bytes, 1, FILE_MAX, f);
    fclose(f);
    return n;
}

static void replay(uint8_t *bytes, size_t n)
{
    LLVMFuzzerTestOneInput(bytes, n);
    size_t step = n < 2000 ? 1 : n / 100;
    for (size_t i = 0; i < n; i += step) {
        LLVMFuzzerTestOneInput(bytes, i);
        uint8_t old = bytes[i];
        bytes[i] = (uint8_t)(old ^ (1U << (i % 8)));
        LLVMFuzzerTestOneInput(bytes, n);
        bytes[i] = old;
    }
}

Test(corpus, every_file_and_its_damaged_copies, .timeout = 60)
{
    uint8_t *bytes = malloc(FILE_MAX);
    DIR *dir = opendir(QN_CORPUS);
    cr_assert(bytes != NULL && dir != NULL);
    int files = 0;
    for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
        if (e->d_name[0] != '.') {
            replay(bytes, load(e->d_name, bytes));
            files++;
        }
    }
    closedir(dir);
    free(bytes);
    cr_assert_gt(files, 0);
}
