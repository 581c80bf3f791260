#include "tests/sim/timed/worlds.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/err.h"
#include "tests/support/test.h"

/* As surveys of all machines: not the folder of those made by formula. */
static bool is_machine(const char *path)
{
    char meta[1024 + sizeof "/meta.json"];
    snprintf(meta, sizeof meta, "%s/meta.json", path);
    return access(meta, R_OK) == 0;
}

static unsigned folder(const char *path,
                       void (*each)(const struct qn_machine *m))
{
    struct dirent **entry;
    int count = scandir(path, &entry, NULL, alphasort);
    unsigned done = 0;
    cr_assert(count > 0, "%s", path);
    for (int i = 0; i < count; i++) {
        char name[1024];
        struct qn_machine *m;
        snprintf(name, sizeof name, "%s/%s", path, entry[i]->d_name);
        if (entry[i]->d_name[0] != '.' && is_machine(name)) {
            cr_assert_eq(qn_machine_load(&m, name, NULL), QN_OK, "%s", name);
            each(m);
            qn_machine_destroy(m);
            done++;
        }
        free(entry[i]);
    }
    free(entry);
    return done;
}

unsigned worlds_each(void (*each)(const struct qn_machine *m))
{
    return folder(QN_TEST_MACHINES, each) + folder(QN_MACHINES, each);
}
