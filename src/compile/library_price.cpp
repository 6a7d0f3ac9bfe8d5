#include "compile/library_price.h"

#include <algorithm>
#include <array>

#include "compile/library_operators.h"
#include "leaves/leaf.h"
#include "machine/rates.h"
#include "schedule/named/gemm_shape.h"

namespace harpe {
namespace {

// How much later than plans the libraries' graphs begin behind each other. Fitted to 16 GEMMs with
// NCCL on two H200, 2026-11-28.
constexpr Picoseconds kGraphStart = from_microseconds(3.5);

constexpr double kBytes = 2;  // of a bf16 or f16 element

// For an operator of a GEMM and one collective: the GEMM of one rank, and the bytes it contributes.
struct Way {
  std::string_view name;
  CollectiveKind collective = CollectiveKind::AllGather;
  double bytes = 0;
  double rows = 0;
  double columns = 0;
  double depth = 0;

  [[nodiscard]] LeafShape shape() const {
    return {.rows = rows,
            .columns = columns,
            .depth = depth,
            .flops = 2 * rows * columns * depth,
            .bytes = kBytes * (rows * depth + depth * columns + rows * columns)};
  }
};

bool divides(std::int64_t ranks, const SizedAxis& first, const SizedAxis& second) {
  return first.size % ranks == 0 && second.size % ranks == 0;
}

std::optional<Way> way_of(const std::string& op, const GemmShape& shape, std::int64_t ranks) {
  const auto m = static_cast<double>(shape.m.size);
  const auto n = static_cast<double>(shape.n.size);
  const auto k = static_cast<double>(shape.k.size);
  const auto all = static_cast<double>(ranks);
  if (op == "ag_gemm" && divides(ranks, shape.m, shape.n)) {
    return Way{.name = "all-gather, GEMM",
               .collective = CollectiveKind::AllGather,
               .bytes = kBytes * m * k / all,
               .rows = m,
               .columns = n / all,
               .depth = k};
  }
  if (op == "gemm_rs" && divides(ranks, shape.m, shape.k)) {
    return Way{.name = "GEMM, reduce-scatter",
               .collective = CollectiveKind::ReduceScatter,
               .bytes = kBytes * m * n,
               .rows = m,
               .columns = n,
               .depth = k / all};
  }
  if (op == "gemm_ar" && shape.k.size % ranks == 0) {
    return Way{.name = "GEMM, all-reduce",
               .collective = CollectiveKind::AllReduce,
               .bytes = kBytes * m * n,
               .rows = m,
               .columns = n,
               .depth = k / all};
  }
  return std::nullopt;
}

bool has_gemm_samples(const Machine& machine, std::string_view dtype) {
  return std::ranges::any_of(machine.samples, [&](const LeafSample& sample) {
    return is_leaf(sample.leaf, Leaf::Matmul) && sample.dtype == dtype &&
           sample.by != Supplier::Own;
  });
}

}  // namespace

bool LibraryPrice::is_faster() const {
  constexpr double kSurely = 0.9;
  return ratio() < kSurely;
}

std::optional<LibraryPrice> price_libraries(const Program& program,
                                            const std::vector<std::string>& parameters,
                                            const Mesh& mesh, const Machine& machine,
                                            Picoseconds schedule) {
  const std::int64_t ranks = mesh.ranks();
  const bool is_one_host = ranks > 1 && ranks <= machine.levels.front().size;
  if (!is_one_host || !check_library_ways(program, parameters).ok()) return std::nullopt;
  const Checked<GemmShape> shape = read_gemm(program);
  if (!shape.ok()) return std::nullopt;
  const std::optional<Way> way = way_of(program.name, *shape, ranks);
  const std::string_view dtype = print(find_buffer(program, shape->a)->dtype);
  if (!way || !has_gemm_samples(machine, dtype) ||
      !collective_samples_of(machine, way->collective, 0, ranks, Supplier::Library)) {
    return std::nullopt;
  }
  const Processor& processor = machine.processor;
  const Picoseconds launches = processor.kernel_start + processor.kernel_start;
  return LibraryPrice{
      .way = std::string(way->name),
      .time =
          kGraphStart + processor.execution_start + launches +
          collective_time(machine, way->collective, 0, ranks, way->bytes, 0, Supplier::Library) +
          leaf_time(machine, print(Leaf::Matmul), dtype, way->shape(), false, Supplier::Library),
      .schedule = schedule};
}

}  // namespace harpe
