/*
 * Fuzzing what guests and members say to each other: the first byte is the
 * number of descriptors that came with it, the rest is the message. What is
 * accepted must encode to the same bytes, but for the version of a refusal.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "paxos/group/dialogue.h"
#include "tests/fuzz/fuzz.h"

enum { VERSION_AT = 4, VERSION_BYTES = 2 };

static void must(bool ok)
{
    if (!ok) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    uint8_t again[QN_DIALOGUE_BYTES];
    struct qn_dialogue_msg m = {.kind = QN_DIALOGUE_REFUSE};
    if (n == 0) {
        return 0;
    }
    const uint8_t *bytes = data + 1;
    const struct qn_slice s = {bytes, n - 1};
    int err = qn_dialogue_decode(s, data[0], &m);
    if (err == QN_OK) {
        must(s.len == QN_DIALOGUE_BYTES);
        qn_dialogue_encode(&m, again);
        if (m.kind == QN_DIALOGUE_REFUSE) {
            memcpy(again + VERSION_AT, bytes + VERSION_AT, VERSION_BYTES);
        }
        must(memcmp(again, bytes, sizeof again) == 0);
    } else {
        must(err == QN_ECORRUPT || err == QN_ENOSYS);
    }
    return 0;
}
