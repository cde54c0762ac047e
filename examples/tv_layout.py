"""A thread-value layout, printed and drawn, and a tensor divided by its tiler.

python examples/tv_layout.py --svg tv_layout.svg
"""

# RUN: %python %s --svg %t.svg --device cpu | FileCheck %s
# CHECK: layout: (32,1):(1,0)
# CHECK-NEXT: tiler: (32,)
# CHECK-NEXT: gx: tensor<ptr<f32, gmem> o ((1,32),(?,?)):((0,1),(?,32))>
# RUN: FileCheck %s --check-prefix=SVG < %t.svg
# SVG: <svg xmlns="http://www.w3.org/2000/svg"
# SVG: <title>(0,31): T31V0

import argparse

import torch

import cute_dialect.lang as cute
from cute_dialect.viz import render_tv_layout_svg


@cute.jit
def print_layout(mA: cute.Tensor, file: cute.Constexpr):
    threads_per_block = 32
    thr_layout = cute.make_layout((threads_per_block,), stride=(1,))
    val_layout = cute.make_layout((1,), stride=(1,))
    tiler_mn, layout_tv = cute.make_layout_tv(thr_layout, val_layout)
    print(f"layout: {layout_tv}")
    print(f"tiler: {tiler_mn}")
    tiler_2d = (1, tiler_mn[0])
    if file is not None:
        render_tv_layout_svg(layout_tv, tiler_2d, file)
    gX = cute.zipped_divide(mA, tiler_2d)
    print(f"gx: {gX}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--svg", help="a file for the drawing")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=["cuda", "cpu"])
    args = parser.parse_args()
    # 65 columns are not a multiple of four, so the rows are aligned to an element only.
    print_layout(torch.zeros(3, 65, device=args.device), args.svg, device=args.device)


if __name__ == "__main__":
    main()
