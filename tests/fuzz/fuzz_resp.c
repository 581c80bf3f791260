/*
 * Fuzzing the RESP reader: an input is one byte of mode, eight bytes that seed
 * the segmentation, and a stream. The stream's tape in chops must equal the
 * tape of the whole, and nothing may crash. Small limits, so that they are met.
 *
 * Built three times: with libFuzzer (clang; the option QN_FUZZ), and as a test
 * that replays the corpus, itself also under the sanitizers.
 */
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"
#include "tests/support/resp_trace.h"

static const struct qn_resp_limits limits = {
    .bulk_max = 40000, .args_max = 100, .buffer_max = (uint64_t)1 << 30};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    uint64_t seed = 0;
    if (n < 1 + sizeof seed) {
        return 0;
    }
    memcpy(&seed, data + 1, sizeof seed);
    seed |= 1;
    struct qn_resp_limits l = limits;
    l.restricted = (data[0] & 0x80) != 0;
    enum qn_resp_trace_mode mode =
        (enum qn_resp_trace_mode)(data[0] % QN_RESP_TRACE_MODES);
    data += 1 + sizeof seed;
    n -= 1 + sizeof seed;

    struct qn_buf whole = {0};
    struct qn_buf segmented = {0};
    qn_resp_trace_record(&whole, &l, QN_RESP_TRACE_ROOM, data, n,
                         qn_resp_chop_whole, NULL);
    qn_resp_trace_record(&segmented, &l, mode, data, n, qn_resp_chop_random,
                         &seed);
    if (whole.len != segmented.len ||
        memcmp(whole.data, segmented.data, whole.len) != 0) {
        abort();
    }
    qn_buf_free(&whole);
    qn_buf_free(&segmented);
    return 0;
}
