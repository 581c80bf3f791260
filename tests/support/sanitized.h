#ifndef QN_TESTS_SANITIZED_H
#define QN_TESTS_SANITIZED_H

/** How many rounds, messages or seeds a test has: `all`, or `few` under a
 *  sanitizer. That makes each up to twenty times slower, and is there for
 *  defects of each line of code; those of one order of events among many are
 *  looked for in release. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define QN_UNSANITIZED(all, few) (few)
#else
#define QN_UNSANITIZED(all, few) (all)
#endif

#endif
