/* What replay_utility.pml compares (replay.h): the record of a voter. */
#define FIELDS(X)                                                              \
    X(BAL, "bal", now.bal[me])                                                 \
    X(VBAL, "vbal", now.vbal[me])                                              \
    X(VVAL, "vval", now.vval[me])

#define GUIDES(X)

#include "replay.h"

/* All is in the fields. */
static void expect_more(struct comparison *c, const struct record *r)
{
    (void)c;
    (void)r;
}

/** What the machine says of a ballot is what the model says. */
static int compare_value(int pos, const char *name, int machine, int model)
{
    struct comparison c = {0};
    expect(&c, name, machine, model);
    return settle(pos, &c);
}
