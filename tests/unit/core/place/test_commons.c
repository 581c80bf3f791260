#include "core/place/commons.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/err.h"
#include "tests/support/test.h"

enum { NODES = 3 };

static struct qn_commons *make(bool shared, int *fd)
{
    struct qn_commons *c = NULL;
    cr_assert_eq(qn_commons_create(&c, NODES, 0, shared, fd), QN_OK);
    return c;
}

static void drop(struct qn_commons *c, int fd)
{
    qn_commons_destroy(c);
    if (fd >= 0) {
        close(fd);
    }
}

Test(commons, is_zero_and_refuses_bad_sizes_of_groups)
{
    for (int shared = 0; shared < 2; shared++) {
        struct qn_commons *c = NULL;
        qn_node_t node;
        uint64_t inc;
        int fd = -2;
        cr_assert_eq(qn_commons_create(&c, 0, 0, shared, &fd), QN_EINVAL);
        cr_assert_eq(qn_commons_create(&c, QN_NODES_MAX + 1, 0, shared, &fd),
                     QN_EINVAL);
        cr_assert(c == NULL && fd == -2, "untouched on failure");
        cr_assert_eq(qn_commons_create(&c, QN_NODES_MAX, 0, shared, &fd),
                     QN_OK);
        cr_assert_eq(fd >= 0, shared);
        cr_assert_eq(qn_commons_nodes(c), QN_NODES_MAX);
        cr_assert_eq(qn_load(qn_commons_read_index(c), QN_SEQ_CST), 0);
        cr_assert_eq(qn_load(&qn_commons_word(c)->first, QN_SEQ_CST), 0);
        cr_assert_eq(qn_load(&qn_commons_word(c)->second, QN_SEQ_CST), 0);
        cr_assert(!qn_commons_owner(c, 0, &node, &inc));
        const uint8_t *record = qn_commons_record(c, QN_NODES_MAX - 1);
        for (size_t i = 0; i < QN_COMMONS_RECORD_BYTES; i++) {
            cr_assert_eq(record[i], 0);
        }
        drop(c, fd);
    }
}

/* Every record and every line of its own is apart from all others, and within
 * what qn_commons_bytes says. */
Test(commons, nothing_overlaps)
{
    int fd;
    struct qn_commons *c = make(false, &fd);
    uintptr_t last = (uintptr_t)qn_commons_read_index(c);
    uintptr_t end = last + qn_commons_bytes(NODES, 0);
    cr_assert_eq(last % QN_CACHELINE, 0);
    cr_assert_eq((uintptr_t)qn_commons_word(c) % QN_CACHELINE, 0);
    cr_assert_geq((uintptr_t)qn_commons_word(c), last + 4096);
    last = (uintptr_t)qn_commons_word(c);
    for (qn_node_t i = 0; i < NODES; i++) {
        uintptr_t record = (uintptr_t)qn_commons_record(c, i);
        cr_assert_eq(record % QN_CACHELINE, 0);
        cr_assert_geq(record, last + (i == 0 ? 2048 : QN_COMMONS_RECORD_BYTES));
        cr_assert_leq(record + QN_COMMONS_RECORD_BYTES, end);
        memset((void *)record, 0xff, QN_COMMONS_RECORD_BYTES);
        last = record;
    }
    cr_assert_eq(qn_load(&qn_commons_word(c)->first, QN_SEQ_CST), 0);
    drop(c, fd);
}

/* ------------------------------------------------- who may write, and what */

/* What a process stores; it maps the commons, owns node 1, then tries. */
enum what { READ_INDEX, WORD, OWN_RECORD, FOREIGN_RECORD, UNOWNED, WHATS };

/* Never returns: ends by the signal, or with 0. */
static void try_store(int fd, enum what what, bool claim)
{
    struct qn_commons *c;
    for (int s = 1; s < NSIG; s++) {
        (void)signal(s, SIG_DFL); /* those of the sanitizers and the runner */
    }
    if (qn_commons_map(&c, fd, NODES, 0) != QN_OK ||
        (what != UNOWNED && qn_commons_own(c, 1) != QN_OK)) {
        _exit(1);
    }
    qn_commons_claim(c, claim);
    switch (what) {
    case READ_INDEX:
        qn_fetch_max(qn_commons_read_index(c), 9);
        break;
    case WORD:
        _exit(qn_cas_pair(qn_commons_word(c), 0, 0, 1, 1) ? 0 : 2);
    case FOREIGN_RECORD:
        *(uint8_t *)qn_commons_record(c, 2) = 1;
        break;
    default:
        *(uint8_t *)qn_commons_record(c, 1) = 1;
    }
    _exit(0);
}

/* Status of a child that does it. */
static int stores(int fd, enum what what, bool claim)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        try_store(fd, what, claim);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    return status;
}

static bool faults(int status)
{
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

Test(commons, all_write_the_read_index)
{
    int fd;
    struct qn_commons *c = make(true, &fd);
    cr_assert_eq(stores(fd, READ_INDEX, false), 0);
    cr_assert_eq(qn_load(qn_commons_read_index(c), QN_SEQ_CST), 9);
    drop(c, fd);
}

Test(commons, the_word_is_written_only_while_it_is_claimed)
{
    int fd;
    struct qn_commons *c = make(true, &fd);
    cr_assert(faults(stores(fd, WORD, false)));
    cr_assert_eq(qn_load(&qn_commons_word(c)->first, QN_SEQ_CST), 0);
    cr_assert_eq(stores(fd, WORD, true), 0);
    cr_assert_eq(qn_load(&qn_commons_word(c)->first, QN_SEQ_CST), 1);
    drop(c, fd);
}

Test(commons, only_its_owner_writes_the_pages_of_a_node)
{
    int fd;
    struct qn_commons *c = make(true, &fd);
    cr_assert(faults(stores(fd, FOREIGN_RECORD, false)));
    cr_assert(faults(stores(fd, FOREIGN_RECORD, true)), "leads, too");
    cr_assert(faults(stores(fd, UNOWNED, false)), "owns none");
    cr_assert_eq(*(uint8_t *)qn_commons_record(c, 1), 0);
    cr_assert_eq(stores(fd, OWN_RECORD, false), 0);
    cr_assert_eq(*(uint8_t *)qn_commons_record(c, 1), 1);
    drop(c, fd);
}

Test(commons, a_claim_given_back_is_none, .signal = SIGSEGV)
{
    int fd;
    struct qn_commons *c = make(true, &fd);
    cr_assert(!qn_commons_claimed(c));
    for (int i = 0; i < 100; i++) {
        qn_commons_claim(c, true);
        qn_commons_claim(c, true);
        cr_assert(qn_commons_claimed(c));
        qn_store(&qn_commons_word(c)->second, 5, QN_SEQ_CST);
        qn_commons_claim(c, false);
        cr_assert(!qn_commons_claimed(c));
    }
    cr_assert_eq(qn_load(&qn_commons_word(c)->second, QN_SEQ_CST), 5);
    signal(SIGSEGV, SIG_DFL);
    qn_store(&qn_commons_word(c)->second, 6, QN_SEQ_CST);
}

Test(commons, a_handle_is_one_node_unless_it_is_private)
{
    int fd;
    struct qn_commons *c = make(true, &fd);
    cr_assert_eq(qn_commons_own(c, NODES), QN_EINVAL);
    cr_assert_eq(qn_commons_own(c, 1), QN_OK);
    cr_assert_eq(qn_commons_own(c, 1), QN_OK);
    cr_assert_eq(qn_commons_own(c, 2), QN_EBUSY);
    drop(c, fd);
    c = make(false, &fd);
    for (qn_node_t i = 0; i < NODES; i++) {
        cr_assert_eq(qn_commons_own(c, i), QN_OK);
        memset(qn_commons_record(c, i), 1, QN_COMMONS_RECORD_BYTES);
    }
    cr_assert(qn_commons_claimed(c));
    cr_assert(qn_cas_pair(qn_commons_word(c), 0, 0, 1, 1));
    drop(c, fd);
}

/* Killed while it writes its record: all stores before the kill are there, for
 * others and for its next incarnation, which goes on. */
Test(commons, records_survive_a_kill)
{
    int fd;
    int out[2];
    char byte;
    struct qn_commons *c = make(true, &fd);
    cr_assert_eq(pipe(out), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct qn_commons *mine;
        if (qn_commons_map(&mine, fd, NODES, 0) == QN_OK &&
            qn_commons_own(mine, 2) == QN_OK) {
            memset(qn_commons_record(mine, 2), 7, QN_COMMONS_RECORD_BYTES);
            (void)!write(out[1], "x", 1);
            pause();
        }
        _exit(1);
    }
    cr_assert_eq(read(out[0], &byte, 1), 1);
    cr_assert_eq(kill(pid, SIGKILL), 0);
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
    const uint8_t *record = qn_commons_record(c, 2);
    for (size_t i = 0; i < QN_COMMONS_RECORD_BYTES; i++) {
        cr_assert_eq(record[i], 7);
    }
    cr_assert_eq(qn_commons_own(c, 2), QN_OK);
    memset(qn_commons_record(c, 2), 8, QN_COMMONS_RECORD_BYTES);
    drop(c, fd);
    close(out[0]);
    close(out[1]);
}

/* ------------------------------------------------------------------ owners */

Test(commons, says_who_owns_the_newest_epochs)
{
    for (int shared = 0; shared < 2; shared++) {
        int fd;
        qn_node_t node = 77;
        uint64_t inc = 77;
        struct qn_commons *c = make(shared, &fd);
        qn_commons_claim(c, true);
        for (uint64_t e = 0; e < 3 * QN_COMMONS_OWNERS; e++) {
            cr_assert(!qn_commons_owner(c, e, &node, &inc));
            qn_commons_owner_set(c, e, (qn_node_t)(e % NODES),
                                 QN_COMMONS_LIVES_MAX - 1 - e);
        }
        cr_assert(!qn_commons_owner(c, 2 * QN_COMMONS_OWNERS - 1, &node, &inc));
        cr_assert(!qn_commons_owner(c, UINT64_MAX, &node, &inc));
        cr_assert(node == 77 && inc == 77, "not filled");
        for (uint64_t e = 2 * QN_COMMONS_OWNERS; e < 3 * QN_COMMONS_OWNERS;
             e++) {
            cr_assert(qn_commons_owner(c, e, &node, &inc));
            cr_assert_eq(node, e % NODES);
            cr_assert_eq(inc, QN_COMMONS_LIVES_MAX - 1 - e);
        }
        drop(c, fd);
    }
}

/* Leaders that never move the word: what it says is decided stays to be found.
 */
Test(commons, keeps_the_owner_that_the_word_names)
{
    int fd;
    qn_node_t node;
    uint64_t inc;
    struct qn_commons *c = make(false, &fd);
    cr_assert(qn_commons_owner_set(c, 0, 1, 5));
    for (uint64_t e = 1; e < 5 * QN_COMMONS_OWNERS; e++) {
        cr_assert(qn_commons_owner_set(c, e, 2, 5 + e));
        cr_assert(qn_commons_owner(c, e, &node, &inc), "the newest");
        cr_assert(node == 2 && inc == 5 + e);
        cr_assert(qn_commons_owner(c, 0, &node, &inc), "after %d", (int)e);
        cr_assert(node == 1 && inc == 5);
    }
    cr_assert(qn_cas_pair(qn_commons_word(c), 0, 0, 319, 0));
    for (uint64_t e = 320; e <= 320 + QN_COMMONS_OWNERS; e++) {
        cr_assert(qn_commons_owner_set(c, e, 0, 5 + e));
    }
    cr_assert(qn_commons_owner(c, 319, &node, &inc));
    cr_assert(!qn_commons_owner(c, 0, &node, &inc), "not needed any more");
    drop(c, fd);
}

/* Two lives that both believe that an epoch is theirs. */
Test(commons, an_epoch_has_the_owner_who_came_first)
{
    int fd;
    qn_node_t node;
    uint64_t inc;
    struct qn_commons *c = make(false, &fd);
    cr_assert(qn_commons_owner_set(c, 7, 1, 5));
    cr_assert(qn_commons_owner_set(c, 7, 1, 5), "said again");
    cr_assert(!qn_commons_owner_set(c, 7, 2, 6));
    cr_assert(!qn_commons_owner_set(c, 7, 1, 8), "another life of it");
    cr_assert(qn_commons_owner(c, 7, &node, &inc));
    cr_assert(node == 1 && inc == 5);
    drop(c, fd);
}

/* It was stopped before its store and wakes 64 epochs later. */
Test(commons, a_late_owner_does_not_displace_a_newer_one)
{
    int fd;
    qn_node_t node;
    uint64_t inc;
    struct qn_commons *c = make(false, &fd);
    qn_commons_owner_set(c, 5 + QN_COMMONS_OWNERS, 1, 10);
    qn_commons_owner_set(c, 5, 2, 11);
    cr_assert(!qn_commons_owner(c, 5, &node, &inc));
    cr_assert(qn_commons_owner(c, 5 + QN_COMMONS_OWNERS, &node, &inc));
    cr_assert(node == 1 && inc == 10);
    drop(c, fd);
}

/* Many write at one place, and a reader never sees a mixture of two. */
struct racer {
    struct qn_commons *c;
    qn_node_t self;
};

enum { RACES = 20000 };

static void *race(void *arg)
{
    struct racer *r = arg;
    for (uint64_t i = r->self; i < RACES; i += 2) {
        qn_commons_owner_set(r->c, i * QN_COMMONS_OWNERS, r->self, i + 1);
    }
    return NULL;
}

Test(commons, an_owner_is_never_torn, .timeout = 60)
{
    int fd;
    struct qn_commons *c = make(false, &fd);
    pthread_t thread[2];
    struct racer racer[2] = {{c, 0}, {c, 1}};
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(pthread_create(&thread[i], NULL, race, &racer[i]), 0);
    }
    for (uint64_t i = 0; i < RACES;) {
        qn_node_t node;
        uint64_t inc;
        if (qn_commons_owner(c, i * QN_COMMONS_OWNERS, &node, &inc)) {
            cr_assert(node == i % 2 && inc == i + 1, "epoch %llu: %u %llu",
                      (unsigned long long)i, node, (unsigned long long)inc);
        }
        i++;
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
    }
    qn_node_t node;
    uint64_t inc;
    cr_assert(
        qn_commons_owner(c, (RACES - 1) * QN_COMMONS_OWNERS, &node, &inc));
    cr_assert(node == 1 && inc == RACES);
    drop(c, fd);
}

Test(commons, an_owner_that_is_no_node_is_none)
{
    int fd;
    qn_node_t node;
    uint64_t inc;
    struct qn_commons *c = make(false, &fd);
    qn_commons_owner_set(c, 3, 2, 1);
    cr_assert(qn_commons_owner(c, 3, &node, &inc));
    /* The owners follow the word; the entry's second word is damaged. */
    struct qn_pair *owner =
        (struct qn_pair *)((uint8_t *)qn_commons_word(c) + QN_CACHELINE) + 3;
    cr_assert_eq(qn_load(&owner->first, QN_SEQ_CST), 4);
    qn_store(&owner->second, UINT64_MAX, QN_SEQ_CST);
    cr_assert(!qn_commons_owner(c, 3, &node, &inc));
    drop(c, fd);
}

Test(commons, no_life_is_given_out_twice)
{
    int fd;
    struct qn_commons *other;
    struct qn_commons *c = make(true, &fd);
    cr_assert_eq(qn_commons_map(&other, fd, NODES, 0), QN_OK);
    cr_assert_eq(qn_commons_next_incarnation(c), 1);
    cr_assert_eq(qn_commons_next_incarnation(other), 2);
    cr_assert(!qn_commons_claimed(c) && !qn_commons_claimed(other));
    qn_commons_claim(c, true);
    cr_assert_eq(qn_commons_next_incarnation(c), 3);
    cr_assert(qn_commons_claimed(c), "a claim of its caller stays");
    qn_commons_destroy(other);
    drop(c, fd);
    c = make(false, &fd);
    cr_assert_eq(qn_commons_next_incarnation(c), 1);
    drop(c, fd);
}

/* ------------------------------------------------------------- the memory */

Test(commons, keeps_its_size_and_its_pages)
{
    int fd;
    struct stat st;
    struct qn_commons *c = make(true, &fd);
    cr_assert_eq(fstat(fd, &st), 0);
    cr_assert_eq((size_t)st.st_size, qn_commons_bytes(NODES, 0));
    cr_assert_geq(st.st_blocks * 512, st.st_size);
    cr_assert_neq(ftruncate(fd, 0), 0);
    cr_assert_neq(ftruncate(fd, st.st_size * 2), 0);
    drop(c, fd);
}

Test(commons, each_damaged_field_is_found)
{
    int fd;
    struct qn_commons *c = make(true, &fd);
    struct qn_commons *seen = NULL;
    cr_assert_eq(qn_commons_map(&seen, fd, NODES + 1, 0), QN_ECORRUPT);
    cr_assert_eq(qn_commons_map(&seen, fd, 0, 0), QN_ECORRUPT);
    cr_assert_eq(qn_commons_map(&seen, fd, QN_NODES_MAX + 1, 0), QN_ECORRUPT);
    /* The header: two lines before the word. */
    uint8_t *header = (uint8_t *)qn_commons_word(c) - 2 * QN_CACHELINE;
    qn_commons_claim(c, true);
    for (size_t at = 0; at < 20; at++) {
        header[at] ^= 0x55;
        cr_expect_eq(qn_commons_map(&seen, fd, NODES, 0), QN_ECORRUPT,
                     "byte %zu", at);
        header[at] ^= 0x55;
    }
    cr_assert(seen == NULL);
    cr_assert_eq(qn_commons_map(&seen, fd, NODES, 0), QN_OK);
    qn_commons_destroy(seen);
    drop(c, fd);
}

Test(commons, without_seals_or_of_another_size_is_refused)
{
    struct qn_commons *seen = NULL;
    int fd = memfd_create("open", MFD_ALLOW_SEALING);
    cr_assert_eq(ftruncate(fd, 4096), 0);
    cr_assert_eq(qn_commons_map(&seen, fd, 3, 0), QN_EPERM);
    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    cr_assert_eq(qn_commons_map(&seen, fd, 3, 0), QN_ECORRUPT);
    close(fd);
}

Test(commons, a_device_is_behind_everything_and_writable_by_all)
{
    int fd;
    struct qn_commons *c, *seen;
    const size_t bytes = 10000;
    cr_assert_eq(qn_commons_create(&c, NODES, bytes, true, &fd), QN_OK);
    cr_assert_eq(qn_commons_map(&seen, fd, NODES, 0), QN_ECORRUPT);
    cr_assert_eq(qn_commons_map(&seen, fd, NODES, bytes + 1), QN_ECORRUPT);
    cr_assert_eq(qn_commons_map(&seen, fd, NODES, bytes), QN_OK);
    uint8_t *device = qn_commons_device(c);
    uint8_t *again = qn_commons_device(seen);
    cr_assert_geq(device, (uint8_t *)qn_commons_record(c, NODES - 1) +
                              QN_COMMONS_RECORD_BYTES);
    memset(device, 1, bytes);
    memset(again + 1, 2, bytes - 1);
    cr_assert_eq(device[0], 1);
    cr_assert_eq(device[bytes - 1], 2);
    qn_commons_destroy(seen);
    drop(c, fd);
    cr_assert_eq(
        qn_commons_create(&c, NODES, QN_COMMONS_DEVICE_MAX + 1, true, &fd),
        QN_EINVAL);
    c = make(true, &fd);
    cr_assert_null(qn_commons_device(c));
    drop(c, fd);
}

Test(commons, destroying_nothing_is_fine)
{
    qn_commons_destroy(NULL);
}
