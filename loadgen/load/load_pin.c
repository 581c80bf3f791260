#include "core/base/err.h"
#include "core/place/place.h"
#include "loadgen/load/load_internal.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * A generator that shares a core with the server measures the scheduler. "auto"
 * pins only if pinning is known to help: the processes of the server are named
 * (--cpu-of, --cpu-tree), and enough cores that they may not use are left for
 * the threads. If all processes may use all cores, the scheduler decides better
 * than a guess.
 */

/* The cores that the servers may use. */
static void servers_cores(const struct qn_load *l, cpu_set_t *all)
{
    CPU_ZERO(all);
    for (uint32_t i = 0; i < l->pid_count; i++) {
        cpu_set_t one;
        CPU_ZERO(&one);
        if (sched_getaffinity(l->pid[i], sizeof one, &one) == 0) {
            CPU_OR(all, all, &one);
        }
    }
}

static int pin_auto(struct qn_load *l, const struct qn_places *places)
{
    cpu_set_t taken;
    servers_cores(l, &taken);
    uint32_t found = 0;
    for (uint32_t i = 0; i < places->count && found < l->threads; i++) {
        int cpu = places->place[i].cpu;
        if (l->pid_count > 0 && cpu < CPU_SETSIZE &&
            !CPU_ISSET((size_t)cpu, &taken)) {
            l->cpu[found++] = cpu;
        }
    }
    if (found < l->threads) {
        for (uint32_t i = 0; i < found; i++) {
            l->cpu[i] = -1;
        }
    }
    return QN_OK;
}

static bool is_usable(const struct qn_places *places, long cpu)
{
    for (uint32_t i = 0; i < places->count; i++) {
        if (places->place[i].cpu == cpu) {
            return true;
        }
    }
    return false;
}

static int pin_refused(const struct qn_load *l)
{
    fprintf(stderr,
            "quoin load: --pin: invalid value '%s'; expected auto, none or "
            "CPUs such as 2,3\n",
            l->pin_text);
    return QN_EINVAL;
}

/* Thread i gets the i-th CPU of the list; the list repeats. */
static int pin_list(struct qn_load *l, const struct qn_places *places)
{
    uint32_t count = 0;
    for (const char *p = l->pin_text;; p++) {
        char *end;
        long cpu = strtol(p, &end, 10);
        if (end == p || cpu < 0 || cpu >= CPU_SETSIZE ||
            (*end != '\0' && *end != ',')) {
            return pin_refused(l);
        }
        if (!is_usable(places, cpu)) {
            fprintf(stderr,
                    "quoin load: --pin: this process may not use CPU %ld; see "
                    "taskset -p\n",
                    cpu);
            return QN_EINVAL;
        }
        if (count < QN_LOAD_THREADS_MAX) {
            l->cpu[count++] = (int)cpu;
        }
        if (*end == '\0') {
            break;
        }
        p = end;
    }
    for (uint32_t i = count; i < l->threads; i++) {
        l->cpu[i] = l->cpu[i - count];
    }
    return QN_OK;
}

int qn_load_pin(struct qn_load *l)
{
    static struct qn_places places; /* too large for the stack */
    for (uint32_t i = 0; i < QN_LOAD_THREADS_MAX; i++) {
        l->cpu[i] = -1;
    }
    bool is_auto = strcmp(l->pin_text, "auto") == 0;
    if (strcmp(l->pin_text, "none") == 0 || (is_auto && l->pid_count == 0)) {
        return QN_OK;
    }
    int err = qn_places_discover(&places);
    if (err != QN_OK) {
        fprintf(stderr,
                "quoin load: --pin: cannot list the CPUs: %s; use --pin none\n",
                qn_strerror(err));
        return QN_EINVAL;
    }
    return is_auto ? pin_auto(l, &places) : pin_list(l, &places);
}
