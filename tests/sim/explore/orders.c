#include "tests/sim/explore/orders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/sim/explore/weaken.h"
#include "tests/sim/explore/ordered_lines.h"
#include "tests/support/test.h"

#define SITES_MAX      256u
#define UNFOUND_MAX    16u
#define NAME_MAX_BYTES 128u

static struct qn_weak_site site[SITES_MAX];
static uint32_t sites;

static void collect(const struct orders *o)
{
    sites = 0;
    qn_weaken_watch();
    cr_assert(!o->explore(0), "a fault without any mutant");
    for (uint32_t i = 0; o->files[i] != NULL; i++) {
        sites += qn_weaken_sites(o->files[i], site + sites, SITES_MAX - sites);
    }
    cr_assert_lt(sites, SITES_MAX);
    qn_weaken_end();
}

static bool is_reached(const char *file, const struct ordered_line *o)
{
    bool is = false;
    for (uint32_t i = 0; i < sites && !is; i++) {
        is = strcmp(site[i].at.file, file) == 0 &&
             site[i].at.line >= o->first && site[i].at.line <= o->last;
    }
    return is;
}

static bool is_listed(const char *const *list, const char *text)
{
    while (*list != NULL && strstr(text, *list) == NULL) {
        list++;
    }
    return *list != NULL;
}

static bool any_reached(const char *part)
{
    uint32_t i = 0;
    while (i < sites && strstr(site[i].at.file, part) == NULL) {
        i++;
    }
    return i < sites;
}

/* An order that no exploration comes to is judged by none. */
static void expect_all_reached(const struct orders *o)
{
    static struct ordered_line line[ORDERED_LINES_MAX];
    for (uint32_t i = 0; o->files[i] != NULL; i++) {
        cr_expect(any_reached(o->files[i]), "no order in %s", o->files[i]);
    }
    for (uint32_t i = 0; i < sites; i++) {
        const char *file = site[i].at.file;
        if (i > 0 && strcmp(file, site[i - 1].at.file) == 0) {
            continue;
        }
        const uint32_t lines = ordered_lines(file, line);
        for (uint32_t k = 0; k < lines; k++) {
            cr_expect(is_reached(file, &line[k]) !=
                          is_listed(o->unreached, line[k].text),
                      "%s:%d: %s: is it reached or listed?", file,
                      line[k].first, line[k].text);
        }
    }
}

/* In a child, since a mutant may abort or destroy its memory. */
static bool found_at(const struct orders *o, uint32_t level)
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr)) {
            _exit(2);
        }
        _exit(o->explore(level) ? 1 : 0);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(!WIFEXITED(status) || WEXITSTATUS(status) <= 1);
    return !WIFEXITED(status) || WEXITSTATUS(status) == 1;
}

/* Do the first `levels` find it? */
static bool found_within(const struct orders *o, const struct qn_weak_site *s,
                         memory_order to, uint32_t levels)
{
    uint32_t level = 0;
    qn_weaken_begin(s, to);
    while (level < levels && !found_at(o, level)) {
        level++;
    }
    qn_weaken_end();
    return level < levels;
}

/* Of one that is known not to be found, the last level is the most expensive
 * search of all, and proves of no order that it is needed: by night. */
static uint32_t levels_of(const struct orders *o, bool known)
{
    bool all = !known || o->levels == 1 || getenv("QN_ORDERS_ALL") != NULL;
    return all ? o->levels : o->levels - 1;
}

static bool begins(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static void judge(const struct orders *o, const struct qn_weak_site *s,
                  memory_order to, uint32_t *unfound)
{
    char name[NAME_MAX_BYTES];
    snprintf(name, sizeof name, "%s %s %u: %s to %s", s->at.func, s->at.kind,
             s->number, qn_order_name(s->order), qn_order_name(to));
    uint32_t i = 0;
    while (o->unfound[i].prefix != NULL &&
           !begins(name, o->unfound[i].prefix)) {
        i++;
    }
    bool known = o->unfound[i].prefix != NULL;
    bool found = found_within(o, s, to, levels_of(o, known));
    if (getenv("QN_SHOW_ORDERS") != NULL) {
        printf("%-60s %s\n", name, found ? "found" : "not found");
    }
    unfound[i] += !found;
    cr_expect(found || known, "not found: %s", name);
}

void orders_judge(const struct orders *o)
{
    uint32_t mutants = 0;
    uint32_t unfound[UNFOUND_MAX] = {0};
    collect(o);
    if (o->unreached != NULL) {
        expect_all_reached(o);
    }
    for (uint32_t i = 0; i < sites; i++) {
        memory_order to[3];
        uint32_t count = qn_weaker_orders(&site[i], to);
        for (uint32_t k = 0; k < count; k++) {
            judge(o, &site[i], to[k], unfound);
        }
        mutants += count;
    }
    cr_assert_geq(mutants, o->least, "%u mutants", mutants);
    for (uint32_t i = 0; o->unfound[i].prefix != NULL; i++) {
        cr_assert_lt(i + 1, UNFOUND_MAX);
        cr_assert_eq(unfound[i], o->unfound[i].mutants, "%s: %u not found",
                     o->unfound[i].prefix, unfound[i]);
    }
}

bool orders_function_is_found(const struct orders *o, const char *const *func,
                              bool half)
{
    uint32_t level = 0;
    collect(o);
    for (uint32_t i = 0; i < sites; i++) {
        memory_order to[3];
        uint32_t count = qn_weaker_orders(&site[i], to);
        for (uint32_t k = 0; func[k] != NULL; k++) {
            if (strcmp(site[i].at.func, func[k]) == 0) {
                qn_weaken_begin(&site[i], to[half ? count - 1 : 0]);
            }
        }
    }
    while (level < o->levels && !found_at(o, level)) {
        level++;
    }
    qn_weaken_end();
    return level < o->levels;
}
