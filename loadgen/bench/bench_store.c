#include "core/base/bits.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/histogram.h"
#include "core/place/place.h"
#include "kvs/store/snapshot_iter.h"
#include "kvs/store/store.h"
#include "loadgen/base/options.h"
#include "loadgen/base/random.h"
#include "loadgen/bench/bench_snapshot.h"
#include "loadgen/cli/quoin.h"

#include <inttypes.h>
#include <jansson.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/*
 * `quoin bench store`: the cost of the store of one replica, by number of keys.
 *
 * For each size a new store is filled, and every put is timed separately: the
 * largest time is the longest pause of growth. (Reading the clock is part of
 * these times, 20 ns each. A put during which the scheduler took the core away
 * is left out and counted.) Then runs of operations on random keys are timed as
 * a whole, in CPU time, so that other processes on the core do not count:
 *
 *     get        one after another; one byte of the value is read, as a command
 *                would
 *     get xB     in groups of B, prefetched with qn_store_prefetch*
 *     hot        the same 1024 keys repeatedly: no miss to memory
 *     put, del   replace; delete half of the keys, each once, in random order
 *     walk       all keys in hash order
 *     put, cut   replace while a cut keeps each old version (the worst case of
 *                a snapshot for a writer, since the versions are not consumed)
 *     snapshot   the store is written in chunks and read into another store
 *     free       after a flush of the other half: the longest call of reclaim
 *                with a budget of FREE_BUDGET blocks
 *
 * Between groups the store reclaims memory, as the server does once per turn;
 * this is counted with the puts. Not measured: readers on other cores.
 */

enum {
    GROUP = 16, /* operations between reclaims, and in a prefetched group */
    HOT = 1024, /* keys */
    FREE_BUDGET = 4096,
    VALUE_MAX = 65536,
    SIZES_MAX = 16,
};

struct bench {
    /* options */
    uint64_t keys_min;
    uint64_t keys_max;
    uint64_t value_size;
    uint64_t operations; /* operations of each kind and size */
    bool quick;
    /* state */
    struct qn_store *s;
    uint8_t value[VALUE_MAX];
    struct qn_histogram *puts;
    uint64_t keys;
    uint64_t random;
    uint64_t slot_more; /* added to the slots of puts */
    uint64_t checksum;  /* keeps reads from being optimized away */
};

/* Times in ns per operation. */
struct row {
    uint64_t keys;
    double fill, get, get_group, get_hot, put, put_group, put_hot, del, walk;
    double put_cut;
    struct qn_bench_snapshot snapshot;
    double bytes_per_key;
    double table_bytes_per_key;
    uint64_t preempted; /* puts left out of the next three members */
    uint64_t put_p50, put_p9999, put_max; /* ns, single puts during growth */
    uint64_t free_max;                    /* ns, one call of reclaim */
    uint64_t split_work_max;              /* entries */
};

static struct qn_slice key_of(const uint64_t *number)
{
    return (struct qn_slice){(const uint8_t *)number, sizeof *number};
}

static void must(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "quoin bench store: %s\n", what);
        exit(1);
    }
}

static void put(struct bench *b, uint64_t number)
{
    struct qn_slice value = {b->value, b->value_size};
    struct qn_put p = {.key = key_of(&number),
                       .parts = &value,
                       .part_count = 1,
                       .slot = number + b->slot_more};
    must(qn_store_put(b->s, &p) == QN_OK,
         "not enough memory; use a smaller --keys-max");
}

static void get(struct bench *b, uint64_t number)
{
    struct qn_found f;
    must(qn_store_get(b->s, 0, key_of(&number), &f), "a key is missing");
    b->checksum += f.slot + (f.value.len > 0 ? f.value.data[0] : 0);
}

static void del(struct bench *b, uint64_t number)
{
    must(qn_store_del(b->s, 0, key_of(&number), 1), "a key is missing");
}

/* CPU time of this thread, ns. */
static uint64_t cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * QN_S + (uint64_t)t.tv_nsec;
}

typedef void operation_fn(struct bench *b, uint64_t number);

/* Run `count` operations on random keys of the first `keys`. The next key
 * depends on the result of the last operation, so that the processor cannot
 * execute ahead: neither can a server, which writes a reply first. @return ns
 * per operation. */
static double run(struct bench *b, operation_fn *op, uint64_t keys,
                  uint64_t count)
{
    uint64_t from = cpu_now();
    for (uint64_t i = 0; i < count; i++) {
        b->random += b->checksum & 1;
        op(b, qn_random_below(&b->random, keys));
        if (i % GROUP == GROUP - 1) {
            qn_store_reclaim(b->s, 4 * GROUP);
        }
    }
    return (double)(cpu_now() - from) / (double)count;
}

/* The same in prefetched groups. */
static double run_groups(struct bench *b, operation_fn *op, uint64_t keys,
                         uint64_t count)
{
    uint64_t number[GROUP];
    uint64_t hash[GROUP];
    uint64_t from = cpu_now();
    for (uint64_t i = 0; i < count; i += GROUP) {
        b->random += b->checksum & 1;
        for (uint32_t j = 0; j < GROUP; j++) {
            number[j] = qn_random_below(&b->random, keys);
            hash[j] = qn_store_prefetch(b->s, 0, key_of(&number[j]));
        }
        for (uint32_t j = 0; j < GROUP; j++) {
            qn_store_prefetch_entry(b->s, hash[j]);
        }
        for (uint32_t j = 0; j < GROUP; j++) {
            op(b, number[j]);
        }
        qn_store_reclaim(b->s, 4 * GROUP);
    }
    return (double)(cpu_now() - from) / (double)count;
}

/* Faster operations were not preempted: a context switch takes longer than
 * this. */
#define SLOW (5 * QN_US)

/* True if the scheduler took the core away since the last call. */
static bool was_preempted(long *switches)
{
    struct rusage u;
    getrusage(RUSAGE_THREAD, &u);
    bool changed = u.ru_nivcsw != *switches;
    *switches = u.ru_nivcsw;
    return changed;
}

static void fill(struct bench *b, struct row *row)
{
    qn_histogram_clear(b->puts);
    long switches = 0;
    was_preempted(&switches);
    uint64_t from = cpu_now();
    qn_time_t before = qn_clock_now();
    for (uint64_t i = 0; i < b->keys; i++) {
        put(b, i);
        qn_time_t now = qn_clock_now();
        if (now - before > SLOW && was_preempted(&switches)) {
            row->preempted++;
        } else {
            qn_histogram_record(b->puts, now - before);
        }
        before = now;
        if (i % GROUP == GROUP - 1) {
            qn_store_reclaim(b->s, 4 * GROUP);
            before = qn_clock_now();
            if (before - now > SLOW) {
                was_preempted(&switches);
            }
        }
    }
    row->fill = (double)(cpu_now() - from) / (double)b->keys;
    row->put_p50 = qn_histogram_quantile(b->puts, 0.5);
    row->put_p9999 = qn_histogram_quantile(b->puts, 0.9999);
    row->put_max = b->puts->max;
}

/* Delete the lower half of the keys, each once: i * odd mod a power of two is a
 * permutation. */
static double run_del(struct bench *b)
{
    uint64_t mask = 1;
    uint64_t keys = b->keys / 2;
    while (mask < keys) {
        mask = mask * 2 + 1;
    }
    uint64_t from = cpu_now();
    for (uint64_t i = 0; i <= mask; i++) {
        uint64_t number = i * UINT64_C(0x9e3779b97f4a7c15) & mask;
        if (number < keys) {
            del(b, number);
        }
        if (i % GROUP == GROUP - 1) {
            qn_store_reclaim(b->s, 4 * GROUP);
        }
    }
    return (double)(cpu_now() - from) / (double)QN_MAX(keys, 1);
}

/* Flush the remaining keys. @return ns of the longest call of reclaim that was
 * not preempted. */
static uint64_t run_flush(struct bench *b)
{
    long switches = 0;
    uint64_t longest = 0;
    bool more = true;
    qn_store_flush(b->s, UINT32_MAX, 1);
    was_preempted(&switches);
    while (more) {
        qn_time_t from = qn_clock_now();
        more = qn_store_reclaim(b->s, FREE_BUDGET);
        uint64_t took = qn_clock_now() - from;
        if (took > longest && !was_preempted(&switches)) {
            longest = took;
        }
    }
    return longest;
}

static bool add_walked(void *ctx, const struct qn_walked *w)
{
    struct bench *b = ctx;
    b->checksum += w->slot;
    return true;
}

static double run_walk(struct bench *b)
{
    uint64_t from = cpu_now();
    uint64_t cursor = 0;
    do {
        cursor = qn_store_walk(b->s, cursor, 1024, add_walked, b);
    } while (cursor != 0);
    return (double)(cpu_now() - from) / (double)b->keys;
}

/* The old version of each key is kept once. */
static double run_put_cut(struct bench *b)
{
    b->slot_more = UINT64_C(1) << 40;
    must(qn_snapshot_iter_begin(b->s, b->slot_more - 1, UINT64_MAX) == QN_OK,
         "not enough memory");
    double ns = run(b, put, b->keys, QN_MIN(b->operations, b->keys / 2 + 1));
    qn_snapshot_iter_end(b->s);
    while (qn_store_reclaim(b->s, FREE_BUDGET)) {
    }
    return ns;
}

static size_t in_use(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

static void measure(struct bench *b, struct row *row)
{
    size_t before = in_use();
    struct qn_store_opts o = {
        .seed = 1, .dbs = 16, .reuse_bytes = QN_STORE_REUSE};
    must(qn_store_create(&b->s, &o) == QN_OK, "not enough memory");
    row->keys = b->keys;
    fill(b, row);
    qn_store_reclaim(b->s, UINT32_MAX);
    row->bytes_per_key = (double)(in_use() - before) / (double)b->keys;
    struct qn_store_stats st;
    qn_store_stats(b->s, &st);
    row->table_bytes_per_key = (double)st.table_bytes / (double)b->keys;
    row->split_work_max = st.split_work_max;
    uint64_t n = b->operations;
    run(b, get, b->keys, QN_MIN(n, b->keys)); /* warm up */
    row->get = run(b, get, b->keys, n);
    row->get_group = run_groups(b, get, b->keys, n);
    row->get_hot = run(b, get, QN_MIN(b->keys, HOT), n);
    row->put = run(b, put, b->keys, n);
    row->put_group = run_groups(b, put, b->keys, n);
    row->put_hot = run(b, put, QN_MIN(b->keys, HOT), n);
    row->walk = run_walk(b);
    row->put_cut = run_put_cut(b);
    must(qn_bench_snapshot(b->s, &row->snapshot),
         "not enough memory for a snapshot; use a smaller --keys-max");
    row->del = run_del(b);
    row->free_max = run_flush(b);
    qn_store_destroy(b->s);
    malloc_trim(0);
}

/* ---- report ---- */

static void print_head(const struct bench *b, const char *place)
{
    fprintf(stderr,
            "%s; 8-byte keys, %" PRIu64
            "-byte values; x%d: in prefetched groups\n"
            "%8s | %-69s | %-13s | %-23s | %6s | %-11s\n",
            place, b->value_size, GROUP, "", "CPU ns per operation", "snapshot",
            "put while growing, ns", "free", "bytes/key");
    fprintf(stderr,
            "%8s | %6s %6s %6s %6s %6s %6s %6s %6s %6s %6s | %6s %6s | %7s %7s "
            "%7s | %6s | %5s %5s\n",
            "keys", "get", "x16", "hot", "put", "x16", "hot", "cut", "del",
            "walk", "fill", "write", "read", "p50", "p99.99", "max", "max us",
            "all", "table");
}

static void print_row(const struct row *r)
{
    fprintf(stderr,
            "%8" PRIu64 " | %6.0f %6.0f %6.0f %6.0f %6.0f %6.0f %6.0f %6.0f "
            "%6.0f %6.0f | %6.0f %6.0f | %7" PRIu64 " %7" PRIu64 " %7" PRIu64
            " | %6" PRIu64 " | %5.1f %5.1f\n",
            r->keys, r->get, r->get_group, r->get_hot, r->put, r->put_group,
            r->put_hot, r->put_cut, r->del, r->walk, r->fill,
            r->snapshot.write_ns, r->snapshot.read_ns, r->put_p50, r->put_p9999,
            r->put_max, r->free_max / QN_US, r->bytes_per_key,
            r->table_bytes_per_key);
}

static json_t *row_json(const struct row *r)
{
    return json_pack(
        "{s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:I, "
        "s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f}",
        "keys", (json_int_t)r->keys, "fill_ns", r->fill, "get_ns", r->get,
        "get_group_ns", r->get_group, "get_hot_ns", r->get_hot, "put_ns",
        r->put, "put_group_ns", r->put_group, "put_hot_ns", r->put_hot,
        "del_ns", r->del, "walk_ns", r->walk, "grow_put_p50_ns",
        (json_int_t)r->put_p50, "grow_put_p99.99_ns", (json_int_t)r->put_p9999,
        "grow_put_max_ns", (json_int_t)r->put_max, "grow_preempted",
        (json_int_t)r->preempted, "free_max_ns", (json_int_t)r->free_max,
        "split_work_max", (json_int_t)r->split_work_max, "bytes_per_key",
        r->bytes_per_key, "table_bytes_per_key", r->table_bytes_per_key,
        "put_cut_ns", r->put_cut, "snapshot_write_ns", r->snapshot.write_ns,
        "snapshot_read_ns", r->snapshot.read_ns, "snapshot_chunk_max_us",
        r->snapshot.chunk_us_max, "snapshot_bytes_per_key",
        r->snapshot.bytes_per_key);
}

static int report(const struct bench *b, const char *place,
                  const struct row *rows, uint32_t count)
{
    json_t *list = json_array();
    bool good = true;
    for (uint32_t i = 0; i < count; i++) {
        good = json_array_append_new(list, row_json(&rows[i])) == 0 && good;
    }
    json_t *all =
        json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:o}", "bench", "store",
                  "place", place, "compiler", __VERSION__, "value_size",
                  (json_int_t)b->value_size, "group", (json_int_t)GROUP,
                  "operations", (json_int_t)b->operations, "sizes", list);
    good =
        good && all != NULL &&
        json_dumpf(all, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) == 0 &&
        putchar('\n') != EOF && fflush(stdout) == 0;
    json_decref(all);
    return good ? 0 : 1;
}

/* ---- the subcommand ---- */

static const char summary[] =
    "Measure the operations of the store and the longest put during growth,\n"
    "from --keys-min to --keys-max keys in factors of ten. A table goes to\n"
    "stderr, JSON to stdout. 10^7 keys need 1 GB and half a minute.";

#define AT(member) offsetof(struct bench, member)

static const struct qn_option table[] = {
    QN_OPTION_COUNT("keys-min", "N", AT(keys_min), "first size (1k)", 1,
                    UINT32_MAX),
    QN_OPTION_COUNT("keys-max", "N", AT(keys_max), "last size (10m)", 1,
                    UINT32_MAX),
    QN_OPTION_COUNT("value-size", "N", AT(value_size), "bytes of a value (16)",
                    0, VALUE_MAX),
    QN_OPTION_COUNT("operations", "N", AT(operations),
                    "operations of each kind and size (2m)", GROUP, 0),
    QN_OPTION("quick", NULL, qn_option_flag, AT(quick),
              "10k keys, 10k operations, to test that the benchmark works"),
};

static bool parse_options(struct bench *b, int argc, char **argv, int *status)
{
    const struct qn_options o = {"quoin bench store", summary, table,
                                 QN_ARRAY_COUNT(table), b};
    if (!qn_options_parse(&o, argc, argv, status)) {
        return false;
    }
    if (b->quick) {
        b->keys_max = 10000;
        b->operations = 10000;
    }
    if (b->keys_max < b->keys_min) {
        fprintf(stderr, "quoin bench store: --keys-max must be at least "
                        "--keys-min\n");
        *status = 2;
        return false;
    }
    return true;
}

/* Pin to the last core, since the first one does most of the work of the
 * system. */
static void pin(char *text)
{
    static struct qn_places places;
    struct qn_place place = {-1, -1};
    if (qn_places_discover(&places) == QN_OK) {
        place = qn_places_of(&places, places.count - 1, QN_BIND_CORE);
        if (qn_place_pin(&places, &place) != QN_OK) {
            place = (struct qn_place){-1, -1};
        }
    }
    qn_place_describe(&place, text);
}

int qn_bench_store(int argc, char **argv)
{
    static struct bench b = {.keys_min = 1000,
                             .keys_max = 10000000,
                             .value_size = 16,
                             .operations = 2000000,
                             .random = 1};
    int status;
    if (!parse_options(&b, argc, argv, &status)) {
        return status;
    }
    char place[QN_PLACE_TEXT_MAX];
    pin(place);
    qn_store_tune_malloc();
    memset(b.value, 'v', sizeof b.value);
    b.puts = calloc(1, sizeof *b.puts);
    must(b.puts != NULL, "not enough memory");
    struct row rows[SIZES_MAX];
    uint32_t count = 0;
    print_head(&b, place);
    for (b.keys = b.keys_min; b.keys <= b.keys_max; b.keys *= 10) {
        rows[count] = (struct row){0};
        measure(&b, &rows[count]);
        print_row(&rows[count++]);
    }
    free(b.puts);
    return report(&b, place, rows, count);
}
