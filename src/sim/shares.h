#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/workload.h"

namespace harpe {

// What running activities get of the resources: max-min fair on the fraction of full speed. All
// fractions rise together until a resource is full; its users stay there, the others rise on
// (progressive filling). A resource that could serve all its users at full speed binds nobody, so
// only what is joined through overfull ones is computed anew.
class Shares {
 public:
  explicit Shares(const Workload& workload);

  enum class Part : std::uint8_t { All, SmsOnly };
  void add(std::int32_t activity, Part part);
  void remove(std::int32_t activity);

  // Takes account of what was added and removed; the activities that are new or whose speed
  // changed.
  [[nodiscard]] std::span<const std::int32_t> settle();

  [[nodiscard]] double speed(std::int32_t activity) const { return at(speed_, activity); }
  // The use, counted from the first one of all activities, that holds it back; -1: none.
  [[nodiscard]] std::int32_t bound(std::int32_t activity) const { return at(bound_, activity); }
  [[nodiscard]] std::span<const Use> uses(std::int32_t activity) const;
  // Where the activity's uses begin among those of all.
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
    double left = 0;  // of capacity, while filling
    double load = 0;  // rates of users that still rise
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
  std::vector<std::int32_t> part_flows_;  // activities and resources of what is computed anew
  std::vector<std::int32_t> part_pools_;
  std::vector<std::int32_t> changed_;
};

}  // namespace harpe
