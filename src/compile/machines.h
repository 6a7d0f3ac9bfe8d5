#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compile/request.h"
#include "machine/machine.h"
#include "machine/mesh.h"
#include "support/diag.h"

namespace harpe {

// A shipped machine by its name, or one from a file that ends in `.machine`. Errors: U130; I101,
// parse_machine's, M119 a leaf that no operator has.
[[nodiscard]] Checked<Machine> load_machine(const std::string& name_or_file);
// Parses the text of a `.machine` file. Errors: parse_machine's, M119.
[[nodiscard]] Checked<Machine> parse_machine_file(const std::string& text, const std::string& file);

// The smallest shipped machine of H200 hosts that has enough processors for the mesh. Errors: U133.
[[nodiscard]] Checked<Machine> default_machine(const Mesh& mesh);

// The machine to which schedules are fitted (schedule/fit.h) if CPU ranks are on several hosts: the
// shipped `cpu_hosts` with these sizes.
[[nodiscard]] Machine machine_of_hosts(std::int64_t hosts, std::int64_t ranks_each);

// The shipped machines, as load_machine returns them.
[[nodiscard]] std::vector<Machine> list_machines();

// "8 nvlink x 16 rail": the sizes of its levels, innermost first.
[[nodiscard]] std::string print_levels(const Machine& machine);

// The machine that the command line names, or the default machine of the mesh. Errors:
// load_machine's, default_machine's.
[[nodiscard]] Checked<Machine> machine_for(const std::optional<std::string>& name,
                                           const Mesh& mesh);
// The machine of a request, which may hold its text. Errors: the same; parse_machine_file's.
[[nodiscard]] Checked<Machine> machine_for(const Request& request, const Mesh& mesh);

}  // namespace harpe
