#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/form.h"
#include "ir/program.h"
#include "machine/mesh.h"
#include "plan/plan.h"

// The executable model of the design (tests/oracle) and its verdict on a form.
namespace harpe::oracle {

// One copy task: its blocks, source and destination.
struct Transfer {
  std::int64_t source = 0;
  std::int64_t destination = 0;
  std::string buffer;
  std::vector<std::int64_t> blocks;  // ascending
  friend auto operator<=>(const Transfer&, const Transfer&) = default;
};

struct Record {
  std::string name;
  std::string program;  // canonical texts
  std::string mesh;
  std::string form;
  bool accepted = false;            // also false if the model was not asked (--texts)
  std::string reason;               // if refused
  std::vector<Transfer> transfers;  // if accepted; ascending
  std::int64_t syncs = 0;           // if accepted: neither from an entry nor to an exit
  std::int64_t boundary = 0;        // if accepted: all other syncs
};

// Runs tests/oracle/dump.py with these arguments.
[[nodiscard]] std::vector<Record> read_records(const std::string& arguments);

// Parses a text; HP_CHECK fails if it does not parse.
[[nodiscard]] Program parse_program_text(const std::string& text);
[[nodiscard]] Mesh parse_mesh_text(const std::string& text);
[[nodiscard]] NormalForm parse_form_text(const std::string& text);

// The model ignores what transports can do, so inline moves are changed to ones that SMs support.
void make_capable(NormalForm& form);

// The copies of a plan, as the model counts them; ascending.
[[nodiscard]] std::vector<Transfer> transfers_of(const Plan& plan);

struct Edges {
  std::int64_t inner = 0;     // neither from an entry nor to an exit
  std::int64_t boundary = 0;  // the others; a barrier counts its arrivals and its departures
};
[[nodiscard]] Edges edges_of(const Plan& plan);

}  // namespace harpe::oracle
