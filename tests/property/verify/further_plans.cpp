#include "tests/property/verify/further_plans.h"

#include <utility>

#include "ir/text.h"
#include "lower/lower.h"

namespace harpe::test {
namespace {

constexpr const char* kFurther = R"(
program gemm {
  axis M = 24
  axis N = 24
  axis K = 24
  buffer a : f32[M, K] in
  buffer b : f32[K, N] in
  buffer c : f32[M, N] out
  nest mm over (M, N, K) {
    c sum= matmul(a, b)
  }
}
mesh three = x:3
commir dest_push for gemm on three {
  split M = m0:3 * m1:2 * m2:_
  split N = n0:3 * n1:_
  place a[m0@x]
  place b[n0@x]
  place c[n0@x]
  nest mm {
    par n0 on x
    stage a over x direct by src grain m1 via proxy signal flag fence dest
    leaf
  }
}
commir nic_push for gemm on three {
  split M = m0:3 * m1:_
  split N = n0:3 * n1:_
  place a[m0@x]
  place b[n0@x]
  place c[n0@x]
  nest mm {
    par n0 on x
    stage a over x direct by src via proxy signal flag fence nic
    leaf
  }
}
commir epoch_push for gemm on three {
  split M = m0:3 * m1:2 * m2:_
  split N = n0:3 * n1:_
  place a[m0@x]
  place b[n0@x]
  place c[n0@x]
  nest mm {
    par n0 on x
    stage a over x direct by src grain m1 via proxy signal flag fence epoch
    leaf
  }
}
commir batch_push for gemm on three {
  split M = m0:3 * m1:2 * m2:_
  split N = n0:3 * n1:_
  place a[m0@x]
  place b[n0@x]
  place c[n0@x]
  nest mm {
    par n0 on x
    stage a over x direct by src grain m1 via proxy signal flag fence batch
    leaf
  }
}
commir imm_push for gemm on three {
  split M = m0:3 * m1:2 * m2:_
  split N = n0:3 * n1:_
  place a[m0@x]
  place b[n0@x]
  place c[n0@x]
  nest mm {
    par n0 on x
    stage a over x direct by src grain m1 via proxy signal flag fence imm
    leaf
  }
}
commir put_push for gemm on three {
  split M = m0:3 * m1:2 * m2:_
  split N = n0:3 * n1:_
  place a[m0@x]
  place b[n0@x]
  place c[n0@x]
  nest mm {
    par n0 on x
    stage a over x direct by src grain m1 via ibgda signal flag fence put
    leaf
  }
}
commir fused_pull for gemm on three {
  split M = m0:3 * m1:_
  split N = n0:3 * n1:_
  place a[m0@x]
  place b[n0@x]
  place c[n0@x]
  nest mm {
    par n0 on x
    for m0 skew x
    stage a over x direct by dst depth 3 via tma signal flag
    leaf sm 116
  }
  fuse all = mm persistent sm 116
}
commir inline_scatter for gemm on three {
  split M = m0:3 * m1:_
  split K = k0:3 * k1:_
  place a[k0@x]
  place b[k0@x]
  place c[m0@x]
  nest mm {
    par k0 on x
    for m0 skew x + 1
    drain c over x inline via sm signal flag
    leaf
  }
}
commir open_sum for gemm on three {
  split M = m0:3 * m1:_
  split K = k0:3 * k1:_
  place a[k0@x]
  place b[k0@x]
  place c[] partial sum@x
  nest mm {
    par k0 on x
    for m0
    leaf
  }
}
)";

}  // namespace

std::vector<Lowered> lowered_further() {
  Checked<Cursor> cursor = Cursor::open(kFurther);
  HP_CHECK(cursor.ok(), render(cursor.error()));
  const Checked<Program> program = parse_program(*cursor);
  HP_CHECK(program.ok(), render(program.error()));
  const Checked<Mesh> mesh = parse_mesh(*cursor);
  HP_CHECK(mesh.ok(), render(mesh.error()));
  std::vector<Lowered> found;
  while (!cursor->at_end()) {
    const Checked<NormalForm> form = parse_form(*cursor);
    HP_CHECK(form.ok(), render(form.error()));
    Checked<Plan> plan = lower(*program, *mesh, *form);
    HP_CHECK(plan.ok(), form->name + ": " + render(plan.error()));
    found.push_back({form->name, std::move(plan).value()});
  }
  return found;
}

}  // namespace harpe::test
