"""Models of timm and torchvision: is each measured and verified by two engines, or refused rightly?

One small member of each family, without weights, by ONNX Runtime and OpenVINO, as
`foreign_models.py` counts graphs. What there was no time for is said, and with `--go-on` it is what
the next call begins with. Needs both packages.

    python benchmarks/package_models.py [--minutes 60] [--go-on]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from itertools import zip_longest

from foreign_models import became, ran
from keeping import HERE, keep

TIMM = """
resnet10t vit_tiny_patch16_224 mobilenetv3_small_050 lcnet_050 tinynet_e efficientnet_lite0
regnetx_002 regnety_002 ghostnet_050 convnext_atto levit_128s mobilevit_xxs edgenext_xx_small
repvgg_a0 mnasnet_small deit_tiny_patch16_224 resmlp_12_224 pit_ti_224 xcit_nano_12_p16_224
poolformer_s12
cait_xxs24_224 gmlp_ti16_224 fastvit_t8 mobileone_s0 rexnet_100 dla46x_c crossvit_tiny_240
coat_lite_tiny tiny_vit_5m_224 efficientformerv2_s0 starnet_s1 visformer_tiny semnasnet_050
"""
TORCHVISION = """
resnet18 squeezenet1_1 mobilenet_v2 mobilenet_v3_small shufflenet_v2_x0_5 mnasnet0_5 alexnet
googlenet densenet121 efficientnet_b0 regnet_y_400mf lraspp_mobilenet_v3_large
fasterrcnn_mobilenet_v3_large_320_fpn raft_small quantized_mobilenet_v2 swin_t convnext_tiny
maxvit_t r3d_18 vit_b_16 vgg11
"""
_HOW = "--framework onnxruntime,openvino --batch-sizes 2"


def counted_before() -> dict[str, tuple[str, list[str]]]:
    """What the last call that was kept on this kind of machine had time for."""
    kept = [json.loads(path.read_text()) for path in (HERE / "results").glob("package_models-*")]
    each = max(kept, key=lambda one: one["when"])["each"] if kept else {}
    return {name: (word, why) for name, (word, why) in each.items() if word != "not begun"}


def main() -> None:
    """Run them one by one, count, keep."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=60.0, help="no model is begun later")
    parser.add_argument("--go-on", action="store_true", help="keep what the last call counted")
    options = parser.parse_args()
    began = time.monotonic()
    lists = {"timm": TIMM.split(), "torchvision": TORCHVISION.split()}
    # The two by turns: where time runs short, both have been counted.
    pairs = zip_longest(*([f"{where}/{name}" for name in some] for where, some in lists.items()))
    names = [name for pair in pairs for name in pair if name]
    found = counted_before() if options.go_on else {}
    for name in names:
        if name in found:
            continue
        if time.monotonic() - began > 60 * options.minutes:
            found[name] = ("not begun", [])
            continue
        rows, error = ran([name, *_HOW.split()])
        found[name] = became(rows) if rows else ("refused as a model", [error])
        print(f"{name}: {found[name][0]}", *(f"\n    {why[:300]}" for why in found[name][1]),
              flush=True)  # fmt: skip
    found = {name: found[name] for name in names}
    counts = Counter(word for word, _ in found.values())
    print(dict(counts))
    keep("package_models", {"models": len(found), "counts": dict(counts), "each": found})
    sys.exit(1 if counts["failed"] else 0)


if __name__ == "__main__":
    main()
