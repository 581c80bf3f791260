#include "tests/process/host/board.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/atomic.h"

static struct board {
    qn_a64 begun; /* 1: the mutexes are being made, 2: they are */
    qn_a64 children;
    pthread_mutex_t mutex[BOARD_PLACES][BOARD_THREADS];
} * board;

static uint32_t own_place;

static void make(void)
{
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
    for (uint32_t i = 0; i < BOARD_PLACES; i++) {
        for (uint32_t k = 0; k < BOARD_THREADS; k++) {
            pthread_mutex_init(&board->mutex[i][k], &a);
        }
    }
}

void board_open(const char *path, uint32_t place)
{
    uint64_t none = 0;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    QN_ASSERT(fd >= 0);
    int err = ftruncate(fd, sizeof *board);
    QN_ASSERT(err == 0);
    board =
        mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    QN_ASSERT(board != MAP_FAILED);
    close(fd);
    own_place = place;
    if (qn_cas(&board->begun, &none, 1, QN_SEQ_CST)) {
        make();
        qn_store(&board->begun, 2, QN_RELEASE);
    }
    while (qn_load(&board->begun, QN_ACQUIRE) != 2) {
        usleep(100);
    }
}

void board_lock(uint32_t thread)
{
    pthread_mutex_t *m = &board->mutex[own_place][thread];
    int err = pthread_mutex_lock(m);
    if (err == EOWNERDEAD) {
        err = pthread_mutex_consistent(m);
    }
    QN_ASSERT(err == 0);
}

struct board_mutexes board_try(uint32_t place)
{
    struct board_mutexes found = {.locked = 0};
    for (uint32_t i = 0; i < BOARD_THREADS; i++) {
        pthread_mutex_t *m = &board->mutex[place][i];
        int err = pthread_mutex_trylock(m);
        QN_ASSERT(err == 0 || err == EBUSY || err == EOWNERDEAD);
        found.locked += err == EBUSY;
        found.dead += err == EOWNERDEAD;
        found.free |= (uint32_t)(err == 0) << i;
        if (err == EOWNERDEAD) {
            (void)pthread_mutex_consistent(m);
        }
        if (err != EBUSY) {
            (void)pthread_mutex_unlock(m);
        }
    }
    return found;
}

void board_child(uint32_t where)
{
    (void)qn_fetch_or(&board->children, UINT64_C(1) << where, QN_SEQ_CST);
}

uint64_t board_children(void)
{
    return qn_load(&board->children, QN_SEQ_CST);
}
