/*
 * An object imports a function if one of its relocations names the symbol, and
 * the symbol is undefined there. Relocations say so more surely than tables of
 * symbols: the number of symbols is not in the file where nothing is exported
 * (a GNU hash table then ends at once), the number of relocations is.
 *
 * The answer is kept beside the number of objects that were ever loaded
 * (dlpi_adds), in one word, so any number of threads may ask: two that find
 * something new both read it, and store the same answer. What is unloaded
 * counts until something else is loaded.
 *
 * That number takes a lock of the dynamic linker, 36 ns for each parallel
 * region. So first a load: the linker appends what it loads to its list, and
 * what was last there when this library began is never unloaded. Nothing behind
 * it: the answer holds.
 */
#include "core/barrier/gomp/imports.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#include "core/base/atomic.h"
#include "core/base/bits.h"

static const char *const prefixes[] = {"GOMP_task", "GOMP_target",
                                       "GOMP_cancel"};

/* What the dynamic section of an object says of its imports. */
struct imports {
    const ElfW(Sym) * symbols;
    const char *names;
    struct {
        const ElfW(Rela) * first;
        size_t bytes;
    } relocations[2]; /* of data; of calls */
};

/* The dynamic linker makes addresses of offsets in place, but not in an object
 * that it may not write (vdso). */
static const void *address(const struct dl_phdr_info *object, ElfW(Addr) at)
{
    return (const void *)(at < object->dlpi_addr ? at + object->dlpi_addr : at);
}

static void read_entry(const struct dl_phdr_info *object, const ElfW(Dyn) * d,
                       struct imports *out)
{
    switch (d->d_tag) {
    case DT_SYMTAB:
        out->symbols = address(object, d->d_un.d_ptr);
        break;
    case DT_STRTAB:
        out->names = address(object, d->d_un.d_ptr);
        break;
    case DT_RELA:
        out->relocations[0].first = address(object, d->d_un.d_ptr);
        break;
    case DT_RELASZ:
        out->relocations[0].bytes = d->d_un.d_val;
        break;
    case DT_JMPREL:
        out->relocations[1].first = address(object, d->d_un.d_ptr);
        break;
    case DT_PLTRELSZ:
        out->relocations[1].bytes = d->d_un.d_val;
        break;
    default:
        break;
    }
}

static bool is_of_tasks(const struct imports *in, size_t symbol)
{
    const ElfW(Sym) *s = &in->symbols[symbol];
    bool is = false;
    for (size_t i = 0; s->st_shndx == SHN_UNDEF && i < QN_ARRAY_COUNT(prefixes);
         i++) {
        is = is || strncmp(in->names + s->st_name, prefixes[i],
                           strlen(prefixes[i])) == 0;
    }
    return is;
}

static bool imports_tasks(const struct imports *in)
{
    for (size_t kind = 0; kind < QN_ARRAY_COUNT(in->relocations); kind++) {
        const ElfW(Rela) *r = in->relocations[kind].first;
        const size_t count = in->relocations[kind].bytes / sizeof *r;
        for (size_t i = 0; r != NULL && i < count; i++) {
            const size_t symbol = ELF64_R_SYM(r[i].r_info);
            if (symbol != 0 && is_of_tasks(in, symbol)) {
                return true;
            }
        }
    }
    return false;
}

static bool object_imports_tasks(const struct dl_phdr_info *object)
{
    struct imports in = {.symbols = NULL};
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &object->dlpi_phdr[i];
        if (p->p_type == PT_DYNAMIC) {
            const ElfW(Dyn) *d = (const void *)(object->dlpi_addr + p->p_vaddr);
            for (; d->d_tag != DT_NULL; d++) {
                read_entry(object, d, &in);
            }
        }
    }
    return in.symbols != NULL && in.names != NULL && imports_tasks(&in);
}

static int count(struct dl_phdr_info *object, size_t size, void *loads)
{
    (void)size; /* glibc has had dlpi_adds since 2.4 */
    *(uint64_t *)loads = object->dlpi_adds;
    return 1;
}

static int look(struct dl_phdr_info *object, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    return object_imports_tasks(object);
}

/* The last object of the start. NULL: not known. */
static const struct link_map *last_at_start;

/* An initializer in front of this one may have loaded the last object. So that
 * it is never unloaded, it is marked. */
__attribute__((constructor)) static void find_last(void)
{
    const struct link_map *at = _r_debug.r_map;
    while (at->l_next != NULL) {
        at = at->l_next;
    }
    if (dlopen(at->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) != NULL) {
        last_at_start = at;
    }
}

/* The linker writes l_next, once, before dlopen returns. A thread that does not
 * know of the return yet may see either, as with the linker's lock. */
static bool is_as_at_start(void)
{
    _Static_assert(sizeof last_at_start->l_next == sizeof(qn_a64), "a word");
    if (last_at_start == NULL) {
        return false;
    }
    /* relaxed: NULL or not is all that is asked. The linker has a plain pointer
     * there, which it stores as one word. */
    const qn_a64 *next = (const void *)&last_at_start->l_next;
    return qn_load(next, QN_RELAXED) == 0;
}

bool qn_gomp_imports_tasks(void)
{
    /* twice the number of loads, and 1 if there are tasks; 0: not known */
    static qn_a64 last;
    uint64_t loads = 0;
    /* relaxed, all: the word is all that there is. An answer that is out of
     * date has another number. */
    uint64_t answer = qn_load(&last, QN_RELAXED);
    if (answer != 0 && is_as_at_start()) {
        return (answer & 1) != 0;
    }
    (void)dl_iterate_phdr(count, &loads);
    if (answer >> 1 != loads) {
        answer = loads << 1 | (dl_iterate_phdr(look, NULL) != 0);
        qn_store(&last, answer, QN_RELAXED);
    }
    return (answer & 1) != 0;
}
