#ifndef QN_TESTS_PROCESS_HOST_CHILD_H
#define QN_TESTS_PROCESS_HOST_CHILD_H

/* Children that are forked in each callback, between turns and by another
 * thread, and do not call exec. Each sees that it is no member; then it ends,
 * or stays with all that it has inherited until the run is over. */

#include <stdbool.h>

/* Where one is forked. */
#define CHILD_WHERE_MAP(X)                                                     \
    X(APPLY)                                                                   \
    X(BEGIN)                                                                   \
    X(NEXT)                                                                    \
    X(END)                                                                     \
    X(READ)                                                                    \
    X(FINISH)                                                                  \
    X(INSTALL)                                                                 \
    X(ABANDON)                                                                 \
    X(CHANGED)                                                                 \
    X(DONE)                                                                    \
    X(LOG)                                                                     \
    X(LOOP)                                                                    \
    X(OTHER_THREAD)                                                            \
    X(EMBEDS) /* it has a group of its own then */

enum child_where {
#define X(name) CHILD_##name,
    CHILD_WHERE_MAP(X)
#undef X
        CHILD_WHERES
};

/* @param life        A pipe that is hung up when the run is over.
 * @param one_thread  Calls groups: so a child may have one of its own. */
void child_begin(const char *life, bool one_thread);

/* The first time in each place of this process, and seldom again. */
void child_maybe(enum child_where where);

#endif
