#pragma once

#include <stdexcept>
#include <string>

namespace harpe {

// A broken invariant of Harpe. Only process boundaries catch it (cli main, test runner).
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void raise_internal_error(const char* condition, const char* file, int line,
                                       const std::string& detail);

}  // namespace harpe

// On in every build type. DETAIL is a std::string expression, evaluated only on failure.
#define HP_CHECK(CONDITION, DETAIL)                                            \
  do {                                                                         \
    if (!(CONDITION)) {                                                        \
      ::harpe::raise_internal_error(#CONDITION, __FILE__, __LINE__, (DETAIL)); \
    }                                                                          \
  } while (false)
