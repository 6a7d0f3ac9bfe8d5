#include "measure/baselines/gemms.h"

#include "measure/baselines/baselines.h"

namespace harpe::library {
namespace {

using cuda::DeviceAddress;

// The operands of one rank's GEMM.
struct Operands {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  DeviceAddress a = 0;
  DeviceAddress b = 0;
  DeviceAddress c = 0;
};

Checked<std::vector<Step>> ways_of(const Member& member, const Operands& at,
                                   device::Element element) {
  return gemm_ways(*member.products,
                   {.m = at.m,
                    .n = at.n,
                    .k = at.k,
                    .in = element,
                    .out = element,
                    .layout = device::GemmLayout::NMajor,
                    .a_stride = at.k,
                    .b_stride = at.n,
                    .c_stride = at.n},
                   {.a = at.a, .b = at.b, .c = at.c});
}

// a [m/ranks, k], gathered; b [k, n/ranks]; c [m, n/ranks].
Checked<Ok> add_gathered_gemm(Member& member, const Subject& s, int ranks, BaselineParts& parts) {
  HP_TRY(const std::int64_t rows, share_of("rows", s.m, ranks));
  HP_TRY(const std::int64_t columns, share_of("columns", s.n, ranks));
  Work& work = *parts.work.emplace_back(std::make_unique<Work>());
  HP_TRY(const DeviceAddress own, work.reserve(member, rows * s.k * kElementBytes));
  Operands at{.m = s.m, .n = columns, .k = s.k};
  HP_TRY(at.a, work.reserve(member, s.m * s.k * kElementBytes));
  HP_TRY(at.b, work.reserve(member, s.k * columns * kElementBytes));
  HP_TRY(at.c, work.reserve(member, s.m * columns * kElementBytes));
  const device::Element element = element_of(s.dtype);
  HP_TRY(std::vector<Step> ways, ways_of(member, at, element));
  const Elements sent{.address = own, .count = rows * s.k, .type = element};
  work.steps.emplace_back([&member, sent, to = at.a](CUstream stream) {
    return member.nccl->all_gather(sent, to, stream);
  });
  work.add_arithmetic(std::move(ways));
  const int r = member.rank;
  const std::int64_t row = rows * s.k * kElementBytes;
  parts.tensors["a"].parts.push_back(
      {.rank = r, .address = own, .offset = r * row, .pitch = row, .bytes = row});
  const std::int64_t width = columns * kElementBytes;
  const std::int64_t pitch = s.n * kElementBytes;
  parts.tensors["b"].parts.push_back({r, at.b, r * width, pitch, width, s.k});
  parts.tensors["c"].parts.push_back({r, at.c, r * width, pitch, width, s.m});
  return Ok{};
}

// a [m, k/ranks]; b [k/ranks, n]; c summed over the ranks: rows of each rank, or all rows.
Checked<Ok> add_reduced_gemm(Member& member, const Subject& s, int ranks, BaselineParts& parts) {
  HP_TRY(const std::int64_t depth, share_of("terms", s.k, ranks));
  const bool scatters = s.op == "gemm_rs";
  HP_TRY(const std::int64_t rows, scatters ? share_of("rows", s.m, ranks) : Checked(s.m));
  Work& work = *parts.work.emplace_back(std::make_unique<Work>());
  Operands at{.m = s.m, .n = s.n, .k = depth};
  HP_TRY(at.a, work.reserve(member, s.m * depth * kElementBytes));
  HP_TRY(at.b, work.reserve(member, depth * s.n * kElementBytes));
  HP_TRY(at.c, work.reserve(member, s.m * s.n * kElementBytes));
  const device::Element element = element_of(s.dtype);
  HP_TRY(std::vector<Step> ways, ways_of(member, at, element));
  work.add_arithmetic(std::move(ways));
  Elements sums{.address = at.c, .count = rows * s.n, .type = element};
  if (scatters) {
    HP_TRY(sums.address, work.reserve(member, rows * s.n * kElementBytes));
    work.steps.emplace_back([&member, sums, from = at.c](CUstream stream) {
      return member.nccl->reduce_scatter(from, sums, stream);
    });
  } else {
    work.steps.emplace_back(
        [&member, sums](CUstream stream) { return member.nccl->all_reduce(sums, stream); });
  }
  const int r = member.rank;
  const std::int64_t width = depth * kElementBytes;
  parts.tensors["a"].parts.push_back({r, at.a, r * width, s.k * kElementBytes, width, s.m});
  const std::int64_t b_bytes = depth * s.n * kElementBytes;
  parts.tensors["b"].parts.push_back({r, at.b, r * b_bytes, b_bytes, b_bytes, 1});
  const std::int64_t c_bytes = rows * s.n * kElementBytes;
  if (scatters || r == 0) {
    parts.tensors["c"].parts.push_back({r, sums.address, r * c_bytes, c_bytes, c_bytes, 1});
  }
  return Ok{};
}

}  // namespace

Checked<std::vector<Step>> gemm_ways(const Result<CublasLt, Missing>& library,
                                     const LibraryGemmShape& shape, const GemmAddresses& at) {
  const auto refuse = [](const std::string& reason) {
    return make_diag(DiagCode::G081, {{"what", "GEMMs"}, {"reason", reason}});
  };
  if (!library.ok()) return refuse(library.error().reason);
  auto made = library->prepare(shape);
  if (!made.ok()) return refuse(made.error().reason);
  const std::shared_ptr<const LibraryGemm> gemm = std::move(made).value();
  if (gemm->algorithms() == 0) return refuse("cuBLASLt names no algorithm");
  std::vector<Step> ways;
  for (int i = 0; i < gemm->algorithms(); ++i) {
    ways.emplace_back([gemm, at, i](CUstream stream) -> Checked<Ok> {
      if (gemm->launch(i, at.a, at.b, at.c, stream)) return Ok{};
      return refused("cublasLtMatmul", "cuBLASLt");
    });
  }
  return ways;
}

Checked<std::unique_ptr<Baseline>> make_gemm_baseline(const std::shared_ptr<Team>& team,
                                                      const Subject& subject) {
  BaselineParts parts;
  parts.tensors["a"] = {.dtype = subject.dtype, .shape = {subject.m, subject.k}, .parts = {}};
  parts.tensors["b"] = {.dtype = subject.dtype, .shape = {subject.k, subject.n}, .parts = {}};
  parts.tensors["c"] = {.dtype = subject.dtype, .shape = {subject.m, subject.n}, .parts = {}};
  for (int rank = 0; rank < team->ranks(); ++rank) {
    Member& member = team->member(rank);
    const auto current = member.device.make_current();
    if (!current.ok()) return cuda::to_diag(current.error());
    const auto add = subject.op == "ag_gemm" ? add_gathered_gemm : add_reduced_gemm;
    HP_REQUIRE_OK(add(member, subject, team->ranks(), parts));
  }
  return std::make_unique<Baseline>(team, std::move(parts));
}

}  // namespace harpe::library
