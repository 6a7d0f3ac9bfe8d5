#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "support/diag.h"
#include "verify/order.h"
#include "verify/words.h"

namespace harpe::verifier {

// What occupies a rank's SMs as one kernel: the tasks of a queue from the first to the last with
// one kernel number, including those between. A task without a number is a launch by itself.
struct Launch {
  RankId rank;
  std::int32_t queue = 0;
  std::int32_t begin = 0;      // position in the queue
  std::int32_t end = 0;        // one past the last
  std::int32_t kernel = -1;    // as Task::kernel
  std::int64_t sms = 0;        // SMs that it gets
  bool is_collective = false;  // its members wait for each other inside the kernel
};

// SMs of a transfer without an SM budget: the number in the matrix of commir.md 7.4 for kernels
// that copy.
constexpr std::int64_t kTransferSms = 16;

// The launches of every queue that uses SMs, queue by queue in order.
// Requires: check_ids. Errors: V531.
[[nodiscard]] Checked<std::vector<Launch>> find_launches(const Plan& plan, const Order& order,
                                                         const Words& words, std::int64_t sm_count);

// "kernel 3 (tasks 10 to 14, fwd.0)"
[[nodiscard]] std::string name_of(const Launch& launch, const Plan& plan, const Order& order,
                                  const Words& words);

}  // namespace harpe::verifier
