#pragma once

#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include "transport/endpoint.h"

namespace harpe::transport {

// Turns the endpoints of one rank, or of several of a process, until it is destroyed: takes their
// descriptors, and makes progress for whoever puts into them.
class Proxy {
 public:
  // The endpoints outlive it.
  explicit Proxy(std::vector<Endpoint*> endpoints);

  // Turns them no more. What others put into them may then never arrive.
  void stop();

 private:
  static void run(const std::stop_token& stop, const std::vector<Endpoint*>& endpoints);

  std::jthread thread_;  // asks it to stop and joins it
};

}  // namespace harpe::transport
