/* Sits between a program and the system: fails the n-th call of a kind, or notes every change of the disk.
 *
 * Loaded with LD_PRELOAD; asleep until disk_arm. Only paths below the armed root count. Kinds are the indices
 * of WRITE to LOCK. A failing write leaves half of its bytes, but for an interrupted one, which leaves none; a
 * failing close closes. fsync only notes: the tests ask what was forced, not that it is. Records: struct head,
 * then path a, path b, data.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE, FSYNC, CLOSE, RENAME, OPEN, UNLINK, LINK, READ, LOCK, KINDS };

struct head {
    uint32_t op, a, b, pad;
    uint64_t offset, size;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static size_t root_length;
static volatile int armed;
static int fails, number, lasting, notes = -1;
static long nth, counts[KINDS];
static char hits[4096];

void disk_stop(void) { armed = 0; }

/* kind: which one fails, or -1; log: a file for the records, or NULL. */
void disk_arm(const char *where, int kind, long n, int error, int all_after, const char *log) {
    snprintf(root, sizeof root, "%s", where);
    root_length = strlen(root);
    memset(counts, 0, sizeof counts);
    fails = kind, nth = n, number = error, lasting = all_after, hits[0] = 0;
    notes = log ? (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
    armed = 1;
}

long disk_count(int kind) { return counts[kind]; }
const char *disk_hits(void) { return hits; }

static int inside(const char *path) {
    return !strncmp(path, root, root_length) && (path[root_length] == '/' || !path[root_length]);
}

static int of_descriptor(int descriptor, char *out) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, out, PATH_MAX - 1);
    if (length < 0) return 0;
    out[length] = 0;
    return 1;
}

/* Whether a path counts; its absolute form is put into out. */
static int counts_at(int folder, const char *path, char *out) {
    if (!armed || !path) return 0;
    if (path[0] == '/') {
        snprintf(out, PATH_MAX, "%s", path);
    } else {
        char base[PATH_MAX];
        if (folder == AT_FDCWD ? syscall(SYS_getcwd, base, sizeof base) < 0 : !of_descriptor(folder, base)) return 0;
        if ((size_t)snprintf(out, PATH_MAX, "%s/%s", base, path) >= PATH_MAX) return 0;
    }
    return inside(out);
}

static int counts_open(int descriptor, char *out) {
    return armed && of_descriptor(descriptor, out) && inside(out);
}

/* Count a call; whether it shall fail. */
static int failing(int kind, const char *path, int writes) {
    long now = __atomic_add_fetch(&counts[kind], 1, __ATOMIC_SEQ_CST);
    if (kind != fails || !(now == nth || (lasting && now > nth))) return 0;
    pthread_mutex_lock(&lock);
    size_t used = strlen(hits);
    if (used + strlen(path) + 4 < sizeof hits)
        snprintf(hits + used, sizeof hits - used, "%c %s\n", writes ? 'w' : 'r', path);
    pthread_mutex_unlock(&lock);
    if (!number) kill(getpid(), SIGKILL);  /* the error 0 stands for the end of the process */
    return 1;
}

static int refuse(void) {
    errno = number;
    return -1;
}

static void put(const void *data, size_t size) {
    while (size) {
        ssize_t n = syscall(SYS_write, notes, data, size);
        if (n <= 0) return;
        data = (const char *)data + n, size -= (size_t)n;
    }
}

static void note(char op, const char *a, const char *b, uint64_t offset, const void *data, uint64_t size) {
    if (notes < 0) return;
    int before = errno;
    struct head head = {(uint32_t)op, (uint32_t)strlen(a), b ? (uint32_t)strlen(b) : 0, 0, offset, size};
    put(&head, sizeof head);
    put(a, head.a);
    if (b) put(b, head.b);
    if (data) put(data, size);
    errno = before;
}

/* The moment when something was promised to the user. */
void disk_mark(const char *text) {
    pthread_mutex_lock(&lock);
    note('M', text, NULL, 0, NULL, 0);
    pthread_mutex_unlock(&lock);
}

/* --- names --- */
/* Whether the error is one that opening may end with: what only reads needs no space, and may be read-only. */
static int fits_opening(int creates, int writes) {
    if (number == ENOSPC || number == EDQUOT) return creates;
    return number != EROFS || creates || writes;
}

static int opening(int folder, const char *path, int flags, mode_t mode) {
    char full[PATH_MAX];
    int counted = counts_at(folder, path, full);
    if (!counted) return (int)syscall(SYS_openat, folder, path, flags, mode);
    int creates = (flags & O_CREAT) != 0, writes = (flags & O_ACCMODE) != O_RDONLY;
    if (fits_opening(creates, writes) && failing(OPEN, full, writes)) return refuse();
    pthread_mutex_lock(&lock);
    int there = !creates || !syscall(SYS_faccessat, AT_FDCWD, full, F_OK);
    int descriptor = (int)syscall(SYS_openat, folder, path, flags, mode);
    if (descriptor >= 0 && !there) note('O', full, NULL, 0, NULL, 0);
    if (descriptor >= 0 && there && (flags & O_TRUNC)) note('S', full, NULL, 0, NULL, 0);
    pthread_mutex_unlock(&lock);
    return descriptor;
}

#define MODE_OF(flags)                                  \
    mode_t mode = 0;                                    \
    if ((flags) & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) { \
        va_list more;                                   \
        va_start(more, flags);                          \
        mode = va_arg(more, mode_t);                    \
        va_end(more);                                   \
    }

int open(const char *path, int flags, ...) { MODE_OF(flags) return opening(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE_OF(flags) return opening(AT_FDCWD, path, flags, mode); }
int openat(int folder, const char *path, int flags, ...) { MODE_OF(flags) return opening(folder, path, flags, mode); }
int openat64(int folder, const char *path, int flags, ...) { MODE_OF(flags) return opening(folder, path, flags, mode); }

/* Python lists a folder by it. */
DIR *opendir(const char *path) {
    char full[PATH_MAX];
    if (counts_at(AT_FDCWD, path, full) && fits_opening(0, 0) && failing(OPEN, full, 0)) {
        errno = number;
        return NULL;
    }
    int descriptor = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    return descriptor < 0 ? NULL : fdopendir(descriptor);
}

static int making(int folder, const char *path, mode_t mode) {
    char full[PATH_MAX];
    if (!counts_at(folder, path, full)) return (int)syscall(SYS_mkdirat, folder, path, mode);
    if (failing(OPEN, full, 1)) return refuse();
    pthread_mutex_lock(&lock);
    int code = (int)syscall(SYS_mkdirat, folder, path, mode);
    if (!code) note('D', full, NULL, 0, NULL, 0);
    pthread_mutex_unlock(&lock);
    return code;
}
int mkdir(const char *path, mode_t mode) { return making(AT_FDCWD, path, mode); }
int mkdirat(int folder, const char *path, mode_t mode) { return making(folder, path, mode); }

enum { RENAMES, LINKS, EXCHANGES };
static int moving(int from_folder, const char *from, int to_folder, const char *to, int how) {
    char a[PATH_MAX], b[PATH_MAX];
    int counted = counts_at(to_folder, to, b);
    counts_at(from_folder, from, a);
    if (counted && failing(how == LINKS ? LINK : RENAME, b, 1)) return refuse();
    if (counted) pthread_mutex_lock(&lock);
    int code = how == LINKS ? (int)syscall(SYS_linkat, from_folder, from, to_folder, to, 0)
                            : (int)syscall(SYS_renameat2, from_folder, from, to_folder, to,
                                           how == EXCHANGES ? RENAME_EXCHANGE : 0);
    if (counted && !code) note("RLE"[how], a, b, 0, NULL, 0);
    if (counted) pthread_mutex_unlock(&lock);
    return code;
}
int rename(const char *from, const char *to) { return moving(AT_FDCWD, from, AT_FDCWD, to, RENAMES); }
int renameat(int f, const char *from, int t, const char *to) { return moving(f, from, t, to, RENAMES); }
int renameat2(int f, const char *from, int t, const char *to, unsigned flags) {
    return moving(f, from, t, to, flags & RENAME_EXCHANGE ? EXCHANGES : RENAMES);
}
int link(const char *from, const char *to) { return moving(AT_FDCWD, from, AT_FDCWD, to, LINKS); }
int linkat(int f, const char *from, int t, const char *to, int flags) { (void)flags; return moving(f, from, t, to, LINKS); }

static int removing(int folder, const char *path, int flags) {
    char full[PATH_MAX];
    if (!counts_at(folder, path, full)) return (int)syscall(SYS_unlinkat, folder, path, flags);
    if (failing(UNLINK, full, 1)) return refuse();
    pthread_mutex_lock(&lock);
    int code = (int)syscall(SYS_unlinkat, folder, path, flags);
    if (!code) note('U', full, NULL, 0, NULL, 0);
    pthread_mutex_unlock(&lock);
    return code;
}
int unlink(const char *path) { return removing(AT_FDCWD, path, 0); }
int unlinkat(int folder, const char *path, int flags) { return removing(folder, path, flags); }
int rmdir(const char *path) { return removing(AT_FDCWD, path, AT_REMOVEDIR); }

/* --- bytes --- */
static ssize_t writing(int descriptor, const void *data, size_t size, off_t at) {
    char full[PATH_MAX];
    int counted = counts_open(descriptor, full);
    int torn = counted && failing(WRITE, full, 1);
    size_t amount = torn ? (number == EINTR ? 0 : size / 2) : size;
    if (counted) pthread_mutex_lock(&lock);
    off_t offset = at;
    if (counted && at < 0) {
        struct stat status;
        offset = lseek(descriptor, 0, SEEK_CUR);
        if ((fcntl(descriptor, F_GETFL) & O_APPEND) && !fstat(descriptor, &status)) offset = status.st_size;
    }
    ssize_t n = at < 0 ? syscall(SYS_write, descriptor, data, amount)
                       : syscall(SYS_pwrite64, descriptor, data, amount, at);
    if (counted && n > 0) note('W', full, NULL, (uint64_t)offset, data, (uint64_t)n);
    if (counted) pthread_mutex_unlock(&lock);
    return torn ? refuse() : n;
}
ssize_t write(int d, const void *data, size_t size) { return writing(d, data, size, -1); }
ssize_t pwrite(int d, const void *data, size_t size, off_t at) { return writing(d, data, size, at); }
ssize_t pwrite64(int d, const void *data, size_t size, off64_t at) { return writing(d, data, size, at); }
ssize_t writev(int d, const struct iovec *some, int n) {
    ssize_t all = 0;
    for (int i = 0; i < n; i++) {
        ssize_t one = writing(d, some[i].iov_base, some[i].iov_len, -1);
        if (one < 0) return all ? all : one;
        all += one;
        if ((size_t)one < some[i].iov_len) break;
    }
    return all;
}

static int fails_to_read(int descriptor) {
    char full[PATH_MAX];
    return counts_open(descriptor, full) && failing(READ, full, 0);
}
ssize_t read(int d, void *data, size_t size) {
    return fails_to_read(d) ? refuse() : syscall(SYS_read, d, data, size);
}
ssize_t pread(int d, void *data, size_t size, off_t at) {
    return fails_to_read(d) ? refuse() : syscall(SYS_pread64, d, data, size, at);
}
ssize_t pread64(int d, void *data, size_t size, off64_t at) { return pread(d, data, size, at); }

static int sizing(int descriptor, off_t size) {
    char full[PATH_MAX];
    int counted = counts_open(descriptor, full);
    if (counted && failing(WRITE, full, 1)) return refuse();
    if (counted) pthread_mutex_lock(&lock);
    int code = (int)syscall(SYS_ftruncate, descriptor, size);
    if (counted && !code) note('S', full, NULL, (uint64_t)size, NULL, 0);
    if (counted) pthread_mutex_unlock(&lock);
    return code;
}
int ftruncate(int d, off_t size) { return sizing(d, size); }
int ftruncate64(int d, off64_t size) { return sizing(d, size); }

static int allocating(int descriptor, int mode, off_t at, off_t size) {
    char full[PATH_MAX];
    int counted = counts_open(descriptor, full);
    if (counted) pthread_mutex_lock(&lock);
    int code = (int)syscall(SYS_fallocate, descriptor, mode, at, size);
    if (counted && !code) {
        char end[32];
        snprintf(end, sizeof end, "%lld", (long long)(at + size));
        note(mode ? 'P' : 'X', full, end, (uint64_t)at, NULL, 0);  /* 'P' frees a part of the file */
    }
    if (counted) pthread_mutex_unlock(&lock);
    return code;
}
int fallocate(int d, int mode, off_t at, off_t size) { return allocating(d, mode, at, size); }
int fallocate64(int d, int mode, off64_t at, off64_t size) { return allocating(d, mode, at, size); }
int posix_fallocate(int d, off_t at, off_t size) { return allocating(d, 0, at, size) ? errno : 0; }
int posix_fallocate64(int d, off64_t at, off64_t size) { return allocating(d, 0, at, size) ? errno : 0; }

/* --- what forces them --- */
static int forcing(int descriptor, long call) {
    char full[PATH_MAX];
    if (!counts_open(descriptor, full)) return (int)syscall(call, descriptor);
    if (failing(FSYNC, full, 1)) return refuse();
    pthread_mutex_lock(&lock);
    note('F', full, NULL, 0, NULL, 0);
    pthread_mutex_unlock(&lock);
    return 0;
}
int fsync(int d) { return forcing(d, SYS_fsync); }
int fdatasync(int d) { return forcing(d, SYS_fdatasync); }

int flock(int descriptor, int operation) {
    char full[PATH_MAX];
    if (counts_open(descriptor, full) && failing(LOCK, full, 1)) return refuse();
    return (int)syscall(SYS_flock, descriptor, operation);
}

int close(int descriptor) {
    char full[PATH_MAX];
    int fail = 0;
    if (counts_open(descriptor, full))
        fail = failing(CLOSE, full, (fcntl(descriptor, F_GETFL) & O_ACCMODE) != O_RDONLY);
    int code = (int)syscall(SYS_close, descriptor);
    return fail ? refuse() : code;
}
