"""lm-evaluation-harness against our server and against its own transformers back end, on the same weights.

Run by `make check-lm-eval`, in an environment of its own. Exits 1 if a log likelihood differs by more than the
tolerance, or if a greedy flag or the accuracy differs at all.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lm_eval
import yaml
from lm_eval.tasks import TaskManager

HERE = Path(__file__).parent
TOLERANCE = 1e-3
STARTS_WITHIN_S = 180
DIALECTS = ("nim", "acs")


@contextmanager
def serving(isogloss: str) -> Iterator[str]:
    """The torch engine in fp32 with the embedded model."""
    with tempfile.TemporaryDirectory() as folder:
        port_file = Path(folder, "port")
        command = [isogloss, "serve", "--dtype", "fp32", "--port", "0", "--port-file", str(port_file)]
        process = subprocess.Popen([*command, "--dialects", ",".join(DIALECTS)])
        try:
            started = time.monotonic()
            while not port_file.exists():
                if process.poll() is not None or time.monotonic() - started > STARTS_WITHIN_S:
                    raise SystemExit("the server did not start")
                time.sleep(0.2)
            yield f"http://127.0.0.1:{port_file.read_text().strip()}"
        finally:
            process.terminate()
            process.wait(timeout=30)


def evaluate(model: str, arguments: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Results and samples of the task."""
    task = yaml.safe_load((HERE / "cloze.yaml").read_text())
    task["dataset_kwargs"]["data_files"]["test"] = str(HERE / "cloze.jsonl")
    (folder / "cloze.yaml").write_text(yaml.safe_dump(task))
    manager = TaskManager(include_path=str(folder), include_defaults=False)
    found: dict[str, Any] = lm_eval.simple_evaluate(
        model=model, model_args=arguments, tasks=["isogloss_cloze"], task_manager=manager, bootstrap_iters=0
    )
    return found


def likelihoods(found: dict[str, Any]) -> list[tuple[float, bool]]:
    """One pair per choice of each question, in order."""
    samples = sorted(found["samples"]["isogloss_cloze"], key=lambda sample: sample["doc_id"])
    return [(float(value), str(greedy) == "True") for sample in samples for value, greedy in sample["filtered_resps"]]


def report(dialect: str, ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Print the comparison; whether it holds."""
    pairs = list(zip(likelihoods(ours), likelihoods(theirs), strict=True))
    worst = max(abs(mine[0] - other[0]) for mine, other in pairs)
    flags = sum(mine[1] != other[1] for mine, other in pairs)
    accuracy = [found["results"]["isogloss_cloze"]["acc,none"] for found in (ours, theirs)]
    print(
        f"{dialect}: {len(pairs)} log likelihoods, largest difference {worst:.2e}, greedy flags that differ {flags}, "
        f"accuracy {accuracy[0]:.4f} against {accuracy[1]:.4f}"
    )
    return worst <= TOLERANCE and flags == 0 and accuracy[0] == accuracy[1]


def main() -> int:
    """Compare every dialect with the harness's own back end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--isogloss", required=True, help="path of the isogloss command")
    isogloss = parser.parse_args().isogloss
    os.environ["HF_HUB_OFFLINE"] = "1"
    done = subprocess.run([isogloss, "models", "convert", "smollm2"], capture_output=True, text=True, check=True)
    weights = done.stdout.strip().splitlines()[-1]
    with tempfile.TemporaryDirectory() as folder:
        theirs = evaluate("hf", {"pretrained": weights, "dtype": "float32", "device": "cpu"}, Path(folder))
        held = []
        with serving(isogloss) as url:
            for dialect in DIALECTS:
                arguments = {"model": "smollm2", "tokenizer": weights, "num_concurrent": 4}
                arguments["base_url"] = f"{url}/{dialect}/v1/completions"
                held.append(report(dialect, evaluate("local-completions", arguments, Path(folder)), theirs))
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
