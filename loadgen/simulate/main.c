/*
 * The program behind `quoin sim`. It is a program of its own because the
 * library in it is compiled for the simulated machine: its functions have the
 * names of those in quoin, which run on the real one.
 */

#include "loadgen/simulate/command.h"

int main(int argc, char **argv)
{
    return qn_simulate_command(argc, argv);
}
