#pragma once

#include <sys/types.h>
#include <unistd.h>

namespace harpe {

// Starts a process that exits with what `body` returns. An exception ends it too: it may not unwind
// into the test runner, which would continue with all further tests in the child. The result is -1
// if no process can be started.
template <class Body>
pid_t start_child(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit([&]() noexcept { return static_cast<int>(body()); }());
  return child;
}

}  // namespace harpe
