#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_map>

#include "verify/structure.h"
#include "verify/words.h"

namespace harpe::verifier {
namespace {

class MemoryCheck {
 public:
  MemoryCheck(const Plan& plan, const Model& model, const Resolved& resolved)
      : plan_(plan), model_(model), resolved_(resolved), words_(plan, model) {}

  // D15: peer address = peer base + offset.
  Checked<Ok> check_symmetry() const {
    std::unordered_map<std::string_view, const Alloc*> by_name;
    for (const Alloc& alloc : plan_.allocs) {
      const Alloc& other = *by_name.try_emplace(alloc.name, &alloc).first->second;
      const bool twin = &other != &alloc && other.rank == alloc.rank;
      if (!twin && other.offset == alloc.offset && other.bytes == alloc.bytes) continue;
      return make_diag(DiagCode::V208, {{"name", alloc.name},
                                        {"first", extent_of(other)},
                                        {"first_rank", other.rank.value},
                                        {"second", extent_of(alloc)},
                                        {"second_rank", alloc.rank.value}});
    }
    return Ok{};
  }

  Checked<Ok> check_overlap() const {
    std::vector<std::size_t> order(plan_.allocs.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::erase_if(order, [&](std::size_t id) { return plan_.allocs[id].bytes == 0; });
    std::ranges::sort(order, {}, [&](std::size_t id) {
      return std::pair(plan_.allocs[id].rank, plan_.allocs[id].offset);
    });
    for (std::size_t i = 1; i < order.size(); ++i) {
      const Alloc& low = plan_.allocs[order[i - 1]];
      const Alloc& high = plan_.allocs[order[i]];
      if (low.rank != high.rank || low.offset + low.bytes <= high.offset) continue;
      return make_diag(DiagCode::V209, {{"rank", low.rank.value},
                                        {"first", low.name},
                                        {"first_extent", extent_of(low)},
                                        {"second", high.name},
                                        {"second_extent", extent_of(high)}});
    }
    return Ok{};
  }

  // A slot's addresses follow from the whole content, so the content must fit even if a task uses
  // only a part.
  Checked<Ok> check_sizes() const {
    for (std::size_t task = 0; task < plan_.tasks.size(); ++task) {
      HP_REQUIRE_OK(check_fits(task, resolved_.reads(task)));
      HP_REQUIRE_OK(check_fits(task, resolved_.writes(task)));
    }
    return Ok{};
  }

  // A rank has at most one home of a buffer, and exactly one if it owns non-empty output blocks.
  Checked<Ok> check_homes() const {
    const auto buffers = static_cast<std::int64_t>(model_.buffers.size());
    std::vector<std::int32_t> homes(static_cast<std::size_t>(model_.ranks * buffers), 0);
    const auto index = [&](std::int64_t rank, std::int64_t buffer) {
      return static_cast<std::size_t>(rank * buffers + buffer);
    };
    for (std::size_t id = 0; id < plan_.allocs.size(); ++id) {
      if (plan_.allocs[id].level != Level::Home) continue;
      HP_REQUIRE_OK(check_home_fits(static_cast<std::int64_t>(id)));
      ++homes[index(plan_.allocs[id].rank.value,
                    resolved_.footprint(static_cast<std::int64_t>(id)).buffer)];
    }
    for (std::int64_t rank = 0; rank < model_.ranks; ++rank) {
      for (std::int64_t buffer = 0; buffer < buffers; ++buffer) {
        const BufferModel& model = model_.buffers[static_cast<std::size_t>(buffer)];
        const std::int32_t found = homes[index(rank, buffer)];
        const bool needed = model.role == Role::Out;
        if (found == 1 || (found == 0 && !(needed && find_home_block(RankId(rank), buffer))))
          continue;
        return make_diag(DiagCode::V214,
                         {{"rank", rank}, {"count", found}, {"buffer", model.name}});
      }
    }
    return Ok{};
  }

  Checked<Ok> check_limit(std::int64_t limit) const {
    std::vector<std::int64_t> used(static_cast<std::size_t>(model_.ranks), 0);
    for (const Alloc& alloc : plan_.allocs) {
      used[alloc.rank.index()] = std::max(used[alloc.rank.index()], alloc.offset + alloc.bytes);
    }
    const auto most = std::ranges::max_element(used);
    if (*most <= limit) return Ok{};
    const Alloc* largest = nullptr;
    for (const Alloc& alloc : plan_.allocs) {
      if (alloc.rank.value != most - used.begin()) continue;
      if (largest == nullptr || alloc.bytes > largest->bytes) largest = &alloc;
    }
    return make_diag(DiagCode::V601, {{"rank", most - used.begin()},
                                      {"need", *most},
                                      {"limit", limit},
                                      {"over", *most - limit},
                                      {"largest", largest->name},
                                      {"bytes", largest->bytes}});
  }

 private:
  static std::string extent_of(const Alloc& alloc) {
    return std::to_string(alloc.offset) + ".." + std::to_string(alloc.offset + alloc.bytes);
  }

  // The first non-empty block of an output in this rank's home.
  [[nodiscard]] std::optional<std::int64_t> find_home_block(RankId rank,
                                                            std::int64_t buffer) const {
    const BufferModel& model = model_.buffers[static_cast<std::size_t>(buffer)];
    for (std::int64_t block = 0; block < model.radix.blocks; ++block) {
      if (!model.is_empty(block) && model_.is_home(static_cast<int>(buffer), rank, block))
        return block;
    }
    return std::nullopt;
  }

  // The caller's tensor fills the home, whatever tasks read of it.
  [[nodiscard]] Checked<Ok> check_home_fits(std::int64_t id) const {
    const Alloc& alloc = plan_.allocs[static_cast<std::size_t>(id)];
    const Footprint& footprint = resolved_.footprint(id);
    const std::int64_t width = size_in_bytes(alloc.dtype);
    if (footprint.most_elements <= alloc.bytes / width) return Ok{};
    const std::optional<std::int64_t> block = find_home_block(alloc.rank, footprint.buffer);
    if (!block) return Ok{};
    const std::int64_t elements = content_elements(model_, footprint, *block);
    if (elements <= alloc.bytes / width) return Ok{};
    return make_diag(DiagCode::V210, {{"alloc", words_.alloc(id)},
                                      {"bytes", alloc.bytes},
                                      {"task", "that home"},
                                      {"block", words_.block(footprint.buffer, *block)},
                                      {"need", elements * width}});
  }

  [[nodiscard]] Checked<Ok> check_fits(std::size_t task, std::span<const ResolvedRef> refs) const {
    for (const ResolvedRef& ref : refs) {
      const Alloc& alloc = plan_.allocs[static_cast<std::size_t>(ref.alloc)];
      const Footprint& footprint = resolved_.footprint(ref.alloc);
      const std::int64_t width = size_in_bytes(alloc.dtype);
      if (ref.count == 0 || footprint.most_elements <= alloc.bytes / width) continue;
      const std::int64_t block = resolved_.cells(ref).front().block;
      const std::int64_t elements = content_elements(model_, footprint, block);
      if (elements <= alloc.bytes / width) continue;
      return make_diag(DiagCode::V210, {{"alloc", words_.alloc(ref.alloc)},
                                        {"bytes", alloc.bytes},
                                        {"task", words_.task(static_cast<std::int64_t>(task))},
                                        {"block", words_.block(ref.buffer, block)},
                                        {"need", elements * width}});
    }
    return Ok{};
  }

  const Plan& plan_;
  const Model& model_;
  const Resolved& resolved_;
  Words words_;
};

}  // namespace

Checked<Ok> check_memory(const Plan& plan, const Model& model, const Resolved& resolved,
                         const std::optional<std::int64_t>& limit) {
  const MemoryCheck check(plan, model, resolved);
  HP_REQUIRE_OK(check.check_symmetry());
  HP_REQUIRE_OK(check.check_overlap());
  HP_REQUIRE_OK(check.check_sizes());
  HP_REQUIRE_OK(check.check_homes());
  return limit ? check.check_limit(*limit) : Ok{};
}

}  // namespace harpe::verifier
