/* Ends this process when it does not come back from foreign code in time: the only way out of a
 * library that loops where nothing can be cancelled. */
#ifndef TOPP_BENCH_WATCHDOG_H
#define TOPP_BENCH_WATCHDOG_H

#include <stdbool.h>

/* Once a process. exit_code: of the process when a deadline passes. */
bool watchdog_start(int exit_code);

/* Sets a deadline so many seconds ahead, 0: none; returns the one that stood, to be put back by
 * watchdog_back(). The earlier of the two counts. */
double watchdog_arm(double seconds);
void watchdog_back(double deadline);

#endif
