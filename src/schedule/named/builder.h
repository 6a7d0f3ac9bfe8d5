#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "schedule/named/mesh_plan.h"
#include "schedule/primitive.h"

namespace harpe {

// The attributes of a named schedule's move.
struct Transfer {
  How how = How::Bulk;
  std::optional<Initiator> by;
  std::optional<std::int64_t> depth;
  std::optional<Via> via;
  std::optional<Signal> signal;
  bool whole_states = false;  // sums travel in the accumulator's type, not in the result's
};

// The transfers that named schedules use.
constexpr Transfer kBulk{How::Bulk, std::nullopt, std::nullopt, Via::Nccl, std::nullopt};
constexpr Transfer kRelay{How::Relay, Initiator::Src, 2, Via::Ce, Signal::Event};
// For a sum that would otherwise be rounded at every hop.
constexpr Transfer kTravel{How::Relay, Initiator::Src, 2, Via::Ce, Signal::Event, true};
constexpr Transfer kFetch{How::Direct, Initiator::Dst, 3, Via::Ce, Signal::Event};
// Sent by thread blocks of the waiting kernel.
constexpr Transfer kSend{How::Direct, Initiator::Src, std::nullopt, Via::Tma, Signal::Flag};
constexpr Transfer kPush{How::Direct, Initiator::Src, std::nullopt, Via::Ce, Signal::Flag};
// The size of a whole buffer.
[[nodiscard]] std::int64_t bytes_of(const Program& program, const std::string& buffer);
// The number of chunks of a push from one source: at most `most`, and none so short that a copy
// engine copies it inefficiently.
[[nodiscard]] std::int64_t push_chunks(std::int64_t bytes, std::int64_t most);
constexpr Transfer kPull{How::Inline, Initiator::Dst, std::nullopt, Via::Tma, std::nullopt};

// Writes a script step by step. Gives digits and mesh parts unique names.
class ScheduleBuilder {
 public:
  ScheduleBuilder(std::string_view schedule, const Program& program, const MeshPlan& plan);

  // The level's mesh axes, by name.
  [[nodiscard]] MeshRef axes(const MeshPlan::Level& level) const;

  // Makes one digit per factor and the remainder; returns their names, the remainder's last.
  std::vector<std::string> tile(const std::string& axis, const std::vector<std::int64_t>& factors,
                                const std::string& base);
  void balance(const std::string& axis, const std::vector<std::string>& zigzag);
  // With an empty level, the buffers stay replicated and the nest undivided.
  void shard(const std::vector<std::string>& buffers, const std::string& digit,
             const MeshPlan::Level& level);
  void parallelize(const std::string& nest, const std::string& digit, const MeshPlan::Level& level);
  // `for digit skew level + offset`, innermost.
  void rotate(const std::string& nest, const std::string& digit, const MeshPlan::Level& level,
              std::int64_t offset = 0);
  // `at`: the loop around the move, or "" for the nest's top. Without buffers it adds no move.
  void stage(const std::string& nest, const std::vector<std::string>& buffers,
             const MeshPlan::Level& level, const std::string& at, const Transfer& transfer);
  void drain(const std::string& nest, const std::vector<std::string>& buffers,
             const MeshPlan::Level& level, const std::string& at, const Transfer& transfer);
  void add(const Primitive& primitive);

  [[nodiscard]] Script take() { return std::move(script_); }

 private:
  std::string choose_name(const std::string& base);
  void set_attributes(const std::string& nest, const std::vector<std::string>& buffers,
                      const MeshRef& over, const Transfer& transfer);
  void keep_states(const std::string& nest, const std::vector<std::string>& buffers,
                   const MeshRef& over);

  const Program& program_;
  MeshPlan plan_;
  Script script_;
  std::set<std::string> taken_;
  std::map<int, std::string> parts_;  // names of refined mesh parts
};

}  // namespace harpe
