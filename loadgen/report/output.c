#include "loadgen/report/output.h"

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/base/output_path.h"
#include "loadgen/report/hdr_format.h"
#include "loadgen/report/load_plot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * A file is checked by opening it for writing; if that creates it, it is
 * removed again. So an existing file keeps its content until the run has
 * something to write, a run that is killed leaves no empty files, and
 * /dev/stdout or a pipe of the shell work like any file. If a folder vanishes
 * during the run, this is reported at the end, with exit status 1.
 *
 * A FIFO is not opened for the check: its reader would see the end of the file.
 */

enum { FILES = 5 };

struct wish {
    const char *option;
    const char *path; /* or NULL */
};

static void wishes_of(const struct qn_output *o, struct wish wish[FILES])
{
    wish[0] = (struct wish){"--hgrm", o->hgrm};
    wish[1] = (struct wish){"--csv", o->csv};
    wish[2] = (struct wish){"--plot", o->plot};
    wish[3] = (struct wish){"--raw", o->raw};
    wish[4] = (struct wish){"--verify-svg", o->verify_svg};
}

/* Option that writes to stdout; NULL: none. */
static const char *on_stdout(const struct wish wish[FILES])
{
    for (int i = 0; i < FILES; i++) {
        if (wish[i].path != NULL && qn_output_path_is_stdout(wish[i].path)) {
            return wish[i].option;
        }
    }
    return NULL;
}

FILE *qn_output_text(const struct qn_output *o)
{
    struct wish wish[FILES];
    wishes_of(o, wish);
    return o->json || on_stdout(wish) != NULL ? stderr : stdout;
}

/* ---- before the run ---- */

struct tried {
    bool made; /* it did not exist before */
    bool is_stdout;
    bool is_file;
    dev_t device;
    ino_t inode;
};

static int refuse(const struct wish *w, char *error)
{
    snprintf(error, QN_OUTPUT_ERROR_MAX, "%s: cannot write %s: %s", w->option,
             w->path, strerror(errno));
    return QN_EINVAL;
}

static int try_one(const struct wish *w, struct tried *t, char *error)
{
    struct stat s;
    t->is_stdout = qn_output_path_is_stdout(w->path);
    if (t->is_stdout) {
        return QN_OK;
    }
    if (stat(w->path, &s) == 0 && S_ISFIFO(s.st_mode)) {
        return access(w->path, W_OK) == 0 ? QN_OK : refuse(w, error);
    }
    int fd = open(w->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    t->made = fd >= 0;
    if (fd < 0 && errno == EEXIST) {
        fd = open(w->path, O_WRONLY | O_CLOEXEC);
    }
    if (fd < 0) {
        return refuse(w, error);
    }
    int failed = fstat(fd, &s);
    close(fd);
    if (failed) {
        return refuse(w, error);
    }
    t->is_file = S_ISREG(s.st_mode);
    t->device = s.st_dev;
    t->inode = s.st_ino;
    return QN_OK;
}

static bool are_one(const struct tried *a, const struct tried *b)
{
    return (a->is_stdout && b->is_stdout) ||
           (a->is_file && b->is_file && a->device == b->device &&
            a->inode == b->inode);
}

static int try_all(const struct wish *wish, struct tried *tried, char *error)
{
    for (int i = 0; i < FILES; i++) {
        if (wish[i].path == NULL) {
            continue;
        }
        int err = try_one(&wish[i], &tried[i], error);
        if (err != QN_OK) {
            return err;
        }
        for (int j = 0; j < i; j++) {
            if (are_one(&tried[i], &tried[j])) {
                snprintf(error, QN_OUTPUT_ERROR_MAX,
                         "%s and %s both write to %s; give two different files",
                         wish[j].option, wish[i].option,
                         qn_output_path_name(wish[i].path));
                return QN_EINVAL;
            }
        }
    }
    return QN_OK;
}

int qn_output_check(const struct qn_output *o, char *error)
{
    struct wish wish[FILES];
    struct tried tried[FILES] = {0};
    wishes_of(o, wish);
    int err = try_all(wish, tried, error);
    const char *taken = on_stdout(wish);
    if (err == QN_OK && o->json && taken != NULL) {
        snprintf(error, QN_OUTPUT_ERROR_MAX,
                 "--json and %s both write to standard output; give %s a file",
                 taken, taken);
        err = QN_EINVAL;
    }
    for (int i = 0; i < FILES; i++) {
        if (tried[i].made) {
            unlink(wish[i].path);
        }
    }
    return err;
}

/* ---- the run ---- */

static int fail(char *error, const char *option, const char *path, int why)
{
    snprintf(error, QN_OUTPUT_ERROR_MAX, "%s: cannot write %s: %s", option,
             path, strerror(why));
    return QN_EIO;
}

int qn_output_begin(struct qn_output *o, char *error)
{
    if (o->raw != NULL) {
        o->raw_file = qn_output_path_open(o->raw);
        if (o->raw_file == NULL) {
            return fail(error, "--raw", o->raw, errno);
        }
    }
    return QN_OK;
}

static void open_csv(struct qn_output *o)
{
    o->csv_file = qn_output_path_open(o->csv);
    if (o->csv_file == NULL) {
        o->csv_errno = errno;
    } else {
        qn_report_csv_header(o->csv_file);
    }
}

static void write_csv(struct qn_output *o, const struct qn_report_second *s)
{
    if (o->csv_file == NULL && o->csv_errno == 0) {
        open_csv(o);
    }
    if (o->csv_file != NULL) {
        qn_report_csv_second(o->csv_file, s);
        if (fflush(o->csv_file) != 0 && o->csv_errno == 0) {
            o->csv_errno = errno;
        }
    }
}

static void keep(struct qn_output *o, const struct qn_report_second *s)
{
    if (o->count == o->room) {
        uint32_t room = QN_MAX(o->room * 2, (uint32_t)64);
        void *grown = realloc(o->second, room * sizeof o->second[0]);
        if (grown == NULL) {
            return; /* the plot ends early; the load continues */
        }
        o->second = grown;
        o->room = room;
    }
    o->second[o->count++] = qn_load_plot_second(s);
}

void qn_output_second(struct qn_output *o, const struct qn_report_second *s)
{
    if (o->live) {
        qn_report_live(stderr, "", s);
    }
    if (o->json) {
        (void)qn_report_json_second(stdout,
                                    s); /* stdout is checked at the end */
    }
    if (o->csv != NULL) {
        write_csv(o, s);
    }
    if (o->plot != NULL) {
        keep(o, s);
    }
}

/* ---- the end ---- */

static int finish_csv(struct qn_output *o, char *error)
{
    if (o->csv_file == NULL && o->csv_errno == 0) {
        open_csv(o); /* also a run shorter than a second has a header */
    }
    int why = 0;
    if (o->csv_file != NULL) {
        why = qn_output_path_close(o->csv_file);
        o->csv_file = NULL;
    }
    why = o->csv_errno != 0 ? o->csv_errno : why;
    return why == 0 ? QN_OK : fail(error, "--csv", o->csv, why);
}

static int finish_hdr_format(struct qn_output *o, const struct qn_report *r,
                             char *error)
{
    FILE *f = qn_output_path_open(o->hgrm);
    if (f == NULL) {
        return fail(error, "--hgrm", o->hgrm, errno);
    }
    struct qn_op_stats *sum = calloc(1, sizeof *sum);
    if (sum != NULL) {
        char about[QN_REPORT_ABOUT_MAX];
        qn_report_about(r, about);
        qn_stats_sum(r->total, sum);
        qn_hdr_format_write(f, &sum->latency, about);
    }
    int why = qn_output_path_close(f);
    bool good = sum != NULL;
    free(sum);
    if (why != 0) {
        return fail(error, "--hgrm", o->hgrm, why);
    }
    return good ? QN_OK : QN_ENOMEM;
}

static int finish_plot(struct qn_output *o, const struct qn_report *r,
                       char *error)
{
    FILE *f = qn_output_path_open(o->plot);
    if (f == NULL) {
        return fail(error, "--plot", o->plot, errno);
    }
    int err = qn_load_plot_write(f, r, o->second, o->count);
    int why = qn_output_path_close(f);
    return why == 0 ? err : fail(error, "--plot", o->plot, why);
}

static int finish_stdout(struct qn_output *o, const struct qn_report *r,
                         char *error)
{
    int err = o->json ? qn_report_json_summary(stdout, r)
                      : qn_report_table(qn_output_text(o), r);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        snprintf(error, QN_OUTPUT_ERROR_MAX, "cannot write to stdout: %s",
                 strerror(errno));
        return QN_EIO;
    }
    return err;
}

static int finish_raw(struct qn_output *o, char *error)
{
    int why = qn_output_path_close(o->raw_file);
    o->raw_file = NULL;
    return why == 0 ? QN_OK : fail(error, "--raw", o->raw, why);
}

int qn_output_finish(struct qn_output *o, const struct qn_report *r,
                     char *error)
{
    int err = finish_stdout(o, r, error);
    if (err == QN_OK && o->raw_file != NULL) {
        err = finish_raw(o, error);
    }
    if (err == QN_OK && o->csv != NULL) {
        err = finish_csv(o, error);
    }
    if (err == QN_OK && o->hgrm != NULL) {
        err = finish_hdr_format(o, r, error);
    }
    if (err == QN_OK && o->plot != NULL) {
        err = finish_plot(o, r, error);
    }
    if (err == QN_ENOMEM) {
        snprintf(error, QN_OUTPUT_ERROR_MAX, "%s", qn_strerror(err));
    }
    return err;
}

void qn_output_close(struct qn_output *o)
{
    if (o->csv_file != NULL) {
        qn_output_path_close(o->csv_file);
        o->csv_file = NULL;
    }
    if (o->raw_file != NULL) {
        qn_output_path_close(o->raw_file);
        o->raw_file = NULL;
    }
    free(o->second);
    o->second = NULL;
    o->count = 0;
    o->room = 0;
}
