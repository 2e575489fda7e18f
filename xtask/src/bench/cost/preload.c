/* Loaded before libc: counts how often a program allocates memory, thread by thread, in a file that
 * others can read meanwhile, and at its exit how often it gave up its processor. See preload.rs. */

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILE_VARIABLE "LASTBYTE_COST_FILE"
#define THREADS 255

struct counts {
  uint64_t switches, unused;
  struct thread { uint64_t tid, allocations; } threads[THREADS];
};

static struct counts before_the_file;
static struct counts *counts = &before_the_file;
static unsigned taken;
static __thread unsigned own; /* 1 + the index of this thread's counts */

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static void count(void) {
  if (own == 0) {
    unsigned next = __atomic_add_fetch(&taken, 1, __ATOMIC_RELAXED);
    own = next < THREADS ? next : THREADS;
    counts->threads[own - 1].tid = syscall(SYS_gettid);
  }
  __atomic_add_fetch(&counts->threads[own - 1].allocations, 1, __ATOMIC_RELAXED);
}

void *malloc(size_t size) { count(); return __libc_malloc(size); }
void *calloc(size_t number, size_t size) { count(); return __libc_calloc(number, size); }
void *realloc(void *old, size_t size) { count(); return __libc_realloc(old, size); }
void *aligned_alloc(size_t align, size_t size) { count(); return __libc_memalign(align, size); }
int posix_memalign(void **memory, size_t align, size_t size) {
  count();
  *memory = __libc_memalign(align, size);
  return *memory ? 0 : ENOMEM;
}

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv(FILE_VARIABLE);
  int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  void *shared = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (shared == MAP_FAILED) abort();
  close(file);
  own = 0; /* The main thread counts in the file from here on. */
  taken = 0;
  counts = shared;
  /* The commands that the program runs are not counted. */
  unsetenv("LD_PRELOAD");
  unsetenv(FILE_VARIABLE);
}

__attribute__((destructor)) static void end(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  __atomic_add_fetch(&counts->switches, used.ru_nvcsw, __ATOMIC_RELAXED);
}
