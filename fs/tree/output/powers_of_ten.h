/* Powers of ten to 128 bits, for the shortest decimals of floating-point numbers. */
#pragma once

#include <stdint.h>

#define FS_MIN_POWER_OF_TEN (-292)
#define FS_MAX_POWER_OF_TEN 324

/* 10^k * 2^(127 - floor(log2(10^k))), rounded up: the top bit is set. */
struct fs_power_of_ten {
    uint64_t high, low;
};

/*
 * Return 10^k, for FS_MIN_POWER_OF_TEN <= k <= FS_MAX_POWER_OF_TEN. The first call computes all in
 * about a millisecond. Any thread may call this.
 */
struct fs_power_of_ten fs_power_of_ten(int k);
