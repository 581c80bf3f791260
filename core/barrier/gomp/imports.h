#ifndef QN_BARRIER_GOMP_IMPORTS_H
#define QN_BARRIER_GOMP_IMPORTS_H

/**
 * Does this program use tasks or cancellation of OpenMP?
 *
 * GOMP's barrier also runs the tasks of its team, and a cancelled region leaves
 * it early. Ours does neither, so it must not be used in a program that imports
 * a function of libgomp for tasks (GOMP_task...), for offloading, which may
 * make tasks (GOMP_target...), or for cancellation (GOMP_cancel...).
 */

#include <stdbool.h>

/**
 * Look at all objects that are loaded: the program, its libraries, and what was
 * loaded by dlopen. They are read again only if something was loaded since.
 *
 * Any thread. Two loads, as long as nothing was loaded by dlopen; else it takes
 * a lock of the dynamic linker, some tens of ns. The first time it reads all
 * relocations, about 1 ms.
 */
bool qn_gomp_imports_tasks(void);

#endif
