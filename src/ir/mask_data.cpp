#include "ir/mask_data.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "ir/mask_contract.h"

namespace harpe {
namespace {

constexpr double kDocuments = 4;   // a row, on average
constexpr double kExtremes = 0.1;  // of lengths: of each of the two ends

std::optional<MaskCall> find_use(const std::vector<Nest>& nests, const std::string& buffer) {
  for (const Nest& nest : nests) {
    for (const Stmt& stmt : nest.stmts) {
      for (const Mask& mask : stmt.masks) {
        if (data_of(mask) == buffer) return read_mask(mask);
      }
    }
  }
  return std::nullopt;
}

// The mask that reads the buffer; all that do are of one kind (check_masks).
std::optional<MaskCall> find_use(const Program& program, const std::string& buffer) {
  const std::optional<MaskCall> use = find_use(program.nests, buffer);
  return use ? use : find_use(program.given, buffer);
}

std::string print_index(std::int64_t flat, const std::vector<std::int64_t>& shape) {
  std::string out;
  for (std::size_t i = shape.size(); i-- > 0; flat /= shape[i]) {
    out = std::to_string(flat % shape[i]) + (out.empty() ? "" : ", ") + out;
  }
  return "[" + out + "]";
}

// What the entries of a mask's buffer may be.
struct Range {
  std::int64_t low;
  std::int64_t high;
};

std::optional<Range> range_of(const MaskCall& use, const Program& program, const Buffer& buffer) {
  const std::int64_t keys = size_of(*find_axis(program, use.keys));
  if (use.contract->kind == MaskKind::Length) return Range{0, keys};
  if (use.contract->kind == MaskKind::Paged) return Range{-1, shape_of(program, buffer).back() - 1};
  return std::nullopt;
}

// Requires: no page above `last`.
Checked<Ok> check_pages(const std::string& name, const HostTensor& tensor, std::int64_t last) {
  const std::int64_t length = tensor.shape.back();
  std::vector<std::int64_t> user(static_cast<std::size_t>(last) + 1);
  for (std::int64_t row = 0; row < element_count(tensor); row += length) {
    std::ranges::fill(user, -1);
    for (std::int64_t i = row; i < row + length; ++i) {
      const auto page = static_cast<std::int64_t>(load(tensor, i));
      if (page < 0) continue;
      std::int64_t& first = user[static_cast<std::size_t>(page)];
      if (first >= 0) {
        return make_diag(DiagCode::P221, {{"name", name},
                                          {"value", page},
                                          {"first", print_index(first, tensor.shape)},
                                          {"index", print_index(i, tensor.shape)}});
      }
      first = i;
    }
  }
  return Ok{};
}

// Documents that follow each other, ids ascending.
void draw_documents(const HostTensor& uniform, HostTensor& out) {
  const std::int64_t length = out.shape.back();
  const double border = 2 * (kDocuments - 1) / static_cast<double>(length) - 1;
  double id = 0;
  for (std::int64_t i = 0; i < element_count(out); ++i) {
    if (i % length == 0) {
      id = 0;
    } else if (load(uniform, i) < border) {
      ++id;
    }
    store(out, i, id);
  }
}

void draw_lengths(const HostTensor& uniform, std::int64_t keys, HostTensor& out) {
  for (std::int64_t i = 0; i < element_count(out); ++i) {
    const double share = (load(uniform, i) + 1) / 2;  // of [0, 1)
    const double inner = std::clamp((share - kExtremes) / (1 - 2 * kExtremes), 0.0, 1.0);
    store(out, i, std::ceil(inner * static_cast<double>(keys)));
  }
}

void draw_pages(const HostTensor& uniform, HostTensor& out) {
  const std::int64_t pages = out.shape.back();
  std::vector<std::int64_t> order(static_cast<std::size_t>(pages));
  for (std::int64_t row = 0; row < element_count(out); row += pages) {
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](std::int64_t i) { return load(uniform, row + i); });
    for (std::int64_t i = 0; i < pages; ++i) {
      store(out, row + i, static_cast<double>(order[static_cast<std::size_t>(i)]));
    }
  }
}

}  // namespace

Checked<Ok> check_mask_data(const Program& program, const Buffer& buffer,
                            const HostTensor& tensor) {
  const std::optional<MaskCall> use = find_use(program, buffer.name);
  const std::optional<Range> range = use ? range_of(*use, program, buffer) : std::nullopt;
  if (!range) return Ok{};
  for (std::int64_t i = 0; i < element_count(tensor); ++i) {
    const auto value = static_cast<std::int64_t>(load(tensor, i));
    if (value >= range->low && value <= range->high) continue;
    return make_diag(DiagCode::P220, {{"name", buffer.name},
                                      {"value", value},
                                      {"index", print_index(i, tensor.shape)},
                                      {"mask", use->contract->name},
                                      {"low", range->low},
                                      {"high", range->high}});
  }
  return use->contract->kind == MaskKind::Paged ? check_pages(buffer.name, tensor, range->high)
                                                : Checked<Ok>(Ok{});
}

HostTensor draw_input(const Program& program, const Buffer& buffer, std::uint64_t seed) {
  const std::vector<std::int64_t> shape = shape_of(program, buffer);
  const std::optional<MaskCall> use = find_use(program, buffer.name);
  if (!use) return random_tensor(buffer.dtype, shape, seed, buffer.name);
  const HostTensor uniform = random_tensor(DType::F64, shape, seed, buffer.name);
  HostTensor out = make_tensor(buffer.dtype, shape);
  if (use->contract->kind == MaskKind::Doc) draw_documents(uniform, out);
  if (use->contract->kind == MaskKind::Length) {
    draw_lengths(uniform, size_of(*find_axis(program, use->keys)), out);
  }
  if (use->contract->kind == MaskKind::Paged) draw_pages(uniform, out);
  return out;
}

}  // namespace harpe
