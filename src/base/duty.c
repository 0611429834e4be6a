/* SPDX-License-Identifier: MIT */
/* The duty limit's arithmetic. Layer: base; pure. */
#include "base/duty.h"

#include "base/macros.h"

uint64_t duty_interval_usec(uint64_t cost_usec) {
        return mg_scale(cost_usec, 10000, MG_DUTY_PERMYRIAD);
}

uint64_t duty_predict_usec(uint64_t cost_usec, uint64_t then_bytes, uint64_t now_bytes) {
        then_bytes = MG_MAX(then_bytes, MG_DUTY_GRAIN_BYTES);
        return now_bytes <= then_bytes ? cost_usec : mg_scale(cost_usec, now_bytes, then_bytes);
}
