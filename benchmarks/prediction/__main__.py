"""Scores of the predictors that were tried on tables: operator network, boosting, device vectors.

    python benchmarks/prediction --train KNOWN.parquet --test OTHER.parquet \
        [--graph-features OPERATORS.parquet] [--anchors K] [--target memory] [--plot FILE]

Prints one JSON document: scores overall, by hardware, basis and mode, and the regret of choosing by
the predictions. `accelbench predict --evaluate` scores the predictor that users ask instead.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

# The folder of this file would put its modules beside everybody's.
sys.path[0] = str(Path(__file__).resolve().parents[1])

from accelbench.core.errors import AccelbenchError  # noqa: E402
from accelbench.predict.cases import LATENCY, TARGETS  # noqa: E402
from prediction.evaluation import EvaluationRequest, evaluated_cases  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", type=Path, required=True, nargs="+", action="extend")
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--graph-features", type=Path)
    parser.add_argument("--anchors", type=int, default=0)
    parser.add_argument("--target", choices=TARGETS, default=LATENCY)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", type=Path, help="predicted against measured, as png, svg or html")
    given = parser.parse_args()
    request = EvaluationRequest(
        tuple(given.train),
        given.test,
        given.graph_features,
        given.anchors,
        given.target,
        given.seed,
    )
    try:
        scores, cases = evaluated_cases(request)
        if given.plot:
            _draw(given, cases)
    except AccelbenchError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    print(json.dumps(scores, indent=2))
    return 0


def _draw(given: argparse.Namespace, cases: object) -> None:
    from accelbench.cli.services.report_files import write_picture
    from accelbench.present.charts.predicted import evaluation_picture

    learned = f"{given.test.name}, learned from {', '.join(path.name for path in given.train)}."
    picture = evaluation_picture([cases], learned)
    if picture is not None:
        write_picture(given.plot, picture)


if __name__ == "__main__":
    sys.exit(main())
