#ifndef QN_TESTS_OPENMP_PLUGIN_H
#define QN_TESTS_OPENMP_PLUGIN_H

/** @return how often a value in front of a barrier was not seen behind it. */
int openmp_plugin(void);

#endif
