#pragma once

#include <string>

namespace harpe::library {

// Why a library has no figures.
struct Missing {
  std::string reason;
};

}  // namespace harpe::library
