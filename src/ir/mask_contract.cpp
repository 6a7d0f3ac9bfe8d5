#include "ir/mask_contract.h"

#include <algorithm>
#include <array>

#include "support/check.h"

namespace harpe {
namespace {

constexpr std::array kMaskContracts = {
    MaskContract{.name = "causal",
                 .kind = MaskKind::Causal,
                 .queries = true,
                 .number = false,
                 .data = false},
    MaskContract{
        .name = "window", .kind = MaskKind::Window, .queries = true, .number = true, .data = false},
    MaskContract{.name = "prefix",
                 .kind = MaskKind::Prefix,
                 .queries = true,
                 .number = true,
                 .data = false,
                 .widens = true},
    MaskContract{.name = "doc",
                 .kind = MaskKind::Doc,
                 .queries = true,
                 .number = false,
                 .data = true,
                 .table = true},
    MaskContract{.name = "length",
                 .kind = MaskKind::Length,
                 .queries = false,
                 .number = false,
                 .data = true},
    MaskContract{.name = "paged",
                 .kind = MaskKind::Paged,
                 .queries = false,
                 .number = true,
                 .data = true,
                 .table = true},
};

}  // namespace

std::span<const MaskContract> all_mask_contracts() { return kMaskContracts; }

const MaskContract* find_mask_contract(std::string_view name) {
  const auto found = std::ranges::find(kMaskContracts, name, &MaskContract::name);
  return found == kMaskContracts.end() ? nullptr : &*found;
}

MaskCall read_mask(const Mask& mask) {
  const MaskContract* const contract = find_mask_contract(mask.call.function);
  HP_CHECK(contract != nullptr && contract->arguments() == mask.call.args.size(),
           "mask `" + mask.call.function + "` passed check_stmt");
  const auto name_at = [&](std::size_t i) { return std::get<Name>(mask.call.args[i]).text; };
  MaskCall call{.contract = contract, .queries = "", .keys = "", .number = 0, .data = ""};
  if (contract->queries) call.queries = name_at(0);
  call.keys = name_at(contract->axes() - 1);
  if (contract->number) call.number = std::get<std::int64_t>(mask.call.args[contract->axes()]);
  if (contract->data) call.data = name_at(contract->arguments() - 1);
  return call;
}

std::optional<std::string> data_of(const Mask& mask) {
  const MaskContract* const contract = find_mask_contract(mask.call.function);
  if (contract == nullptr || !contract->data || mask.call.args.empty()) return std::nullopt;
  const auto* const name = std::get_if<Name>(&mask.call.args.back());
  return name == nullptr ? std::nullopt : std::optional(name->text);
}

std::vector<Access> mask_reads(const Stmt& stmt) {
  std::vector<Access> reads;
  for (const Mask& mask : stmt.masks) {
    const std::optional<std::string> buffer = data_of(mask);
    if (!buffer || std::ranges::find(reads, *buffer, &Access::buffer) != reads.end()) continue;
    reads.push_back({.buffer = *buffer, .renames = {}});
  }
  return reads;
}

std::vector<Access> reads_of(const Stmt& stmt) {
  std::vector<Access> reads = stmt.operands;
  for (Access& access : mask_reads(stmt)) reads.push_back(std::move(access));
  return reads;
}

}  // namespace harpe
