#include "side_by_side.hpp"

#include "panels.hpp"
#include "remesh/core/buffer.hpp"

namespace remesh::detail {

bool side_by_side(const JudgeContext& context, const Reader& left, std::size_t l,
                  const Reader& right, std::size_t r, const OnPanels& visit) {
  const TensorDesc& ours = left.catalog().tensors[l];
  const TensorDesc& theirs = right.catalog().tensors[r];
  const TensorDesc& wider = bits(ours.dtype) > bits(theirs.dtype) ? ours : theirs;
  const Panels panels(wider, compared_panel_bytes);
  const auto held = context.budget.reserve(2 * compared_panel_bytes, "elements to be compared");
  Buffer a(compared_panel_bytes);
  Buffer b(compared_panel_bytes);
  for (Index number = 0; number < panels.count(); ++number) {
    context.stop.check();
    const Box box = panels.box(number);
    const auto as = a.bytes().first(static_cast<std::size_t>(num_bytes(ours.dtype, box)));
    const auto bs = b.bytes().first(static_cast<std::size_t>(num_bytes(theirs.dtype, box)));
    left.read(l, box, as, {});
    right.read(r, box, bs, {});
    if (!visit(as, bs)) return false;
  }
  return true;
}

}  // namespace remesh::detail
