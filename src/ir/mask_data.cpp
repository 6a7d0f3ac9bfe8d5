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

constexpr double kDocuments = 4;   // per row, on average
constexpr double kExtremes = 0.1;  // the share of lengths at each of the two extremes

// A mask that reads a buffer.
struct Use {
  MaskCall call;
  std::int64_t keys = 0;  // the largest length of a sequence
  std::string lengths;    // the buffer of a `length` mask in the same statement, or ""
};

Use make_use(const Program& program, const Stmt& stmt, const MaskCall& call) {
  Use use{.call = call, .keys = size_of(*find_axis(program, call.keys)), .lengths = ""};
  for (const Mask& mask : stmt.masks) {
    const MaskCall beside = read_mask(mask);
    if (beside.contract->kind == MaskKind::Length) use.lengths = beside.data;
    if (beside.contract->kind != MaskKind::Paged) continue;
    use.keys = shape_of(program, *find_buffer(program, beside.data)).back() * beside.number;
  }
  return use;
}

// The mask that reads the buffer. All masks that read it have one kind (check_masks).
std::optional<Use> find_use(const Program& program, const std::string& buffer) {
  for (const std::vector<Nest>* const nests : {&program.nests, &program.given}) {
    for (const Nest& nest : *nests) {
      for (const Stmt& stmt : nest.stmts) {
        for (const Mask& mask : stmt.masks) {
          if (data_of(mask) == buffer) return make_use(program, stmt, read_mask(mask));
        }
      }
    }
  }
  return std::nullopt;
}

std::string print_index(std::int64_t flat, const std::vector<std::int64_t>& shape) {
  std::string out;
  for (std::size_t i = shape.size(); i-- > 0; flat /= shape[i]) {
    out = std::to_string(flat % shape[i]) + (out.empty() ? "" : ", ") + out;
  }
  return "[" + out + "]";
}

// The valid range of a mask buffer's entries.
struct Range {
  std::int64_t low;
  std::int64_t high;
};

std::int64_t count_pages(const Use& use, const Program& program) {
  return size_of(*find_axis(program, use.call.keys)) / use.call.number;
}

std::optional<Range> range_of(const Use& use, const Program& program) {
  if (use.call.contract->kind == MaskKind::Length) return Range{0, use.keys};
  if (use.call.contract->kind == MaskKind::Paged) return Range{-1, count_pages(use, program) - 1};
  return std::nullopt;
}

// How many entries of each row masks read: for a page table those within the row's length.
std::vector<std::int64_t> count_read(const Use& use, const HostTensor& tensor,
                                     const TensorMap& inputs) {
  const std::int64_t length = tensor.shape.empty() ? 1 : tensor.shape.back();
  const std::int64_t rows = length == 0 ? 0 : element_count(tensor) / length;
  std::vector<std::int64_t> read(static_cast<std::size_t>(rows), length);
  const auto lengths = inputs.find(use.lengths);
  const bool is_cut = use.call.contract->kind == MaskKind::Paged && lengths != inputs.end() &&
                      element_count(lengths->second) == rows;
  for (std::int64_t row = 0; is_cut && row < rows; ++row) {
    const auto keys = static_cast<std::int64_t>(load(lengths->second, row));
    const std::int64_t pages = (std::max<std::int64_t>(keys, 0) - 1) / use.call.number + 1;
    read[static_cast<std::size_t>(row)] = keys <= 0 ? 0 : std::min(pages, length);
  }
  return read;
}

// Requires: no entry that is read names a page above `last`.
Checked<Ok> check_pages(const std::string& name, const HostTensor& tensor, std::int64_t last,
                        const std::vector<std::int64_t>& read) {
  const std::int64_t length = tensor.shape.back();
  std::vector<std::int64_t> user(static_cast<std::size_t>(last) + 1);
  for (std::size_t row = 0; row < read.size(); ++row) {
    std::ranges::fill(user, -1);
    const std::int64_t begin = static_cast<std::int64_t>(row) * length;
    for (std::int64_t i = begin; i < begin + read[row]; ++i) {
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

// Consecutive documents with ascending ids.
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

// Every row gets some of `pages` pages in any order; further entries are -1.
void draw_pages(const HostTensor& uniform, std::int64_t pages, HostTensor& out) {
  const std::int64_t length = out.shape.back();
  std::vector<std::int64_t> left(static_cast<std::size_t>(pages));
  for (std::int64_t row = 0; row < element_count(out); row += length) {
    std::iota(left.begin(), left.end(), 0);
    for (std::int64_t i = 0; i < length; ++i) {
      if (i >= pages) {
        store(out, row + i, -1);
        continue;
      }
      const double share = (load(uniform, row + i) + 1) / 2;  // of [0, 1)
      const auto taken = std::min(
          pages - 1, i + static_cast<std::int64_t>(share * static_cast<double>(pages - i)));
      std::swap(left[static_cast<std::size_t>(i)], left[static_cast<std::size_t>(taken)]);
      store(out, row + i, static_cast<double>(left[static_cast<std::size_t>(i)]));
    }
  }
}

}  // namespace

Checked<Ok> check_mask_data(const Program& program, const Buffer& buffer, const TensorMap& inputs) {
  const std::optional<Use> use = find_use(program, buffer.name);
  const std::optional<Range> range = use ? range_of(*use, program) : std::nullopt;
  if (!range) return Ok{};
  const HostTensor& tensor = inputs.at(buffer.name);
  const std::vector<std::int64_t> read = count_read(*use, tensor, inputs);
  const std::int64_t length = tensor.shape.empty() ? 1 : tensor.shape.back();
  for (std::int64_t i = 0; i < element_count(tensor); ++i) {
    if (i % length >= read[static_cast<std::size_t>(i / length)]) continue;
    const auto value = static_cast<std::int64_t>(load(tensor, i));
    if (value >= range->low && value <= range->high) continue;
    return make_diag(DiagCode::P220, {{"name", buffer.name},
                                      {"value", value},
                                      {"index", print_index(i, tensor.shape)},
                                      {"mask", use->call.contract->name},
                                      {"low", range->low},
                                      {"high", range->high}});
  }
  return use->call.contract->kind == MaskKind::Paged
             ? check_pages(buffer.name, tensor, range->high, read)
             : Checked<Ok>(Ok{});
}

HostTensor draw_input(const Program& program, const Buffer& buffer, std::uint64_t seed) {
  const std::vector<std::int64_t> shape = shape_of(program, buffer);
  const std::optional<Use> use = find_use(program, buffer.name);
  if (!use) return random_tensor(buffer.dtype, shape, seed, buffer.name);
  const HostTensor uniform = random_tensor(DType::F64, shape, seed, buffer.name);
  HostTensor out = make_tensor(buffer.dtype, shape);
  const MaskKind kind = use->call.contract->kind;
  if (kind == MaskKind::Doc) draw_documents(uniform, out);
  if (kind == MaskKind::Length) draw_lengths(uniform, use->keys, out);
  if (kind == MaskKind::Paged) draw_pages(uniform, count_pages(*use, program), out);
  return out;
}

}  // namespace harpe
