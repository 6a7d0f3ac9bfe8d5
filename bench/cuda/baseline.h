#pragma once

#include <string>

namespace harpe::bench {

// Why a library beside ours has no figures; rows say so.
struct Missing {
  std::string reason;
};

}  // namespace harpe::bench
