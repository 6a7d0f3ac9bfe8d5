#pragma once

#include "exec/cuda/kernels/plain/plain_launch.h"
#include "exec/cuda/kernels/plan_launches.h"

namespace harpe::cuda {

// The launches of plain kernels for an action, with any strides. Errors: G072, G075.
[[nodiscard]] Checked<LaunchSpecs> plan(const LaunchChoice& choice, const actions::Assign& assign);
[[nodiscard]] Checked<LaunchSpecs> plan(const LaunchChoice& choice, const actions::Add& add);
[[nodiscard]] Checked<LaunchSpecs> plan(const LaunchChoice& choice, const actions::Sum& sum);
[[nodiscard]] Checked<LaunchSpecs> plan(const LaunchChoice& choice, const actions::Fill& fill);
[[nodiscard]] Checked<LaunchSpecs> plan(const LaunchChoice& choice, const actions::Apply& apply);
[[nodiscard]] Checked<LaunchSpecs> plan(const LaunchChoice& choice,
                                        const actions::Combine& combine);
[[nodiscard]] Checked<LaunchSpecs> plan(const LaunchChoice& choice,
                                        const actions::RowDot& products);
[[nodiscard]] Checked<LaunchSpecs> plan(const LaunchChoice& choice,
                                        const actions::AddRmsNorm& norm);
[[nodiscard]] Checked<LaunchSpecs> plan(const LaunchChoice& choice,
                                        const actions::Multiply& products);
[[nodiscard]] Checked<LaunchSpecs> plan(const LaunchChoice& choice, const actions::Attend& heads);
[[nodiscard]] Checked<LaunchSpecs> plan(const LaunchChoice& choice,
                                        const actions::Differentiate& heads);
[[nodiscard]] Checked<LaunchSpecs> plan(const LaunchChoice& choice,
                                        const actions::ChooseExperts& choose);
[[nodiscard]] Checked<LaunchSpecs> plan(const LaunchChoice& choice,
                                        const actions::LimitChoices& limit);
[[nodiscard]] Checked<LaunchSpecs> plan(const LaunchChoice& choice,
                                        const actions::GatherRows& gather);
[[nodiscard]] Checked<LaunchSpecs> plan(const LaunchChoice& choice,
                                        const actions::CombineRows& combine);

}  // namespace harpe::cuda
