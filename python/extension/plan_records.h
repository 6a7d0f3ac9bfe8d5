#pragma once

#include "extension/records.h"

// The values of plans, in the form of records.h.
namespace harpe::python {

template <>
struct Record<Share> {
  static constexpr auto name = const_name("Share");
  static constexpr std::tuple fields = {Field{"what", &Share::what}, Field{"us", &Share::us}};
};

template <>
struct Record<Prediction> {
  static constexpr auto name = const_name("Prediction");
  static constexpr std::tuple fields = {
      Field{"machine", &Prediction::machine},
      Field{"time_us", &Prediction::time_us},
      Field{"median_error", &Prediction::median_error},
      Field{"error_90", &Prediction::error_90},
      Field{"critical_path", &Prediction::critical_path},
      Field{"exposed_communication_us", &Prediction::exposed_communication_us},
      Field{"peak_bytes", &Prediction::peak_bytes}};
};

template <>
struct Record<Why> {
  static constexpr auto name = const_name("Why");
  static constexpr std::tuple fields = {Field{"origin", &Why::origin},
                                        Field{"text", &Why::text},
                                        Field{"candidates", &Why::candidates},
                                        Field{"unique", &Why::unique},
                                        Field{"feasible", &Why::feasible},
                                        Field{"simulated", &Why::simulated},
                                        Field{"search_s", &Why::search_s},
                                        Field{"runner_up", &Why::runner_up},
                                        Field{"runner_up_us", &Why::runner_up_us},
                                        Field{"refits", &Why::refits}};
};

template <>
struct Record<PlanFacts> {
  static constexpr auto name = const_name("PlanFacts");
  static constexpr std::tuple fields = {Field{"op", &PlanFacts::op},
                                        Field{"mesh", &PlanFacts::mesh},
                                        Field{"schedule", &PlanFacts::schedule},
                                        Field{"steps", &PlanFacts::steps},
                                        Field{"ranks", &PlanFacts::ranks},
                                        Field{"tasks", &PlanFacts::tasks},
                                        Field{"bytes_moved", &PlanFacts::bytes_moved},
                                        Field{"memory_bytes", &PlanFacts::memory_bytes},
                                        Field{"flops", &PlanFacts::flops},
                                        Field{"balance", &PlanFacts::balance},
                                        Field{"layout", &PlanFacts::layout}};
};

template <>
struct Record<Buffer> {
  static constexpr auto name = const_name("Buffer");
  static constexpr std::tuple fields = {
      Field{"name", &Buffer::name},   Field{"role", &Buffer::role},
      Field{"dtype", &Buffer::dtype}, Field{"shape", &Buffer::shape},
      Field{"homes", &Buffer::homes}, Field{"partial", &Buffer::partial}};
};

template <>
struct Record<Certificate> {
  static constexpr auto name = const_name("Certificate");
  static constexpr std::tuple fields = {Field{"covers", &Certificate::covers},
                                        Field{"tasks", &Certificate::tasks},
                                        Field{"order_edges", &Certificate::order_edges},
                                        Field{"blocks_checked", &Certificate::blocks_checked},
                                        Field{"peak_bytes", &Certificate::peak_bytes}};
};

template <>
struct Record<Taxes> {
  static constexpr auto name = const_name("Taxes");
  static constexpr std::tuple fields = {Field{"schedule", &Taxes::schedule},
                                        Field{"time_us", &Taxes::time_us},
                                        Field{"roofline_us", &Taxes::roofline_us},
                                        Field{"launch_us", &Taxes::launch_us},
                                        Field{"synchronization_us", &Taxes::synchronization_us},
                                        Field{"locality_us", &Taxes::locality_us},
                                        Field{"residual_us", &Taxes::residual_us},
                                        Field{"skew_sensitivity", &Taxes::skew_sensitivity},
                                        Field{"bound", &Taxes::bound},
                                        Field{"refusal", &Taxes::refusal}};
};

template <>
struct Record<Candidate> {
  static constexpr auto name = const_name("Candidate");
  static constexpr std::tuple fields = {
      Field{"label", &Candidate::label},         Field{"named", &Candidate::named},
      Field{"schedule", &Candidate::schedule},   Field{"time_us", &Candidate::time_us},
      Field{"simulated", &Candidate::simulated}, Field{"memory_bytes", &Candidate::memory_bytes},
      Field{"excluded", &Candidate::excluded}};
};

template <>
struct Record<Refusal> {
  static constexpr auto name = const_name("Refusal");
  static constexpr std::tuple fields = {Field{"reason", &Refusal::reason},
                                        Field{"count", &Refusal::count}};
};

// Without the plan.
template <>
struct Record<Tuned> {
  static constexpr std::tuple fields = {
      Field{"candidates", &Tuned::candidates},   Field{"unique", &Tuned::unique},
      Field{"feasible", &Tuned::feasible},       Field{"pruned", &Tuned::pruned},
      Field{"estimated", &Tuned::estimated},     Field{"simulated", &Tuned::simulated},
      Field{"search_s", &Tuned::search_s},       Field{"complete", &Tuned::complete},
      Field{"known_since", &Tuned::known_since}, Field{"top", &Tuned::top},
      Field{"baselines", &Tuned::baselines},     Field{"refused", &Tuned::refused}};
};

template <>
struct Record<Comparison> {
  static constexpr auto name = const_name("Comparison");
  static constexpr std::tuple fields = {
      Field{"buffer", &Comparison::buffer}, Field{"error", &Comparison::error},
      Field{"bound", &Comparison::bound}, Field{"rows", &Comparison::rows},
      Field{"rows_checked", &Comparison::rows_checked}};
};

}  // namespace harpe::python

namespace nanobind::detail {

template <>
struct type_caster<harpe::Origin> {
  NB_TYPE_CASTER(harpe::Origin, const_name("str"))

  static handle from_cpp(harpe::Origin origin, rv_policy policy, cleanup_list* cleanup) noexcept {
    constexpr const char* kNames[] = {"caller", "text", "cache", "search", "rule"};
    return make_caster<const char*>::from_cpp(kNames[static_cast<int>(origin)], policy, cleanup);
  }
};

template <>
struct type_caster<harpe::Buffer::Role> {
  NB_TYPE_CASTER(harpe::Buffer::Role, const_name("str"))

  static handle from_cpp(harpe::Buffer::Role role, rv_policy policy,
                         cleanup_list* cleanup) noexcept {
    return make_caster<const char*>::from_cpp(role == harpe::Buffer::Role::In ? "in" : "out",
                                              policy, cleanup);
  }
};

}  // namespace nanobind::detail
