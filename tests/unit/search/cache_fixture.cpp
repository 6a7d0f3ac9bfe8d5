#include "tests/unit/search/cache_fixture.h"

#include "ir/text.h"

namespace harpe {
namespace {

const Mesh kMesh{.name = "m", .axes = {{"tp", 2}}};

}  // namespace

Program product(std::int64_t m, std::int64_t n, std::int64_t k) {
  const std::string text = "program gemm {\n  axis M = " + std::to_string(m) +
                           "\n  axis N = " + std::to_string(n) +
                           "\n  axis K = " + std::to_string(k) +
                           "\n  buffer a : bf16[M, K] in\n  buffer b : bf16[K, N] in\n"
                           "  buffer c : bf16[M, N] out\n"
                           "  nest mm over (M, N, K) {\n    c sum= matmul(a, b)\n  }\n}\n";
  Checked<Cursor> cursor = Cursor::open(text);
  return parse_program(*cursor).value();
}

CacheKey key_of(std::int64_t m, std::int64_t n, std::int64_t k) {
  Machine machine;
  machine.name = "test";
  return make_cache_key(product(m, n, k), kMesh, machine, {}, "0.1.0");
}

CacheEntry entry_of(CacheKey key, const std::string& label) {
  const std::string text = "commir " + label +
                           " for gemm on m {\n  split M = m0:2 * m1:_\n  place a[m0@tp]\n"
                           "  nest mm {\n    par m0 on tp\n    leaf\n  }\n}\n";
  Checked<Cursor> cursor = Cursor::open(text);
  CachedSchedule schedule{.label = label,
                          .predicted = Picoseconds(412'300'000),
                          .measured = std::nullopt,
                          .memory_bytes = 4096,
                          .form = parse_form(*cursor).value()};
  return {.key = std::move(key), .date = "2026-11-21", .schedules = {schedule}};
}

}  // namespace harpe
