#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"

namespace harpe {

enum class MaskKind : std::uint8_t { Causal, Window, Prefix, Doc, Length, Paged };

// The arguments of a mask: axes first (queries and keys, or keys alone), then a number, then a
// buffer of integers that it reads. program.h defines each mask.
struct MaskContract {
  std::string_view name;
  MaskKind kind;
  bool queries;  // relates queries and keys; otherwise keys alone
  bool number;
  bool data;            // its last argument is a buffer, indexed by batch entry
  bool table = false;   // the last dimension is a table that the leaf reads whole
  bool widens = false;  // shows pairs that other masks hide

  [[nodiscard]] constexpr std::size_t axes() const { return queries ? 2 : 1; }
  [[nodiscard]] constexpr std::size_t arguments() const {
    return axes() + (number ? 1 : 0) + (data ? 1 : 0);
  }
};

[[nodiscard]] std::span<const MaskContract> all_mask_contracts();
[[nodiscard]] const MaskContract* find_mask_contract(std::string_view name);

// A mask of a statement that passed check_stmt, with its arguments by role.
struct MaskCall {
  const MaskContract* contract = nullptr;
  std::string queries;  // or ""
  std::string keys;
  std::int64_t number = 0;  // of a ground program
  std::string data;         // or ""
};
[[nodiscard]] MaskCall read_mask(const Mask& mask);

// The buffer that a mask reads, for any mask that parses: none, or the name in the last argument.
[[nodiscard]] std::optional<std::string> data_of(const Mask& mask);
// The buffers that masks of the statement read, each once, in textual order.
[[nodiscard]] std::vector<Access> mask_reads(const Stmt& stmt);
// All reads of a leaf: the operands, then mask_reads.
[[nodiscard]] std::vector<Access> reads_of(const Stmt& stmt);

}  // namespace harpe
