/*
 * A replicated key-value store in a program of one's own. Start it MEMBERS
 * times, on a terminal each; then each answers lines, and all have the same
 * keys, whichever of them is killed and started again. Start it once more, and
 * there is one more member; a member that is removed ends.
 *
 *     store NAME MEMBERS [LOG_MIB [FEED_KIB SOCKET [retain]]]
 *
 *     1 set color blue          1 ok
 *     2 get color               2 is blue            (or: 2 none)
 *     3 incr visits 5           3 ok 5
 *     4 del color               4 ok 1               (or 0: there was none)
 *     5 status                  5 serving seat 0 incarnation 1 leader 0 ...
 *     6 digest                  6 applied 12 keys 1 digest 9f0c...
 *     7 remove 2 3              7 ok                 (seat, incarnation)
 *
 * The first word is the request's name; it begins the answer, and answers come
 * in any order. "unknown" is the answer to a change that may happen or not,
 * "refused" to what has not begun. At a socket another process may follow the
 * changes (follow.c), of which the newest FEED_KIB are kept for it; with
 * `retain` also while none follows, for one that comes back.
 *
 * A command is the text of the change, and `apply` the only place that changes
 * the state. Items are never written in place, but replaced: so a snapshot is
 * the list of items as it was, and goes on beside further changes.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "examples/items.h"
#include "examples/outlet.h"
#include "paxos/group/group.h"
#include "transports/registry.h"

enum { LINE_BYTES_MAX = 128 << 10, FEED_RECORD_BYTES = 256 };

#define TIMEOUT ((uint64_t)5 * 1000000000) /* ns */

/* ---- the service --------------------------------------------------------- */

static struct items now, cut, coming; /* the state; as it was; one that comes */
static size_t cut_item, cut_byte;     /* of it, not given yet */
static struct item *half;             /* of `coming`, and what of it is here: */
static size_t half_bytes;

/* "set KEY VALUE", "incr KEY BY" or "del KEY", as `obey` has proposed it. */
static int apply(void *ctx, const struct qn_group_command *c, uint64_t *result)
{
    struct text rest = {c->bytes, c->len};
    const struct text verb = text_word(&rest), key = text_word(&rest);
    bool found;
    const size_t at = items_find(&now, key, &found);
    (void)ctx;
    if (text_is(verb, "del")) {
        if (found) {
            items_remove(&now, at);
        }
        *result = found;
        return QN_OK;
    }
    char digits[24];
    if (text_is(verb, "incr")) {
        *result = (uint64_t)text_number(rest) +
                  (uint64_t)(found ? text_number(item_value(now.item[at])) : 0);
        rest.len = (size_t)snprintf(digits, sizeof digits, "%" PRId64,
                                    (int64_t)*result);
        rest.at = digits;
    }
    return items_put(&now, key, rest) ? QN_OK : QN_ENOMEM;
}

static int begin(void *ctx)
{
    (void)ctx;
    cut_item = cut_byte = 0;
    return items_copy(&cut, &now) ? QN_OK : QN_ENOMEM;
}

/* As much as fits, of one item after the other; no head is cut in two. */
static int next(void *ctx, void *bytes, size_t cap, size_t *len)
{
    size_t n = 0;
    (void)ctx;
    while (cut_item < cut.count && cap - n >= ITEM_HEAD) {
        struct item *i = cut.item[cut_item];
        size_t some = item_bytes(i) - cut_byte;
        some = some < cap - n ? some : cap - n;
        memcpy((char *)bytes + n, item_begin(i) + cut_byte, some);
        n += some;
        cut_byte += some;
        if (cut_byte == item_bytes(i)) {
            cut_item++;
            cut_byte = 0;
        }
    }
    *len = n;
    return n > 0 ? QN_OK : QN_ENOENT;
}

static void end(void *ctx)
{
    (void)ctx;
    items_clear(&cut);
}

/* @return false: the next item has no head, or one that cannot be. */
static bool half_begin(const char *b, size_t len)
{
    uint32_t head[2];
    if (len < ITEM_HEAD) {
        return false;
    }
    memcpy(head, b, ITEM_HEAD);
    if (head[0] > LINE_BYTES_MAX || head[1] > LINE_BYTES_MAX) {
        return false;
    }
    half = item_make(head[0], head[1]);
    half_bytes = 0;
    return half != NULL;
}

/* An error, also for lack of memory: it begins anew, from another snapshot. */
static int take(void *ctx, const void *bytes, size_t len)
{
    const char *b = bytes;
    (void)ctx;
    while (len > 0) {
        if (half == NULL && !half_begin(b, len)) {
            return QN_ECORRUPT;
        }
        size_t some = item_bytes(half) - half_bytes;
        some = some < len ? some : len;
        memcpy(item_begin(half) + half_bytes, b, some);
        half_bytes += some;
        b += some;
        len -= some;
        if (half_bytes == item_bytes(half)) {
            if (!items_insert(&coming, coming.count, half)) {
                return QN_ECORRUPT;
            }
            half = NULL;
        }
    }
    return QN_OK;
}

static int whole(void *ctx)
{
    (void)ctx;
    return half == NULL ? QN_OK : QN_ECORRUPT;
}

static void install(void *ctx)
{
    (void)ctx;
    items_clear(&now);
    now = coming;
    coming = (struct items){0};
}

static void discard(void *ctx)
{
    (void)ctx;
    items_clear(&coming);
    item_drop(half);
    half = NULL;
}

/* ---- requests ------------------------------------------------------------ */

static struct qn_group *group;
static struct qn_group_needs needs; /* of memory, told beforehand */

/* A request that waits for its end: its line up to the key. */
struct request {
    size_t len;
    char line[];
};

static struct request *request_make(struct text line, const char *upto)
{
    const size_t len = (size_t)(upto - line.at);
    struct request *r = malloc(sizeof *r + len);
    if (r != NULL) {
        r->len = len;
        memcpy(r->line, line.at, len);
    }
    return r;
}

static void on_changed(void *ctx, int err, uint64_t result)
{
    struct request *r = ctx;
    struct text t = {r->line, r->len}, tag = text_word(&t);
    printf("%.*s ", (int)tag.len, tag.at);
    const struct text verb = text_word(&t);
    if (err == QN_EUNKNOWN) {
        printf("unknown\n");
    } else if (err != QN_OK) {
        printf("refused: %s\n", qn_strerror(err));
    } else if (text_is(verb, "incr") || text_is(verb, "del")) {
        printf("ok %" PRId64 "\n", (int64_t)result);
    } else {
        printf("ok\n");
    }
    free(r);
}

static void on_readable(void *ctx, int err, uint64_t result)
{
    struct request *r = ctx;
    struct text t = {r->line, r->len}, tag = text_word(&t);
    bool found;
    (void)text_word(&t);
    const size_t at = items_find(&now, t, &found);
    printf("%.*s ", (int)tag.len, tag.at);
    (void)result;
    if (err != QN_OK) {
        printf("refused: %s\n", qn_strerror(err));
    } else if (found) {
        const struct text v = item_value(now.item[at]);
        printf("is %.*s\n", (int)v.len, v.at);
    } else {
        printf("none\n");
    }
    free(r);
}

static void say_status(struct text tag)
{
    static const char *phases[] = {"meeting", "syncing", "serving", "ended"};
    struct qn_group_status s;
    qn_group_status(group, &s);
    printf("%.*s %s seat %" PRIu32 " incarnation %" PRIu64 " leader %" PRIu32
           " members %" PRIu64 " voters %" PRIu64 " in_sync %" PRIu64
           " deaths %" PRIu32 " applied %" PRIu64 " decided %" PRIu64
           " proposals %" PRIu64 " given %" PRIu64 " installed %" PRIu64
           " capacity %" PRIu32 " donor %" PRIu32 " joiner %" PRIu32
           " shared_max %" PRIu64 " log_max %" PRIu64 "\n",
           (int)tag.len, tag.at, phases[s.phase], s.seat, s.incarnation,
           s.leader, s.members, s.voters, s.in_sync, s.deaths, s.applied,
           s.decided, s.proposals, s.snapshots_given, s.snapshots_installed,
           s.capacity, s.donor, s.joiner, needs.shared, needs.log);
}

static void say_digest(struct text tag)
{
    struct qn_group_status s;
    qn_group_status(group, &s);
    printf("%.*s applied %" PRIu64 " keys %zu digest %" PRIx64 "\n",
           (int)tag.len, tag.at, s.applied, now.count, items_digest(&now));
}

static void obey(struct text line)
{
    static const char *reasons[] = {"taken", "joins", "full", "no credit",
                                    "held"};
    struct text t = line, tag = text_word(&t);
    const struct text change = t, verb = text_word(&t), key = text_word(&t);
    int err = QN_EINVAL;
    if (text_is(verb, "status")) {
        say_status(tag);
        return;
    }
    if (text_is(verb, "digest")) {
        say_digest(tag);
        return;
    }
    struct request *r = request_make(line, key.at + key.len);
    if (r == NULL) {
        err = QN_ENOMEM;
    } else if (text_is(verb, "get")) {
        err = qn_group_barrier(group, TIMEOUT, on_readable, r);
    } else if (text_is(verb, "remove")) {
        const struct qn_group_change c = {.seat = (uint32_t)text_number(key),
                                          .incarnation =
                                              (uint64_t)text_number(t)};
        err = qn_group_change(group, &c, TIMEOUT, on_changed, r);
    } else if (text_is(verb, "set") || text_is(verb, "incr") ||
               text_is(verb, "del")) {
        err = qn_group_propose(group, change.at, change.len, TIMEOUT,
                               on_changed, r);
    }
    if (err != QN_OK) {
        printf("%.*s refused: %s\n", (int)tag.len, tag.at,
               err == QN_EAGAIN ? reasons[qn_group_reason(group)]
                                : qn_strerror(err));
        free(r);
    }
}

/* All whole lines that have come. @return false: there will be no more. */
static bool hear(void)
{
    static char in[LINE_BYTES_MAX];
    static size_t have;
    ssize_t n = read(STDIN_FILENO, in + have, sizeof in - have);
    if (n <= 0) {
        return false;
    }
    have += (size_t)n;
    char *line = in, *stop;
    while ((stop = memchr(line, '\n', (size_t)(in + have - line))) != NULL) {
        obey((struct text){line, (size_t)(stop - line)});
        line = stop + 1;
    }
    have = (size_t)(in + have - line);
    memmove(in, line, have);
    return have < sizeof in;
}

int main(int argc, char **argv)
{
    struct qn_group_opts o = {.application = "store",
                              .version = 1,
                              .transport = qn_transport_find("ump"),
                              .command_max = LINE_BYTES_MAX,
                              .service = {.apply = apply,
                                          .begin = begin,
                                          .next = next,
                                          .end = end,
                                          .keeps_cut = true,
                                          .read = take,
                                          .finish = whole,
                                          .install = install,
                                          .abandon = discard}};
    if (argc != 3 && argc != 4 && argc != 6 && argc != 7) {
        fprintf(stderr, "usage: store NAME MEMBERS [LOG_MIB "
                        "[FEED_KIB SOCKET [retain]]]\n");
        return 2;
    }
    const uint64_t feed_bytes = argc > 5 ? (uint64_t)atoi(argv[4]) << 10 : 0;
    const struct qn_feed_opts feed = {.bytes = feed_bytes,
                                      .records = (uint32_t)feed_bytes /
                                                 FEED_RECORD_BYTES,
                                      .subscribers = 1,
                                      .retain = argc > 6};
    o.name = argv[1];
    o.members = (uint32_t)atoi(argv[2]);
    o.log_bytes = argc > 3 ? (uint64_t)atoi(argv[3]) << 20 : 0;
    o.feed = feed_bytes > 0 ? &feed : NULL;
    int said = qn_group_join(&group, &o);
    (void)qn_group_needs(&o, &needs);
    if (said != QN_OK) {
        fprintf(stderr, "store: %s: %s\n", o.name, qn_strerror(said));
        return 1;
    }
    const int outlet = o.feed != NULL ? outlet_open(group, argv[5]) : -1;
    if (o.feed != NULL && outlet < 0) {
        perror(argv[5]);
        said = QN_EIO;
    }
    struct pollfd p[3] = {{.fd = STDIN_FILENO, .events = POLLIN},
                          {.fd = qn_group_fd(group), .events = POLLIN},
                          {.fd = outlet, .events = POLLIN}};
    bool more = true;
    while (more && said >= 0) {
        fflush(stdout); /* a server that must not wait here has a queue */
        poll(p, 3, said == QN_GROUP_AGAIN ? 0 : -1);
        if (p[0].revents != 0) {
            more = hear();
        }
        if (p[2].revents != 0) {
            outlet_hear();
        }
        said = qn_group_turn(group);
        outlet_turn(&now);
    }
    if (said < 0) {
        fprintf(stderr, "store: %s (%s)\n", qn_group_why(group),
                qn_strerror(said));
    }
    outlet_close();
    qn_group_leave(group); /* what still waits is answered */
    fflush(stdout);
    discard(NULL);
    items_clear(&now);
    return said < 0;
}
