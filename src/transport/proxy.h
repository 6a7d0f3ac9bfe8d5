#pragma once

#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include "transport/endpoint.h"

namespace harpe::transport {

// Turns the endpoints of one or more ranks of a process until it is destroyed: takes their
// descriptors, and makes progress for ranks that put into them.
class Proxy {
 public:
  // The endpoints must outlive it.
  explicit Proxy(std::vector<Endpoint*> endpoints);

  // Stops turning. Puts of other ranks into these endpoints may then never arrive.
  void stop();

 private:
  static void run(const std::stop_token& stop, const std::vector<Endpoint*>& endpoints);

  std::jthread thread_;  // its destructor requests a stop and joins
};

}  // namespace harpe::transport
