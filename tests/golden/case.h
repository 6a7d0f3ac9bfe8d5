#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace harpe::golden {

// One `.comm` file: a sequence of commands in sections that begin with `--- `.
//
//   // any text before the first section: what the case shows
//   --- file NAME            a text file to create, up to the next section
//   --- npy NAME KEY=VALUE…  a NumPy file: `header={…}` as written, `bytes=N` bytes of data, and
//                            optionally `fill=HEX` (the repeated data; zeros), `version=1.0`,
//                            `magic=TEXT`, `length=N` (a wrong length of the header)
//   --- run                  one line of /bin/sh; `harpe` is the program under test
//   --- exit N               its exit status; left out: 0
//   --- stdout               everything it wrote to standard output; left out: nothing
//   --- stderr               the same for standard error
//
// `run` may repeat, each with its expectations. All runs share one fresh folder and a fresh cache.
// Text must match exactly, except for the values that mask() masks.
struct Run {
  std::string command;
  int exit = 0;
  std::string out;
  std::string err;
};

struct Step {
  std::string section;  // "file NAME", "npy NAME …", "run": the header line without `--- `
  std::string body;     // of a file
  Run run;              // of a run
};

struct Case {
  std::string comment;
  std::vector<Step> steps;
};

// Throws std::runtime_error with the line number if the file is malformed.
[[nodiscard]] Case parse_case(const std::string& text);
[[nodiscard]] std::string print_case(const Case& value);

// Masks what differs between runs or machines, and nothing else: `12.3 ms` becomes `<time>`, `21.5
// GiB are free` becomes `<memory> are free`. The finite error of a check depends on the GEMM
// library and becomes `error <error>`; its bound stays.
[[nodiscard]] std::string mask(const std::string& text);

// Runs the case in `folder` and returns it with the actual results.
[[nodiscard]] Case execute(const Case& value, const std::filesystem::path& folder);

}  // namespace harpe::golden
