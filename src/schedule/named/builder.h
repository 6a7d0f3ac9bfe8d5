#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "schedule/named/mesh_plan.h"
#include "schedule/primitive.h"

namespace harpe {

// How a move of a named schedule goes.
struct Transfer {
  How how = How::Bulk;
  std::optional<Initiator> by;
  std::optional<std::int64_t> depth;
  std::optional<Via> via;
  std::optional<Signal> signal;
  bool whole_states = false;  // sums travel in the type they are kept in, not in the result's
};

// The ways the named schedules move data.
constexpr Transfer kBulk{How::Bulk, std::nullopt, std::nullopt, Via::Nccl, std::nullopt};
constexpr Transfer kRelay{How::Relay, Initiator::Src, 2, Via::Ce, Signal::Event};
// A sum that would else be rounded at every hop.
constexpr Transfer kTravel{How::Relay, Initiator::Src, 2, Via::Ce, Signal::Event, true};
constexpr Transfer kFetch{How::Direct, Initiator::Dst, 3, Via::Ce, Signal::Event};
// By blocks of the waiting kernels.
constexpr Transfer kSend{How::Direct, Initiator::Src, std::nullopt, Via::Tma, Signal::Flag};
constexpr Transfer kPush{How::Direct, Initiator::Src, std::nullopt, Via::Ce, Signal::Flag};
// Of a whole buffer.
[[nodiscard]] std::int64_t bytes_of(const Program& program, const std::string& buffer);
// Into how many a push cuts what comes from one source: at most `most`, and none shorter than a
// copy engine is quick with.
[[nodiscard]] std::int64_t push_chunks(std::int64_t bytes, std::int64_t most);
constexpr Transfer kPull{How::Inline, Initiator::Dst, std::nullopt, Via::Tma, std::nullopt};

// Writes a script step by step. Digits and mesh parts get names that collide with nothing.
class ScheduleBuilder {
 public:
  ScheduleBuilder(std::string_view schedule, const Program& program, const MeshPlan& plan);

  // The level's mesh axes, by name.
  [[nodiscard]] MeshRef axes(const MeshPlan::Level& level) const;

  // One digit per factor and the remainder; returns the digits' names, the remainder's last.
  std::vector<std::string> tile(const std::string& axis, const std::vector<std::int64_t>& factors,
                                const std::string& base);
  void balance(const std::string& axis, const std::vector<std::string>& zigzag);
  // A level of no axes leaves the buffers replicated, and the nest undivided.
  void shard(const std::vector<std::string>& buffers, const std::string& digit,
             const MeshPlan::Level& level);
  void parallelize(const std::string& nest, const std::string& digit, const MeshPlan::Level& level);
  // `for digit skew level + offset`, innermost.
  void rotate(const std::string& nest, const std::string& digit, const MeshPlan::Level& level,
              std::int64_t offset = 0);
  // `at`: the loop around it, or "" for the nest's top. No buffers, no move.
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
  std::map<int, std::string> parts_;  // names of refined parts
};

}  // namespace harpe
