#include "tests/process/host/draw.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t state;

void draw_begin(uint64_t seed)
{
    state = seed;
}

/* splitmix64 */
uint32_t draw(uint32_t below)
{
    pthread_mutex_lock(&lock);
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    pthread_mutex_unlock(&lock);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)((z ^ z >> 31) % below);
}

bool draw_one_of(uint32_t n)
{
    return draw(n) == 0;
}

void draw_pause(uint32_t us_max)
{
    struct timespec t = {.tv_nsec = (long)draw(us_max) * 1000};
    while (nanosleep(&t, &t) != 0 && errno == EINTR) {
    }
}
