#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes trend-reference.txt: slopes and standard errors of floors in exact rational arithmetic.

A line is: slope and standard error in bytes per hour (rounded to the nearest), then the floors of successive minutes
in KiB, "-" for a minute without one. The square root is taken with 60 digits."""
import random
from decimal import Decimal, getcontext
from fractions import Fraction

getcontext().prec = 60
PER_HOUR = 1024 * 60


def reference(floors):
    points = [(Fraction(x), Fraction(y)) for x, y in enumerate(floors) if y is not None]
    n = len(points)
    mean_x = sum(x for x, _ in points) / n
    mean_y = sum(y for _, y in points) / n
    sxx = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sxx
    rest = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in points)
    square = rest / (n - 2) / sxx * PER_HOUR ** 2
    error = (Decimal(square.numerator) / Decimal(square.denominator)).sqrt()
    exact = slope * PER_HOUR
    return round(exact), int(error.to_integral_value())


def cases(rnd):
    top = 2 ** 32 - 2
    yield [1000] * 15
    yield [0] * 120
    yield [top] * 120
    yield [i * 1024 for i in range(120)]
    yield [(119 - i) * 1024 for i in range(120)]
    yield [i * (top // 119) for i in range(120)]
    yield [top if i % 2 else 0 for i in range(120)]
    yield [0 if i < 60 else top for i in range(120)]
    yield [top if i < 60 else 0 for i in range(120)]
    yield [top if i == 119 else 0 for i in range(120)]
    yield [1 if i == 119 else 0 for i in range(120)]
    yield [top - (i % 3) for i in range(119)]
    yield [None] * 105 + [5 * i for i in range(15)]
    yield [7 * i if i % 8 == 0 else None for i in range(120)]
    yield [300000 + 8000 * (i % 60 < 5) for i in range(120)]
    yield [100000 + (i % 120) * 2000 for i in range(120)]
    for _ in range(120):
        n = rnd.randint(15, 120)
        slope = rnd.randint(-30000, 30000) / rnd.choice([1, 10, 100, 1000])
        noise = rnd.choice([0, 1, 10, 1000, 100000])
        start = rnd.randint(0, 2 ** rnd.randint(4, 31))
        floors = [min(top, max(0, int(start + slope * i) + rnd.randint(-noise, noise)))
                  for i in range(n)]
        if rnd.random() < 0.3:
            for i in range(n):
                if rnd.random() < 0.2 and sum(f is not None for f in floors) > 15:
                    floors[i] = None
        yield floors
    for _ in range(40):
        yield [rnd.randint(0, top) for _ in range(rnd.randint(15, 120))]


for floors in cases(random.Random(20260601)):
    slope, error = reference(floors)
    print(slope, error, *("-" if f is None else f for f in floors))
