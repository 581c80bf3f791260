# shellcheck shell=bash
# Sourced at the top of the tree, before anything is compiled: ccache names files
# from here on, so that what one clone has compiled is of use to the next one. What
# the caller has set stays.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD}
export CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-1}
export CCACHE_DEPEND=${CCACHE_DEPEND:-1}
