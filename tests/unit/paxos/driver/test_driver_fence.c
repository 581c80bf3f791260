/* Who was replaced and does not know it writes no vote. */
#include <stdlib.h>
#include <string.h>

#include "paxos/driver/driver_internal.h"
#include "paxos/driver/vote_record.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/driver/driver_world.h"

/* The leader stands still; node 1 is about to write its vote for the next
 * one. */
Test(driver_fence, is_asked_before_a_vote_is_written)
{
    struct world *w = world_begin(3, true);
    void *before = malloc(QN_VOTE_RECORD_BYTES);
    jmp_buf fence;
    volatile bool fenced = false;
    world_go_on(w);
    w->member[0].stopped = true;
    memcpy(before, w->member[1].vote_record, QN_VOTE_RECORD_BYTES);
    w->member[1].fence = &fence;
    if (setjmp(fence) == 0) {
        world_suspect(w, 1);
        for (uint32_t r = 0; r < 3000; r++) {
            world_rounds(w, 1);
        }
    } else {
        fenced = true;
        /* The step that it has left, as a process that ends would. */
        qn_step_out_release(&w->member[1].driver->out);
    }
    cr_assert(fenced, "it never came to vote");
    cr_assert_eq(memcmp(before, w->member[1].vote_record, QN_VOTE_RECORD_BYTES),
                 0, "nothing was written");
    free(before);
    world_end(w);
}
