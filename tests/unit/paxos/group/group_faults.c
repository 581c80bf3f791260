#include "tests/unit/paxos/group/group_faults.h"

#include "core/base/bits.h"
#include "core/base/err.h"

static bool fails(struct group_fault_plan *p, enum group_fault_call call)
{
    const uint64_t n = ++p->calls[call];
    const bool hit = call == p->call && p->at != 0 &&
                     (n == p->at || (p->for_ever && n > p->at));
    p->failed += hit;
    return hit;
}

/* ---- the service --------------------------------------------------------- */

static int on_apply(void *ctx, const struct qn_group_command *c,
                    uint64_t *result)
{
    struct group_faults *f = ctx;
    return fails(f->plan, GROUP_FAULT_APPLY)
               ? f->plan->err
               : f->of.apply(f->of.ctx, c, result);
}

static int on_begin(void *ctx)
{
    struct group_faults *f = ctx;
    int err = fails(f->plan, GROUP_FAULT_BEGIN) ? f->plan->err
                                                : f->of.begin(f->of.ctx);
    f->plan->wrong += f->plan->cuts != 0;
    f->plan->cuts += err == QN_OK;
    return err;
}

static int on_next(void *ctx, void *bytes, size_t cap, size_t *len)
{
    struct group_faults *f = ctx;
    f->plan->wrong += f->plan->cuts != 1;
    return fails(f->plan, GROUP_FAULT_NEXT)
               ? f->plan->err
               : f->of.next(f->of.ctx, bytes, cap, len);
}

static void on_end(void *ctx)
{
    struct group_faults *f = ctx;
    f->plan->wrong += f->plan->cuts != 1;
    f->plan->cuts--;
    f->of.end(f->of.ctx);
}

/* What has failed is abandoned before the next one is begun. */
static int built(struct group_fault_plan *p, int err)
{
    p->wrong += p->broken;
    p->builds = 1;
    p->broken = err != QN_OK && err != QN_ENOMEM;
    return err;
}

static int on_read(void *ctx, const void *bytes, size_t len)
{
    struct group_faults *f = ctx;
    return built(f->plan, fails(f->plan, GROUP_FAULT_READ)
                              ? f->plan->err
                              : f->of.read(f->of.ctx, bytes, len));
}

static int on_finish(void *ctx)
{
    struct group_faults *f = ctx;
    return built(f->plan, fails(f->plan, GROUP_FAULT_FINISH)
                              ? f->plan->err
                              : f->of.finish(f->of.ctx));
}

static void on_install(void *ctx)
{
    struct group_faults *f = ctx;
    f->plan->wrong += f->plan->builds != 1 || f->plan->broken;
    f->plan->builds = 0;
    f->of.install(f->of.ctx);
}

static void on_abandon(void *ctx)
{
    struct group_faults *f = ctx;
    f->plan->wrong += f->plan->builds != 1;
    f->plan->builds = 0;
    f->plan->broken = false;
    f->of.abandon(f->of.ctx);
}

/* ---- the allocator ------------------------------------------------------- */

static void *resize(void *ctx, void *p, size_t bytes)
{
    struct group_faults *f = ctx;
    struct group_fault_plan *plan = f->plan;
    if (bytes != 0 &&
        (fails(plan, GROUP_FAULT_MEMORY) || bytes == plan->bytes_refused)) {
        return NULL;
    }
    struct qn_alloc_limit *l = &f->counted;
    void *q = l->alloc.resize(l, p, bytes);
    plan->blocks = l->blocks;
    plan->bytes = l->used - l->blocks * QN_ALLOC_LIMIT_HEAD;
    plan->bytes_most = QN_MAX(plan->bytes_most, plan->bytes);
    return q;
}

void group_faults_begin(struct group_faults *f, struct group_fault_plan *plan,
                        struct qn_group_opts *o)
{
    plan->blocks = plan->cuts = plan->builds = 0;
    plan->broken = false;
    *f = (struct group_faults){
        .plan = plan, .of = o->service, .alloc = {resize, f}};
    qn_alloc_limit_init(&f->counted, &qn_alloc_malloc, SIZE_MAX);
    o->alloc = &f->alloc;
    o->service.apply = on_apply;
    o->service.begin = on_begin;
    o->service.next = on_next;
    o->service.end = on_end;
    o->service.read = on_read;
    o->service.finish = on_finish;
    o->service.install = on_install;
    o->service.abandon = on_abandon;
    o->service.ctx = f;
}
