#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/base/random.h"
#include "loadgen/load/load_internal.h"
#include "loadgen/verify/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/*
 * `quoin load --verify`: every operation on a key is recorded, from the preload
 * to the last reply, and the history is checked after the run.
 *
 * The initial state must be known, and no other client may write: the keys of
 * each run carry a unique tag, so they are absent at the beginning. Values are
 * unique, so that a read identifies the write that it saw. An operation without
 * an answer stays open in its record: it may have happened or not.
 *
 * A recorder belongs to one thread, and memory for records is bounded: each
 * client gets an equal share of the operations, and stops when its share is
 * used up.
 */

/* ---- before the run ---- */

/* Try one form on a key that does not exist; no form changes anything. */
static int probe_form(const struct qn_load *l, enum qn_cas_form form,
                      char *error, size_t error_size)
{
    static const char eval[] = "*3\r\n$4\r\nEVAL\r\n$8\r\nreturn 1\r\n"
                               "$1\r\n0\r\n";
    char ifeq[128];
    uint64_t random = l->seed;
    snprintf(ifeq, sizeof ifeq,
             "*5\r\n$3\r\nSET\r\n$28\r\nquoin:probe:%016" PRIx64
             "\r\n$1\r\na\r\n$4\r\nIFEQ\r\n$1\r\nb\r\n",
             qn_random_next(&random));
    return qn_address_ask(&l->address[0], form == QN_CAS_IFEQ ? ifeq : eval, 1,
                          error, error_size);
}

int qn_load_probe_cas(struct qn_load *l)
{
    struct qn_workload_opts *w = &l->workload_opts;
    if (qn_mix_weight(&w->mix, QN_OP_CAS) == 0 || l->cas_given) {
        return QN_OK;
    }
    static const enum qn_cas_form form[] = {QN_CAS_IFEQ, QN_CAS_EVAL};
    char error[200];
    for (size_t i = 0; i < QN_ARRAY_COUNT(form); i++) {
        w->cas = form[i];
        int err = probe_form(l, form[i], error, sizeof error);
        if (err == QN_OK) {
            return QN_OK;
        }
        if (err != QN_EPERM) {
            break;
        }
    }
    fprintf(stderr,
            "quoin load: --mix cas: %s accepts neither SET ... IFEQ nor EVAL: "
            "%s\n",
            l->address[0].text, error);
    return QN_EINVAL;
}

/* Make a tag of 60 bits from seed and time: different for each run. */
static void make_tag(struct qn_load *l)
{
    static const char letter[] = "0123456789abcdefghijklmnopqrstuv";
    uint64_t state = l->seed ^ qn_clock_wall_us();
    uint64_t random = qn_random_next(&state);
    char *tag = l->workload_opts.tag;
    for (size_t i = 0; i < QN_TAG_MAX; i++) {
        tag[i] = letter[(random >> (5 * i)) & 31];
    }
    tag[QN_TAG_MAX] = '\0';
}

/* Reason why --verify cannot be used with the other options; NULL: none. */
static const char *refusal(const struct qn_load *l)
{
    const struct qn_workload_opts *w = &l->workload_opts;
    if (qn_mix_weight(&w->mix, QN_OP_MSET) > 0) {
        return "--verify cannot check mset; remove it from --mix";
    }
    if (w->keys >= QN_RECORD_COUNTER) {
        return "too many keys for --verify; use fewer --keys";
    }
    if (l->requests > QN_LOAD_VERIFY_MAX) {
        return "--verify records at most 50m operations; use fewer --requests";
    }
    if (l->repeat > 1) {
        return "--verify checks one run only; remove --repeat";
    }
    return NULL;
}

int qn_load_check_verify(struct qn_load *l)
{
    if (!l->verify) {
        if (l->output.verify_svg != NULL) {
            fprintf(stderr, "quoin load: --verify-svg needs --verify\n");
            return QN_EINVAL;
        }
        return QN_OK;
    }
    const char *no = refusal(l);
    if (no != NULL) {
        fprintf(stderr, "quoin load: %s\n", no);
        return QN_EINVAL;
    }
    struct qn_workload_opts *w = &l->workload_opts;
    w->unique = true;
    make_tag(l);
    if (l->mixed_by_default) {
        w->value_size = qn_sizes_mixed_within(w->keys, QN_LOAD_VERIFY_BYTES);
    }
    w->key_size.max = QN_MAX(w->key_size.max, qn_workload_key_size_min(w));
    for (uint32_t i = 0; i < QN_LOAD_THREADS_MAX; i++) {
        qn_recorder_init(&l->recorder[i], UINT64_MAX);
    }
    return QN_OK;
}

/* ---- after the run ---- */

static int check_history(struct qn_load *l, struct qn_history *h)
{
    int err = QN_OK;
    for (uint32_t i = 0; i < l->threads && err == QN_OK; i++) {
        err = qn_history_take(h, &l->recorder[i]);
    }
    if (err == QN_OK) {
        err = qn_history_group(h);
    }
    const struct qn_verify_opts opts = {
        .report = qn_output_text(&l->output),
        .svg = l->output.verify_svg,
        .explained_max = 1,
    };
    if (err == QN_OK) {
        err = qn_verify(h, &opts, &l->verified);
    }
    if (err != QN_OK) {
        /* A recorder that refuses had no memory. */
        fprintf(stderr, "quoin load: --verify: %s\n",
                qn_strerror(err == QN_EINVAL ? QN_ENOMEM : err));
        return 1;
    }
    const struct qn_verify_result *r = &l->verified;
    l->verdict = (struct qn_report_verdict){
        qn_verify_name(r), r->records, r->keys, r->violations, r->undecided};
    if (r->violations > 0 || r->undecided > 0) {
        fputc('\n', opts.report);
    }
    return qn_verify_status(r);
}

void qn_load_print_verdict(const struct qn_load *l)
{
    if (l->verdict.name != NULL) {
        qn_verify_print(qn_output_text(&l->output), &l->verified);
    }
}

int qn_load_judge(struct qn_load *l)
{
    struct qn_history h;
    qn_history_init(&h);
    int status = check_history(l, &h);
    qn_history_fini(&h);
    return status;
}
