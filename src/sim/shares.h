#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/workload.h"

namespace harpe {

// Shares resources among running activities: max-min fair on the fraction of full speed. All
// fractions rise together until a resource is full; its users stop there, and the others rise on
// (progressive filling). A resource that can serve all its users at full speed limits none of them,
// so only the part that is connected through overfull resources is computed anew.
class Shares {
 public:
  explicit Shares(const Workload& workload);

  enum class Part : std::uint8_t { All, SmsOnly };
  void add(std::int32_t activity, Part part);
  void remove(std::int32_t activity);

  // Applies additions and removals; returns the activities that are new or whose speed changed.
  [[nodiscard]] std::span<const std::int32_t> settle();

  [[nodiscard]] double speed(std::int32_t activity) const { return at(speed_, activity); }
  // The use that limits it, as an index into the uses of all activities; -1: none.
  [[nodiscard]] std::int32_t bound(std::int32_t activity) const { return at(bound_, activity); }
  [[nodiscard]] std::span<const Use> uses(std::int32_t activity) const;
  // Index of the activity's first use among the uses of all activities.
  [[nodiscard]] std::int32_t first_use(std::int32_t activity) const { return at(first_, activity); }

 private:
  template <class T>
  [[nodiscard]] static const T& at(const std::vector<T>& values, std::int32_t i) {
    return values[static_cast<std::size_t>(i)];
  }
  template <class T>
  [[nodiscard]] static T& at(std::vector<T>& values, std::int32_t i) {
    return values[static_cast<std::size_t>(i)];
  }

  struct Pool {  // a resource
    double capacity = 0;
    ResourceKind kind = ResourceKind::Sm;
    bool overfull = false;
    bool touched = false;
    bool joined = false;  // to the part that is being computed
    std::vector<std::int32_t> users;
    double left = 0;  // of the capacity, during filling
    double load = 0;  // rates of users whose fraction still rises
    std::int32_t rising = 0;
  };

  [[nodiscard]] bool takes(std::int32_t activity, const Use& use) const;
  void touch(std::int32_t resource);
  void join_touched();
  void join_activity(std::int32_t activity);
  void join_users(const Pool& pool);
  void fill();
  void settle_at(std::int32_t activity, double level, std::int32_t use);

  std::vector<Pool> pools_;
  std::vector<std::int32_t> first_;  // per activity, and the end
  std::vector<Use> uses_;
  std::vector<Part> part_;
  std::vector<double> speed_;  // 0: not running
  std::vector<std::int32_t> bound_;
  std::vector<char> active_;
  std::vector<char> joined_;
  std::vector<char> settled_;
  std::vector<std::int32_t> touched_;     // resources
  std::vector<std::int32_t> added_;       // activities
  std::vector<std::int32_t> part_flows_;  // what is computed anew, and its resources
  std::vector<std::int32_t> part_pools_;
  std::vector<std::int32_t> changed_;
};

}  // namespace harpe
