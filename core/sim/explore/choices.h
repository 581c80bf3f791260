#ifndef QN_SIM_EXPLORE_CHOICES_H
#define QN_SIM_EXPLORE_CHOICES_H

/**
 * The choices of a run: a list that counts through all of them, depth first.
 * Inside of the folder only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum qn_action {
    QN_GO_ON,
    QN_SWITCH, /* to node `number` */
    QN_DRAIN,  /* the buffer of node `number` % QN_EXPLORE_NODES: the store that
                  leaves `number` / QN_EXPLORE_NODES earlier ones behind */
    QN_KILL,   /* the running node */
    QN_OLD, /* a load takes the store that is `number` older than the newest */
};

struct qn_choice {
    enum qn_action action;
    uint32_t number;
};

/** Begin to explore, or to repeat `script` (kept; NULL: explore). */
void qn_choices_start(const char *script);

/** Before each run. */
void qn_choices_begin(void);

/** Repeating a script: bounds do not matter. */
bool qn_choices_scripted(void);

/** No run has come here by these choices. */
bool qn_choices_fresh(void);

/** Take one of the options; the first is the default. */
struct qn_choice qn_choose(uint32_t step, const struct qn_choice *o,
                           uint32_t count);

/** Advance to the next run. @return false: all were run. */
bool qn_choices_next(void);

/** The choices of this run that are no defaults, as a text. */
void qn_choices_write(char *out, size_t size);

#endif
