#include "oracle/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { MOST_THREADS = 64 };

struct work {
    int64_t rows;
    atomic_int_fast64_t next;
    void (*row)(void *context, int64_t index);
    void *context;
};

static void *work_main(void *argument) {
    struct work *work = argument;
    for (int64_t i = atomic_fetch_add(&work->next, 1); i < work->rows;
         i = atomic_fetch_add(&work->next, 1))
        work->row(work->context, i);
    return NULL;
}

void parallel_rows(int64_t rows, int threads, void (*row)(void *context, int64_t index),
                   void *context) {
    struct work work = {.rows = rows, .row = row, .context = context};
    pthread_t started[MOST_THREADS];
    int64_t wanted = threads > 0 ? threads : sysconf(_SC_NPROCESSORS_ONLN);
    int count = 0;
    if (wanted > rows)
        wanted = rows;
    if (wanted > MOST_THREADS)
        wanted = MOST_THREADS;
    while (count + 1 < wanted && pthread_create(&started[count], NULL, work_main, &work) == 0)
        count++;
    work_main(&work);
    for (int i = 0; i < count; i++)
        pthread_join(started[i], NULL);
}
