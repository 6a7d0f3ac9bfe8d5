#pragma once

#include <string>

#include "plan/plan.h"

namespace harpe::test {

// y = x, with x[m0@gpu] and y on every rank: each rank copies every block to a slot and then to y.
[[nodiscard]] Plan exchange(std::int64_t ranks, std::int64_t size, bool collective);

// c = a b with a's rows and b's columns distributed. Every rank pulls a's blocks one after another
// into two slots. The plan is the same for all sizes.
[[nodiscard]] Plan gather_gemm(std::int64_t ranks, std::int64_t m, std::int64_t n, std::int64_t k,
                               const std::string& dtype);

// c = a b with the contraction distributed. Every rank pushes its partial blocks to the owners'
// inboxes, and owners combine them in ascending rank. With `collective`, a reduce-scatter does
// both.
[[nodiscard]] Plan scatter_gemm(std::int64_t ranks, std::int64_t m, std::int64_t n, std::int64_t k,
                                const std::string& dtype, bool collective);

// Attention with keys distributed: partial (o, l) states go to the owners of the queries.
[[nodiscard]] Plan split_keys(std::int64_t ranks, std::int64_t queries, std::int64_t keys,
                              bool causal, const std::string& dtype);

}  // namespace harpe::test
