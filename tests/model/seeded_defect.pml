/*
 * Five states in a row, to see check.py fail (test_check.py).
 * Knobs: WRONG an assertion fails at the end; STUCK it stops before its end.
 */
byte x = 0;
active proctype counts() {
  do
  :: x < 5 -> x++
  :: x == 5 -> break
  od;
#ifdef WRONG
  assert(x != 5)
#endif
#ifdef STUCK
  x == 6
#endif
}
