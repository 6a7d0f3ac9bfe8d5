#include "measure/limit.h"

#include <algorithm>

namespace harpe {
namespace {

constexpr double kLinkBytesPerUs = 389e3;    // NVLink, per direction
constexpr double kMemoryBytesPerUs = 4.3e6;  // H200, reading
constexpr double kOneKernelUs = 5.5;         // a graph of one kernel, its ramp and its end

double bytes_of(const Program& program, const char* name) {
  const Buffer* const buffer = find_buffer(program, name);
  if (buffer == nullptr) return 0;
  double elements = 1;
  for (const std::int64_t size : shape_of(program, *buffer)) elements *= static_cast<double>(size);
  return elements * static_cast<double>(size_in_bytes(buffer->dtype));
}

double fixed_us_of(std::string_view op, double ranks) {
  if (ranks <= 1) return kOneKernelUs;
  if (op == "ag_gemm") return 6;
  if (op == "gemm_rs") return 7;
  if (op == "gemm_ar") return ranks <= 2 ? 7 : 9;
  if (op == "decode") return 8;
  return op == "moe" ? 15 : 7;
}

}  // namespace

std::optional<double> Limit::total_us() const {
  if (!arithmetic_us && !is_of_memory) return std::nullopt;
  const double local = is_of_memory ? memory_us : std::max(*arithmetic_us, memory_us);
  return std::max(local, link_us) + fixed_us;
}

double least_link_bytes(const Program& program, double ranks) {
  const std::string& op = program.name;
  const double others = (ranks - 1) / ranks;
  if (op == "ag_gemm") return others * bytes_of(program, "a");
  if (op == "gemm_rs") return others * bytes_of(program, "c");
  if (op == "gemm_ar") return 2 * others * bytes_of(program, "c");
  if (op == "attention") {
    const double keys = bytes_of(program, "k") + bytes_of(program, "v");
    const double all = keys + bytes_of(program, "q") + bytes_of(program, "o");
    return others * std::min(keys, all / ranks);
  }
  if (op == "attention_bwd") {
    const double keys = bytes_of(program, "k") + bytes_of(program, "v") + bytes_of(program, "dk") +
                        bytes_of(program, "dv");
    // Only the inner product of o and do is needed of o: one number per row, like lse.
    const double all = keys + bytes_of(program, "q") + bytes_of(program, "do") +
                       bytes_of(program, "dq") + 2 * bytes_of(program, "lse");
    return others * std::min(keys, all / ranks);
  }
  // Each rank's state of every row.
  if (op == "decode") return (ranks - 1) * (bytes_of(program, "o") + bytes_of(program, "lse"));
  return 0;
}

Limit make_limit(const Program& program, std::string_view op, double ranks) {
  Limit limit;
  limit.link_us = least_link_bytes(program, ranks) / kLinkBytesPerUs;
  limit.fixed_us = fixed_us_of(op, ranks);
  double bytes = 0;
  if (op == "decode") bytes = bytes_of(program, "k") + bytes_of(program, "v");
  if (op == "moe") {
    for (const char* const weights : {"w1", "w2", "w3"}) bytes += bytes_of(program, weights);
  }
  limit.memory_us = bytes / ranks / kMemoryBytesPerUs;
  limit.is_of_memory = op == "decode";
  return limit;
}

}  // namespace harpe
